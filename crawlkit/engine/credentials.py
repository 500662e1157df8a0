"""What the requests of a run carry besides the usual: the settings' headers, each host's secret and the proxy's, read anew.

The settings, which are stored, say only where a secret is; what is read from there stays in memory.
"""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Final, assert_never

import msgspec

from crawlkit.config import Config
from crawlkit.config_items import Header, SecretPlace, is_field_value, parse_credential, parse_header, parse_secret_place
from crawlkit.errors import ConfigError
from crawlkit.net.fetch import ExtraHeaders

_MOST_FILE_BYTES: Final = 64 * 1024


class _Secret(msgspec.Struct, frozen=True):
    """Where a secret is, and what it is for, as a message begins."""

    purpose: str
    place: SecretPlace
    name: str


class Carried(msgspec.Struct, frozen=True):
    """What requests carry: `extra` to servers, `proxy_proof` (a Proxy-Authorization) to the proxy."""

    extra: ExtraHeaders = ExtraHeaders()
    proxy_proof: bytes | None = None

    def __repr__(self) -> str:  # all of it is secret
        return "Carried()"


def carried_by(config: Config, environ: Mapping[str, str]) -> Carried:
    """Return what `config` has requests carry, secrets read from `environ` and files; ConfigError names what is not there."""
    authorization: dict[str, bytes] = {}
    for item in config.auth:
        found = parse_credential(item)
        if found.host in authorization:
            raise ConfigError(f"auth: {found.host}: given twice")
        authorization[found.host] = _basic(_Secret(f"auth: {found.host}", found.place, found.name), environ)
    everywhere = tuple(_header(parse_header(item), environ) for item in config.header)
    extra = ExtraHeaders(everywhere, authorization)
    if config.proxy is None or config.proxy_auth is None:
        return Carried(extra)
    return Carried(extra, _basic(_Secret("proxy_auth", *parse_secret_place(config.proxy_auth)), environ))


def environment_names(config: Config) -> frozenset[str]:
    """Return the names of the environment variables that hold secrets of `config`."""
    places = [(found.place, found.name) for found in map(parse_credential, config.auth)]
    places += [(header.place, header.place_name) for header in map(parse_header, config.header) if header.value is None]
    places += [] if config.proxy_auth is None else [parse_secret_place(config.proxy_auth)]
    return frozenset(name for place, name in places if place is SecretPlace.ENV)


def _header(header: Header, environ: Mapping[str, str]) -> tuple[bytes, bytes]:
    """Return name and value of a header, the value read from where the settings say that it is."""
    value = header.value
    if value is None:
        secret = _Secret(f"header: {header.name}", header.place, header.place_name)
        value = _read(secret, environ)
        if not is_field_value(value):
            raise _missing(secret, "does not hold one line of printable ASCII text")
    return header.name.encode(), value.encode()


def _basic(secret: _Secret, environ: Mapping[str, str]) -> bytes:
    """Return the value of the Authorization header (RFC 7617 section 2)."""
    text = _read(secret, environ)
    if ":" not in text or not all(char.isprintable() for char in text):
        raise _missing(secret, "does not hold one line user:password")
    return b"Basic " + base64.b64encode(text.encode())


def _read(secret: _Secret, environ: Mapping[str, str]) -> str:
    match secret.place:
        case SecretPlace.ENV:
            if secret.name not in environ:
                raise _missing(secret, "is not set")
            return environ[secret.name]
        case SecretPlace.FILE:
            return _read_file(secret)
        case _:
            assert_never(secret.place)


def _read_file(secret: _Secret) -> str:
    try:
        with Path(secret.name).open("rb") as file:
            return file.read(_MOST_FILE_BYTES).decode().rstrip("\r\n")
    except OSError as error:
        raise _missing(secret, f"cannot be read: {error.strerror or 'input or output error'}") from error
    except UnicodeDecodeError:
        raise _missing(secret, "is not UTF-8 text") from None  # the error holds what was read


def _missing(secret: _Secret, problem: str) -> ConfigError:
    where = "environment variable" if secret.place is SecretPlace.ENV else "file"
    return ConfigError(f"{secret.purpose}: the {where} {secret.name} {problem}")
