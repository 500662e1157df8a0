"""What the requests of a run carry besides the usual: the settings' headers, and each host's secret, read anew.

The settings, which are stored, say only where a secret is; what is read from there stays in memory.
"""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Final, assert_never

from crawlkit.config import Config
from crawlkit.config_items import Credential, SecretPlace, parse_credential, parse_header
from crawlkit.errors import ConfigError
from crawlkit.net.fetch import ExtraHeaders

_MOST_FILE_BYTES: Final = 64 * 1024


def extra_headers(config: Config, environ: Mapping[str, str]) -> ExtraHeaders:
    """Return the headers of `config`, reading secrets from `environ` and files; ConfigError names what is not there."""
    authorization: dict[str, bytes] = {}
    for item in config.auth:
        credential = parse_credential(item)
        if credential.host in authorization:
            raise ConfigError(f"auth: {credential.host}: given twice")
        authorization[credential.host] = _basic(credential, environ)
    return ExtraHeaders(tuple(map(parse_header, config.header)), authorization)


def _basic(credential: Credential, environ: Mapping[str, str]) -> bytes:
    """Return the value of the Authorization header (RFC 7617 section 2)."""
    secret = _read(credential, environ)
    if ":" not in secret or not all(char.isprintable() for char in secret):
        raise _missing(credential, "does not hold one line user:password")
    return b"Basic " + base64.b64encode(secret.encode())


def _read(credential: Credential, environ: Mapping[str, str]) -> str:
    match credential.place:
        case SecretPlace.ENV:
            if credential.name not in environ:
                raise _missing(credential, "is not set")
            return environ[credential.name]
        case SecretPlace.FILE:
            return _read_file(credential)
        case _:
            assert_never(credential.place)


def _read_file(credential: Credential) -> str:
    try:
        with Path(credential.name).open("rb") as file:
            return file.read(_MOST_FILE_BYTES).decode().rstrip("\r\n")
    except OSError as error:
        raise _missing(credential, f"cannot be read: {error.strerror or 'input or output error'}") from error
    except UnicodeDecodeError:
        raise _missing(credential, "is not UTF-8 text") from None  # the error holds what was read


def _missing(credential: Credential, problem: str) -> ConfigError:
    where = "environment variable" if credential.place is SecretPlace.ENV else "file"
    return ConfigError(f"auth: {credential.host}: the {where} {credential.name} {problem}")
