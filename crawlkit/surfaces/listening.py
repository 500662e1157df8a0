"""From `ADDR:PORT`, as an option has it, to a socket that listens there."""

import re

from crawlkit.errors import UsageError
from crawlkit.net.http_server import listen_at
from crawlkit.net.local import Socket

LOOPBACK = "127.0.0.1"
"""Where is listened unless another address is given: only for who is on this machine."""

_ADDRESS = re.compile(r"(?:(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>[^\s:\[\]]*)):)?(?P<port>[0-9]{1,5})")


def parse_address(option: str, text: str) -> tuple[str, int]:
    """Return host and port of `ADDR:PORT`, `:PORT` or `PORT`; UsageError, naming the option, if it is none."""
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found["port"]) > 65535:
        raise UsageError(f"{option} {text}: expected ADDR:PORT, as in {option} {LOOPBACK}:9464, or a port alone")
    return found["v6"] or found["host"] or LOOPBACK, int(found["port"])


def listen_for(option: str, text: str) -> Socket:
    """Return a socket that listens at `text`; UsageError, naming the option, if it is no address, or one that is taken."""
    host, port = parse_address(option, text)
    try:
        return listen_at(host, port)
    except OSError as error:
        raise UsageError(f"{option} {text}: cannot listen there: {error.strerror}") from error


def url_of(listening: Socket) -> str:
    """Return the URL that a socket is asked by, without a path."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
