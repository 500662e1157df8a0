"""Texts of settings that have a grammar of their own, most of them repeatable: checked and made regular.

A check returns the item in its regular form, which it returns unchanged, or raises a ValueError that says what was
expected, never what was given: an item may hold a secret.
"""

import ipaddress
import re
import warnings
from collections.abc import Callable
from enum import StrEnum
from typing import Final

import msgspec

ItemCheck = Callable[[str], str]
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

ALL_NETWORKS: Final = "all"
_EVERYWHERE: Final[tuple[Network, ...]] = (ipaddress.IPv4Network("0.0.0.0/0"), ipaddress.IPv6Network("::/0"))

# Fields that are the transport's (RFC 9110 sections 6.6, 7.2, 7.6 and 8.6, RFC 9112 section 6), or whose answer is not a page
# whole and as it is (section 13.1 and 14.2).
_NOT_FREE: Final = frozenset(
    {"connection", "content-length", "expect", "host", "if-match", "if-modified-since", "if-none-match", "if-range"}
    | {"if-unmodified-since", "keep-alive", "proxy-connection", "range", "te", "trailer", "transfer-encoding", "upgrade"}
    | {"accept-encoding"}
)
_OTHER_WAYS: Final = {
    "authorization": "auth",
    "proxy-authorization": "proxy_auth",
    "user-agent": "user_agent",
    "from": "contact",
}
SECRET_HEADERS: Final = frozenset(
    {"api-key", "apikey", "cookie", "private-token", "x-access-token", "x-amz-security-token", "x-api-key", "x-auth-token"}
    | {"x-goog-api-key", "x-vault-token"}
)
"""Fields whose values prove who asks, in lower case: the settings, which are stored, may only say where these are read."""
_FIELD_VALUE: Final = r"[!-~](?:[ \t!-~]*[!-~])?"
_TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # RFC 9110 section 5.6.2


class SecretPlace(StrEnum):
    """Where a secret is kept."""

    ENV = "env"
    FILE = "file"


class PluginPlace(msgspec.Struct, frozen=True):
    """One item of `plugin`: a file or, where that is None, an entry point; its digest or version when the crawl began."""

    file: str | None
    name: str
    pin: str | None


class Credential(msgspec.Struct, frozen=True):
    """One item of `auth`: the secret for `host` (as in a URL's normal form, no brackets) is at `name` of `place`."""

    host: str
    place: SecretPlace
    name: str


class Header(msgspec.Struct, frozen=True):
    """One item of `header`: its `value` or, where that is None, the `place` and `place_name` where it is read."""

    name: str
    value: str | None
    place: SecretPlace = SecretPlace.ENV
    place_name: str = ""


_PLUGIN: Final = (
    r"(?P<file>[^\x00-\x1f\x7f]+\.py)(?:#(?P<digest>sha256:[0-9a-f]{64}))?"
    r"|(?P<name>[A-Za-z_][\w.-]*)(?:#(?P<version>[!-~]+))?"
)
_PLACE: Final = r"(?:(env):([A-Za-z_]\w*)|(file):([^\x00-\x1f\x7f]+))"


def check_pattern(item: str) -> str:
    """Check a regular expression."""
    try:
        with warnings.catch_warnings():
            # `[[:alpha:]]` and its like compile with a FutureWarning and match what nobody means.
            warnings.simplefilter("error")
            re.compile(item)
    except (re.error, OverflowError, RecursionError, Warning) as error:
        raise ValueError(f"a regular expression ({error})") from error
    return item


def check_resolve(item: str) -> str:
    """Check a `GLOB=ADDR[:PORT]`."""
    try:
        parse_resolve(item)
    except ValueError as error:
        why = f" ({error})" if str(error) else ""
        raise ValueError(f"GLOB=ADDR[:PORT] with an IP address, IPv6 in brackets where a port follows{why}") from error
    return item.strip()


def check_network(item: str) -> str:
    """Check a network: an address, with a number of leading bits as in 10.0.0.0/8; or `all`."""
    text = item.strip().lower()
    if text == ALL_NETWORKS:
        return text
    try:
        return str(ipaddress.ip_network(text))
    except ValueError as error:
        raise ValueError(f"a network like 10.0.0.0/8 or fd00::/8, or all ({error})") from error


def check_header(item: str) -> str:
    """Check a `NAME: VALUE`: a token, and printable ASCII (RFC 9110 section 5), or where that is read."""
    match = re.fullmatch(rf"({_TOKEN}):[ \t]*({_FIELD_VALUE})", item.strip(" \t"))
    if match is None:
        raise ValueError("NAME: VALUE, one line of printable ASCII text, as in Accept-Language: de")
    name = match[1].lower()
    if name in _OTHER_WAYS:
        raise ValueError(f"another header than {match[1]}, for which there is the setting {_OTHER_WAYS[name]}")
    if name in _NOT_FREE:
        raise ValueError(f"another header than {match[1]}, which is the crawler's own")
    if name in SECRET_HEADERS and re.fullmatch(_PLACE, match[2], re.ASCII) is None:
        raise ValueError(f"{match[1]}: env:NAME or {match[1]}: file:PATH, where its value is to be read: settings are stored")
    return f"{match[1]}: {match[2]}"


def check_added_header(name: str, value: str) -> None:
    """Check a header that a plugin adds to a request: any that is not the crawler's own; ValueError otherwise."""
    if re.fullmatch(_TOKEN, name) is None or not is_field_value(value):
        raise ValueError("a header is a token and one line of printable ASCII text")
    if name.lower() in _NOT_FREE | {"user-agent", "proxy-authorization"}:
        raise ValueError(f"the header {name} is the crawler's own")


def check_plugin(item: str) -> str:
    """Check a plugin: a Python file or the name of an entry point, perhaps with what it was when the crawl began."""
    text = item.strip()
    if re.fullmatch(_PLUGIN, text) is None:
        raise ValueError("FILE.py, or the name of an entry point of the group crawlkit.plugins")
    return text


def check_credential(item: str) -> str:
    """Check a `HOST=env:NAME` or `HOST=file:PATH`."""
    found = parse_credential(item)
    return f"{f'[{found.host}]' if ':' in found.host else found.host}={found.place}:{found.name}"


def check_secret_place(text: str) -> str:
    """Check an `env:NAME` or `file:PATH`."""
    place, name = parse_secret_place(text)
    return f"{place}:{name}"


def check_proxy(text: str) -> str:
    """Check the URL of a proxy: http or https, a host, perhaps a port. Without one it is that of the scheme."""
    host = r"\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)"
    match = re.fullmatch(rf"(https?)://(?:{host})(?::([0-9]{{1,5}}))?/?", text.strip(), re.ASCII | re.IGNORECASE)
    if match is None or (match[4] and not 1 <= int(match[4]) <= 65535):
        if "@" in text:
            raise ValueError("no user and password in it: where those are read is said by proxy_auth, as env:NAME or file:PATH")
        raise ValueError("http://HOST[:PORT] or https://HOST[:PORT]")
    name = f"[{ipaddress.IPv6Address(match[2])}]" if match[2] else match[3].lower()
    return f"{match[1].lower()}://{name}{f':{int(match[4])}' if match[4] else ''}"


def parse_resolve(text: str) -> tuple[str, str, int | None]:
    """Return (glob, IP address without brackets, port or None) of `GLOB=ADDR[:PORT]`; ValueError otherwise.

    An IPv6 address stands in brackets where a port follows, else as it likes.
    """
    address = r"\[([^\[\]]+)\](?::(\d{1,5}))?|([^\[\]:]+)(?::(\d{1,5}))?|([^\[\]]+)"
    match = re.fullmatch(rf"([!-<>-~]+)=(?:{address})", text.strip(), re.ASCII)
    if match is None:
        raise ValueError
    glob, bracketed, bracketed_port, plain, plain_port, bare = match.groups()
    ip = ipaddress.IPv4Address(plain) if plain else ipaddress.IPv6Address(bracketed or bare)
    digits = bracketed_port or plain_port
    port = int(digits) if digits else None
    if port is not None and not 1 <= port <= 65535:
        raise ValueError("the port is not between 1 and 65535")
    return glob, str(ip), port


def parse_networks(items: tuple[str, ...]) -> tuple[Network, ...]:
    """Return the networks that checked items stand for."""
    if ALL_NETWORKS in items:
        return _EVERYWHERE
    return tuple(map(ipaddress.ip_network, items))


def parse_header(item: str) -> Header:
    """Return the parts of a checked header."""
    name, _, value = item.partition(": ")
    match = re.fullmatch(_PLACE, value, re.ASCII)
    if match is None:
        return Header(name, value)
    return Header(name, None, SecretPlace(match[1] or match[3]), match[2] or match[4])


def is_field_value(text: str) -> bool:
    """Whether a text may be the value of a header: one line of printable ASCII that neither begins nor ends in white space."""
    return re.fullmatch(_FIELD_VALUE, text) is not None


def parse_credential(item: str) -> Credential:
    """Return the parts of a `HOST=env:NAME` or `HOST=file:PATH`; ValueError otherwise."""
    host = r"\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)"
    match = re.fullmatch(rf"(?:{host})={_PLACE}", item.strip(), re.ASCII)
    if match is None:
        raise ValueError("HOST=env:NAME or HOST=file:PATH, where user:password is to be read, HOST in ASCII and without a port")
    name = str(ipaddress.IPv6Address(match[1])) if match[1] else match[2].lower()
    return Credential(name, SecretPlace(match[3] or match[5]), match[4] or match[6])


def parse_plugin(item: str) -> PluginPlace:
    """Return the parts of a checked plugin."""
    match = re.fullmatch(_PLUGIN, item)
    assert match is not None
    return PluginPlace(match["file"], match["name"] or "", match["digest"] or match["version"])


def parse_secret_place(text: str) -> tuple[SecretPlace, str]:
    """Return where an `env:NAME` or `file:PATH` says that a secret is; ValueError otherwise."""
    match = re.fullmatch(_PLACE, text.strip(), re.ASCII)
    if match is None:
        raise ValueError("env:NAME or file:PATH, where user:password is to be read")
    return SecretPlace(match[1] or match[3]), match[2] or match[4]
