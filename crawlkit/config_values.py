"""How one setting's value is read, checked and shown: from text, from TOML, from Python, all by the same rules.

`read_value` turns what was given into the value in force, or raises a ConfigError of one line that names the key, what
was expected and what was given. `format_value` is its inverse: what it returns reads back as the same value.
"""

import math
import re
from collections.abc import Callable, Mapping
from enum import Enum, StrEnum
from typing import Any, assert_never

import msgspec

from crawlkit.config_extract import check_extract
from crawlkit.config_items import (
    ItemCheck,
    check_credential,
    check_header,
    check_network,
    check_pattern,
    check_plugin,
    check_proxy,
    check_resolve,
    check_secret_place,
)
from crawlkit.config_units import format_duration, format_size, parse_duration, parse_size
from crawlkit.errors import ConfigError
from crawlkit.model import GroupBy, ScopeMode


class Change(Enum):
    """What a resume may do to a setting of a crawl that exists."""

    FREE = "free"  # how the work is done, not what is done
    NOTED = "noted"  # decides what the report holds, which then says that it was changed
    RAISE = "raise"  # a limit: may be raised or lifted
    FIXED = "fixed"  # decides what the report holds


class ValueKind(Enum):
    """How the text of a setting is read; the value is what help texts show for it."""

    COUNT = "N"
    DURATION = "DUR"
    SIZE = "SIZE"
    SWITCH = ""
    TEXT = "TEXT"
    CONTACT = "ADDR|URL"
    SCOPE = "MODE"
    GROUPING = "host|address"
    PATTERNS = "RE"
    RESOLVES = "GLOB=ADDR[:PORT]"
    NETWORKS = "CIDR"
    HEADERS = "NAME: VALUE"
    CREDENTIALS = "HOST=env:NAME|file:PATH"
    EXTRACTS = "NAME=CSS[@ATTR]"
    PLUGINS = "FILE.py|NAME"
    PROXY = "URL"
    SECRET = "env:NAME|file:PATH"


class Setting(msgspec.Struct, frozen=True):
    """What is known of one key. `least` is the smallest value allowed."""

    key: str
    kind: ValueKind
    change: Change
    help: str
    default: Any
    least: float = 0
    short: str | None = None

    @property
    def repeatable(self) -> bool:
        """Whether the option may be given more than once."""
        return self.kind in _ITEM_CHECKS

    @property
    def optional(self) -> bool:
        """Whether the value may be None: a limit that is off by default."""
        return self.default is None


MOST_COUNT = 2**53 - 1
"""The largest count or size: the largest whole number that every JSON reader keeps exact (RFC 8259 section 6)."""
MOST_DURATION_S = 100 * 365 * 86400.0
"""The longest duration. Event loops and selectors cannot wait much longer than this; for no limit there is `none`."""

_SWITCHES: Mapping[object, bool] = {
    "true": True, "on": True, "yes": True, "1": True, "false": False, "off": False, "no": False, "0": False,
}  # fmt: skip
_MOST_SHOWN = 120
_NUMBERS = frozenset({ValueKind.COUNT, ValueKind.DURATION, ValueKind.SIZE})
_TAKES: Mapping[ValueKind, str] = {
    ValueKind.COUNT: "A whole number",
    ValueKind.DURATION: "A duration like 500ms, 10s, 5m, 2h or 1d",
    ValueKind.SIZE: "Bytes like 512KiB, 10MiB or 1GiB",
    ValueKind.SWITCH: "true or false",
    ValueKind.TEXT: "Printable ASCII text",
    ValueKind.CONTACT: "An e-mail address or an http(s) URL",
}

_ITEM_CHECKS: Mapping[ValueKind, ItemCheck] = {
    ValueKind.PATTERNS: check_pattern,
    ValueKind.RESOLVES: check_resolve,
    ValueKind.NETWORKS: check_network,
    ValueKind.HEADERS: check_header,
    ValueKind.CREDENTIALS: check_credential,
    ValueKind.EXTRACTS: check_extract,
    ValueKind.PLUGINS: check_plugin,
}
_TEXT_CHECKS: Mapping[ValueKind, ItemCheck] = {ValueKind.PROXY: check_proxy, ValueKind.SECRET: check_secret_place}
_CHECKS: Mapping[ValueKind, ItemCheck] = {**_ITEM_CHECKS, **_TEXT_CHECKS}
CHOICES: Mapping[ValueKind, type[StrEnum]] = {ValueKind.SCOPE: ScopeMode, ValueKind.GROUPING: GroupBy}
"""The closed sets of values, by kind."""
_SECRETIVE = frozenset({ValueKind.HEADERS, ValueKind.CREDENTIALS, ValueKind.PROXY, ValueKind.SECRET})
"""Kinds whose wrong items may hold a secret all the same: a password where its place was to be named."""


def read_value(setting: Setting, raw: object) -> Any:
    """Return the value that `raw` gives to `setting`; reading a value once more changes nothing.

    Args:
        setting: the key's row of the table.
        raw: text of any origin, or a value of TOML, JSON or Python. Numbers are seconds for durations, bytes for sizes.
            A switch takes true/false, on/off, yes/no, 1/0; an optional limit `none` or empty text. A repeatable setting
            takes a list, or text with one item a line.

    Raises:
        ConfigError: one line with the key, what is expected and what was given.
    """
    if raw is None or (isinstance(raw, str) and raw.strip().lower() in ("", "none")):
        if setting.optional:
            return None
        if raw is None:
            raise _refusal(setting, raw, "a value")
    return _READERS[setting.kind](setting, raw)


def format_value(kind: ValueKind, value: Any) -> str:
    """Return readable text that `read_value` reads back as `value`: `10s`, `10MiB`, `true`, `none`, one item a line."""
    if value is None:
        return "none"
    match kind:
        case ValueKind.DURATION:
            return format_duration(value)
        case ValueKind.SIZE:
            return format_size(value)
        case ValueKind.SWITCH:
            return "true" if value else "false"
        case (
            ValueKind.PATTERNS | ValueKind.RESOLVES | ValueKind.NETWORKS | ValueKind.HEADERS | ValueKind.CREDENTIALS
            | ValueKind.EXTRACTS | ValueKind.PLUGINS
        ):  # fmt: skip
            return "\n".join(value)
        case (
            ValueKind.COUNT
            | ValueKind.TEXT
            | ValueKind.CONTACT
            | ValueKind.SCOPE
            | ValueKind.GROUPING
            | ValueKind.PROXY
            | ValueKind.SECRET
        ):
            return str(value)
        case _:
            assert_never(kind)


def terms_of(setting: Setting) -> str:
    """Return what may be given, in which unit, the default, and what a resume may do, on one line for people."""
    least = f", {format_value(setting.kind, setting.least)} or more" if setting.kind in _NUMBERS and setting.least else ""
    kind = f"A list of {setting.kind.value}" if setting.repeatable else _TAKES.get(setting.kind, setting.kind.value)
    if setting.kind in CHOICES:
        kind = " | ".join(CHOICES[setting.kind])
    default = format_value(setting.kind, setting.default).replace("\n", " ") or "nothing"
    none = ", or none" if setting.optional else ""
    return f"{kind}{least}{none}. Default: {default}. On resume: {setting.change.value}."


def shown(raw: object) -> str:
    """Return `raw` as one line for an error text, cut where it is long."""
    text = repr(raw)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _refusal(setting: Setting, raw: object, expected: str) -> ConfigError:
    or_none = ", or none" if setting.optional else ""
    return ConfigError(f"{setting.key}: expected {expected}{or_none}, not {shown(raw)}")


def _read_number(setting: Setting, raw: object) -> int | float:
    is_duration = setting.kind is ValueKind.DURATION
    try:
        value = _duration(raw) if is_duration else _whole(setting.kind, raw)
    except (ValueError, OverflowError):
        value = math.nan
    most = MOST_DURATION_S if is_duration else MOST_COUNT
    if value > most:
        raise _refusal(setting, raw, f"at most {format_value(setting.kind, most)}")
    if not value >= setting.least:  # NaN too
        raise _refusal(setting, raw, f"{_like(setting.kind)}, {_least(setting)} or more")
    return value


def _duration(raw: object) -> float:
    if isinstance(raw, str):
        return parse_duration(raw)
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        return float(raw)
    raise ValueError


def _whole(kind: ValueKind, raw: object) -> int:
    if isinstance(raw, str):
        if kind is ValueKind.SIZE:
            return parse_size(raw)
        if re.fullmatch(r"\s*\d{1,20}\s*", raw, re.ASCII):
            return int(raw)
    elif isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    raise ValueError


def _like(kind: ValueKind) -> str:
    if kind is ValueKind.DURATION:
        return "a duration like 500ms, 10s, 5m or 2h"
    return "a size like 512KiB, 10MiB or 1GiB" if kind is ValueKind.SIZE else "a whole number"


def _least(setting: Setting) -> str:
    return format_value(setting.kind, setting.least)


def _read_switch(setting: Setting, raw: object) -> bool:
    if isinstance(raw, bool | int | str):
        name = str(raw).strip().lower()
        if name in _SWITCHES:
            return _SWITCHES[name]
    raise _refusal(setting, raw, "on or off (true/false, yes/no, 1/0)")


def _read_text(setting: Setting, raw: object) -> str:
    # It goes into a header field: anything but printable ASCII would be refused there, or end the field (RFC 9110 5.5).
    if isinstance(raw, str) and re.fullmatch(r"[!-~]([ -~]*[!-~])?", raw.strip()):
        return raw.strip()
    raise _refusal(setting, raw, "one line of printable ASCII text")


_EMAIL = r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*"
"""An e-mail address as browsers take it (WHATWG HTML 4.10.5.1.5): a subset of RFC 5322's that needs no quoting."""
# It goes into a comment of the user agent, which parentheses or a backslash would end or break (RFC 9110 section 5.6.5).
_CONTACT_URL = r"https?://[A-Za-z0-9.:\[\]-]+([/?#][!-'*-\[\]-~]*)?"


def is_email(text: str) -> bool:
    """Return whether `text` is an e-mail address (and nothing else)."""
    return "@" in text and re.fullmatch(_EMAIL, text) is not None


def _read_contact(setting: Setting, raw: object) -> str:
    text = raw.strip() if isinstance(raw, str) else None
    if text is not None and text.lower() in ("", "none"):
        return ""
    if text is not None and (is_email(text) or re.fullmatch(_CONTACT_URL, text)):
        return text
    raise _refusal(setting, raw, "an e-mail address or an http(s) URL without parentheses, or nothing")


def _read_choice(setting: Setting, raw: object) -> StrEnum:
    choices = CHOICES[setting.kind]
    modes = [mode.value for mode in choices]
    expected = f"{', '.join(modes[:-1])} or {modes[-1]}"
    if not isinstance(raw, str):
        raise _refusal(setting, raw, expected)
    name = raw.strip().lower()
    if name not in modes:
        from difflib import get_close_matches  # noqa: PLC0415  (1 ms of a start, which few need)

        near = get_close_matches(name, modes, n=1, cutoff=0.0)[0]
        raise _refusal(setting, raw, f"{expected} (the nearest is {near!r})")
    return choices(name)


def _items(setting: Setting, raw: object) -> list[str]:
    items = [line for line in raw.splitlines() if line.strip()] if isinstance(raw, str) else raw
    if not isinstance(items, list | tuple):
        raise _refusal(setting, raw, "a list of texts")
    for item in items:
        if not isinstance(item, str) or not item.strip() or not _is_unicode(item):
            raise _refusal(setting, item, "text that is not empty")
    return list(items)


def _is_unicode(text: str) -> bool:
    # An environment variable that is not UTF-8 arrives as lone surrogates, which cannot be stored.
    return not any("\ud800" <= char <= "\udfff" for char in text)


def _read_items(setting: Setting, raw: object) -> tuple[str, ...]:
    return tuple(_checked(setting, item) for item in _items(setting, raw))


def _read_checked(setting: Setting, raw: object) -> str:
    if not isinstance(raw, str) or not _is_unicode(raw):
        raise _refusal(setting, type(raw).__name__, "text")
    return _checked(setting, raw)


def _checked(setting: Setting, item: str) -> str:
    try:
        return _CHECKS[setting.kind](item)
    except ValueError as error:
        if setting.kind in _SECRETIVE:
            raise ConfigError(f"{setting.key}: expected {error}; what was given is not shown") from None
        raise _refusal(setting, item, str(error)) from error


_READERS: Mapping[ValueKind, Callable[[Setting, object], Any]] = {
    ValueKind.COUNT: _read_number,
    ValueKind.DURATION: _read_number,
    ValueKind.SIZE: _read_number,
    ValueKind.SWITCH: _read_switch,
    ValueKind.TEXT: _read_text,
    ValueKind.CONTACT: _read_contact,
    **dict.fromkeys(CHOICES, _read_choice),
    **dict.fromkeys(_ITEM_CHECKS, _read_items),
    **dict.fromkeys(_TEXT_CHECKS, _read_checked),
}
