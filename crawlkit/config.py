"""The settings: one frozen value whose fields carry all there is to know of each key.

`Config` holds what is in force, in base units (seconds, bytes). The metadata of each field says how its text is read,
how it is documented, and whether a resume may change it: options, environment, files and the README's table are all
made from it. How one value is read is `config_values`, where settings come from is `surfaces.settings`, what is frozen
in a crawl directory is `state`.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

import msgspec

from crawlkit.config_extract import check_names
from crawlkit.config_items import parse_resolve
from crawlkit.config_units import KIB, parse_duration, parse_size
from crawlkit.config_values import (
    Change,
    Setting,
    ValueKind,
    format_value,
    is_email,
    read_value,
    shown,
    terms_of,
)
from crawlkit.errors import ConfigError
from crawlkit.model import GroupBy, ScopeMode

__all__ = [
    "KIB",
    "SETTINGS",
    "USER_AGENT",
    "VERSION",
    "Change",
    "Config",
    "GroupBy",
    "ScopeMode",
    "Setting",
    "ValueKind",
    "find_setting",
    "format_value",
    "parse_duration",
    "parse_resolve",
    "parse_size",
    "read_value",
    "settings_hash",
    "to_toml",
    "to_values",
]

VERSION = "0.1.0"
_ABOUT = "(+https://pypi.org/project/crawlkit/)"
USER_AGENT = f"crawlkit/{VERSION} {_ABOUT}"


def _setting(default: Any, kind: ValueKind, change: Change, help: str, *, least: float = 0, short: str | None = None) -> Any:
    metadata = {"kind": kind, "change": change, "help": help, "least": least, "short": short}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The settings in force. Durations in seconds, sizes in bytes, None for no limit.

    Making one checks every value, with the rules of `read_value`: ConfigError says which cannot be.
    """

    workers: int = _setting(16, ValueKind.COUNT, Change.FREE, "Most fetches in flight at once.", least=1, short="w")
    timeout: float = _setting(
        10.0, ValueKind.DURATION, Change.FREE, "For one whole request: connect to last byte.", least=0.001, short="t"
    )
    scope: ScopeMode = _setting(  # noqa: RUF009  (a field specifier, as for the others)
        ScopeMode.HOST, ValueKind.SCOPE, Change.FIXED, "What is in scope, from the seeds: host, domain, prefix or any."
    )
    include: tuple[str, ...] = _setting(
        (), ValueKind.PATTERNS, Change.FIXED, "A URL is in only if some include matches; searched in the normal form."
    )
    exclude: tuple[str, ...] = _setting((), ValueKind.PATTERNS, Change.FIXED, "A URL is out if an exclude matches.")
    max_depth: int | None = _setting(None, ValueKind.COUNT, Change.RAISE, "Most links between a seed and a page.")
    max_pages: int | None = _setting(None, ValueKind.COUNT, Change.RAISE, "Most pages of the whole crawl.", least=1)
    max_pages_per_host: int | None = _setting(None, ValueKind.COUNT, Change.RAISE, "Most pages of one host.", least=1)
    max_time: float | None = _setting(
        None, ValueKind.DURATION, Change.RAISE, "Most time spent crawling, over all resumes.", least=0.001
    )
    max_body: int = _setting(
        10 * KIB * KIB,
        ValueKind.SIZE,
        Change.FIXED,
        "Cap on decoded bytes of one body; what is cut is marked.",
        least=1,
    )
    max_links: int = _setting(
        10_000,
        ValueKind.COUNT,
        Change.FIXED,
        "Most links kept of one page; where there are more it is marked truncated.",
        least=1,
    )
    max_url_length: int = _setting(2048, ValueKind.COUNT, Change.FIXED, "Most characters of a URL.", least=1)
    max_path_repeats: int = _setting(
        3, ValueKind.COUNT, Change.FIXED, "Most times a path may repeat a segment, or a run of them, in a row.", least=1
    )
    max_param_repeats: int = _setting(
        3, ValueKind.COUNT, Change.FIXED, "Most times a query may repeat a parameter with its value.", least=1
    )
    max_params: int = _setting(32, ValueKind.COUNT, Change.FIXED, "Most parameters of a query.", least=1)
    template_budget: int = _setting(
        1250, ValueKind.COUNT, Change.FIXED, "Most URLs of one shape before their pages say something new; 0 for no limit."
    )
    delay: float = _setting(1.0, ValueKind.DURATION, Change.FREE, "The gap between requests to one host.")
    max_crawl_delay: float = _setting(
        60.0, ValueKind.DURATION, Change.FIXED, "Longest Crawl-delay that is kept; above it a host's URLs are excluded."
    )
    max_retry_after: float = _setting(86400.0, ValueKind.DURATION, Change.FREE, "Longest wait that a Retry-After may ask for.")
    host_concurrency: int = _setting(1, ValueKind.COUNT, Change.FREE, "Most requests in flight to one host.", least=1)
    group_by: GroupBy = _setting(  # noqa: RUF009  (as above)
        GroupBy.HOST, ValueKind.GROUPING, Change.FREE, "What gaps hold for: each host, or each address that hosts lead to too."
    )
    robots: bool = _setting(True, ValueKind.SWITCH, Change.FIXED, "Obey robots.txt.")
    extract: tuple[str, ...] = _setting(
        (),
        ValueKind.EXTRACTS,
        Change.FIXED,
        "A field of each page: text, or an attribute, of what a selector matches; NAME[]= for all.",
    )
    near_duplicates: bool = _setting(
        False, ValueKind.SWITCH, Change.FIXED, "Also tell which pages are nearly alike, by 64 bits of their text."
    )
    text: bool = _setting(False, ValueKind.SWITCH, Change.FIXED, "Keep the main text of each page.")
    anchors: bool = _setting(False, ValueKind.SWITCH, Change.FIXED, "Keep what each page calls its links, and their rel.")
    render: bool = _setting(
        False, ValueKind.SWITCH, Change.FIXED, "Show each page in a browser, and read it after its scripts have run."
    )
    sitemaps: bool = _setting(
        False, ValueKind.SWITCH, Change.FIXED, "Also take URLs from the sitemaps that robots.txt files name, and from seeds."
    )
    max_sitemap_urls: int = _setting(
        1_000_000, ValueKind.COUNT, Change.FIXED, "Most URLs, and further sitemaps, that the sitemaps of one host may name."
    )
    plugin: tuple[str, ...] = _setting(
        (), ValueKind.PLUGINS, Change.NOTED, "A Python file, or an entry point's name, whose functions have a say in the crawl."
    )
    user_agent: str = _setting(
        USER_AGENT, ValueKind.TEXT, Change.FIXED, "Sent with each request; its product token is matched in robots.txt."
    )
    contact: str = _setting(
        "", ValueKind.CONTACT, Change.FIXED, "Who runs this crawl: in the default user agent, and as From if an address."
    )
    retries: int = _setting(
        3, ValueKind.COUNT, Change.FREE, "For failures that may pass: timeouts, connection errors, 429, 5xx."
    )
    checkpoint_interval: float = _setting(
        1.0, ValueKind.DURATION, Change.FREE, "How often what has settled is written, as one synced batch.", least=0.001
    )
    min_free_disk: int = _setting(
        256 * KIB * KIB, ValueKind.SIZE, Change.FREE, "Stop in order when less than this is free for the crawl; 0 for never."
    )
    warc: bool = _setting(False, ValueKind.SWITCH, Change.FIXED, "Archive every exchange as WARC 1.1.")
    warc_size: int = _setting(
        1024 * KIB * KIB, ValueKind.SIZE, Change.FREE, "Size at which another file of the archive is begun.", least=1
    )
    resolve: tuple[str, ...] = _setting(
        (), ValueKind.RESOLVES, Change.FIXED, "Connect to this address for host names that match."
    )
    allow_private: tuple[str, ...] = _setting(
        (), ValueKind.NETWORKS, Change.FIXED, "Let links lead to private addresses in this network; without a value, in all."
    )
    header: tuple[str, ...] = _setting(
        (), ValueKind.HEADERS, Change.FIXED, "Sent with each request; a secret as env:NAME or file:PATH, where it is read."
    )
    auth: tuple[str, ...] = _setting(
        (), ValueKind.CREDENTIALS, Change.FIXED, "Where to read the user:password that is sent to this host, and to no other."
    )
    proxy: str | None = _setting(
        None, ValueKind.PROXY, Change.FREE, "Send all requests through this HTTP proxy; environment variables name none."
    )
    proxy_auth: str | None = _setting(
        None, ValueKind.SECRET, Change.FREE, "Where to read the user:password that is sent to the proxy."
    )
    http2: bool = _setting(False, ValueKind.SWITCH, Change.FREE, "Speak HTTP/2 with https servers that take it.")
    insecure: bool = _setting(False, ValueKind.SWITCH, Change.FIXED, "Do not verify the certificates of servers.")

    def __post_init__(self) -> None:
        for setting in SETTINGS.values():
            object.__setattr__(self, setting.key, read_value(setting, getattr(self, setting.key)))
        try:
            check_names(self.extract)
        except ValueError as error:
            raise ConfigError(f"extract: {error}") from error

    @classmethod
    def from_values(cls, values: Mapping[str, object]) -> Self:
        """Return the settings that `values` give, the rest at their defaults; values as `read_value` takes them.

        Raises:
            ConfigError: a key is unknown or given twice (`max-depth` and `max_depth`), or a value cannot be.
        """
        named: dict[str, Any] = {}
        for key, raw in values.items():
            setting = find_setting(key)
            if setting.key in named:
                raise ConfigError(f"{setting.key}: given twice")
            named[setting.key] = read_value(setting, raw)
        return cls(**named)

    def product_token(self) -> str:
        """Return the user agent's product token, as robots.txt names it (RFC 9309 section 2.2.1)."""
        return product_token_of(self.user_agent) or "crawlkit"

    def sent_user_agent(self) -> str:
        """Return the User-Agent header: the setting, with the contact in its comment if it is the default (of any version)."""
        is_ours = self.user_agent.startswith("crawlkit/") and self.user_agent.endswith(f" {_ABOUT}")
        return f"{self.user_agent[:-1]}; {self.contact})" if is_ours and self.contact else self.user_agent

    def from_address(self) -> str | None:
        """Return the From header (RFC 9110 section 10.1.2): the contact if it is an e-mail address."""
        return self.contact if is_email(self.contact) else None


def product_token_of(user_agent: str) -> str | None:
    """Return the product token that `user_agent` begins with, None if it begins with none."""
    match = re.match(r"[A-Za-z_-]+", user_agent)
    return match.group() if match else None


SETTINGS: Mapping[str, Setting] = {f.name: Setting(key=f.name, default=f.default, **f.metadata) for f in fields(Config)}
"""Every key, in the order of the documentation."""


def find_setting(key: str) -> Setting:
    """Return the setting `key` (`-` and `_` alike); ConfigError names the nearest known one."""
    name = key.strip().lower().replace("-", "_")
    if name in SETTINGS:
        return SETTINGS[name]
    from difflib import get_close_matches  # noqa: PLC0415  (1 ms of a start, which few need)

    near = get_close_matches(name, SETTINGS, n=1, cutoff=0.0)
    raise ConfigError(f"unknown setting {shown(key)}; the nearest known one is {near[0]!r} (crawlkit config show lists all)")


def changed_config(config: Config, changes: Mapping[str, object]) -> Config:
    """Return the settings of a crawl that is resumed with `changes`; ConfigError for one that its report rests on.

    How the work is done may change freely; a limit may be raised or lifted, not lowered; the rest is refused.
    """
    read = {key: read_value(find_setting(key), raw) for key, raw in changes.items()}
    for key, value in read.items():
        before = getattr(config, key)
        match SETTINGS[key].change:
            case Change.FREE | Change.NOTED:
                continue
            case Change.RAISE if value is None or (before is not None and value >= before):
                continue
            case Change.RAISE:
                raise ConfigError(f"{key}: this limit was {shown(before)} when the crawl began and may only be raised")
            case Change.FIXED if value == before:
                continue
            case Change.FIXED:
                raise ConfigError(f"{key}: frozen when the crawl began; for another value start another crawl")
    return Config.from_values({**to_values(config), **read})


def to_values(config: Config) -> dict[str, Any]:
    """Return every key with its value in base units, as JSON holds it: for storage, and read back by `from_values`."""
    return {key: _plain(getattr(config, key)) for key in SETTINGS}


def settings_hash(config: Config) -> str:
    """Return `sha256:...` over the settings that decide what the report holds.

    Settings that a resume may change freely (workers, delay and their like) are left out, so that the same crawl done
    by more workers has the same hash.
    """
    decisive = {key: _plain(getattr(config, key)) for key, s in SETTINGS.items() if s.change is not Change.FREE}
    return f"sha256:{hashlib.sha256(msgspec.json.encode(decisive, order='sorted')).hexdigest()}"


def to_toml(config: Config) -> str:
    """Return the settings as TOML text for people: every key, what it means, durations and sizes with units.

    `Config.from_values(tomllib.loads(text))` gives the same settings back.
    """
    lines = ["# The settings of a crawl. Durations: 500ms, 10s, 2h; sizes: 10MiB; a limit may be none.", ""]
    for key, setting in SETTINGS.items():
        lines += [f"# {setting.help}", f"# {terms_of(setting)}", f"{key} = {_toml_value(setting, getattr(config, key))}", ""]
    return "\n".join(lines[:-1]) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, str) else value


def _toml_value(setting: Setting, value: Any) -> str:
    if isinstance(value, bool | int) and setting.kind is not ValueKind.SIZE:
        return format_value(setting.kind, value)
    if isinstance(value, tuple):
        return f"[{', '.join(_toml_text(item) for item in value)}]"
    return _toml_text(format_value(setting.kind, value))


def _toml_text(text: str) -> str:
    """Return a TOML string: literal where backslashes would double, else basic (https://toml.io/en/v1.0.0#string)."""
    if "\\" in text and text.isprintable() and "'" not in text:
        return f"'{text}'"
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
