"""Who may ask for what. Everybody on this machine can connect, and every page that the browser shows can send requests here."""

import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType

from crawlkit.net.http_server import Asked
from crawlkit.surfaces.control.messages import Do

ORDERS: Mapping[str, Do] = MappingProxyType({"/api/pause": Do.PAUSE, "/api/continue": Do.CONTINUE})


@dataclass(frozen=True, slots=True)
class Access:
    """What a request needs: the token, and a name and port of this server. `name` is how the user called its address."""

    token: str
    name: str
    port: int

    def refusal(self, asked: Asked) -> HTTPStatus | None:
        """Return the status with which a request is refused, None if it may be answered."""
        if not hmac.compare_digest(asked.query.get("token", "").encode(), self.token.encode()):
            return HTTPStatus.FORBIDDEN
        host = asked.headers.get("host", "")
        if not self._is_ours(host):
            return HTTPStatus.FORBIDDEN
        if asked.path in ORDERS:
            if asked.method != "POST":
                return HTTPStatus.METHOD_NOT_ALLOWED
            return None if asked.headers.get("origin", f"http://{host}") == f"http://{host}" else HTTPStatus.FORBIDDEN
        return None if asked.method == "GET" else HTTPStatus.METHOD_NOT_ALLOWED

    def _is_ours(self, host: str) -> bool:
        """Whether a Host header names this server: by an address, which nobody can point elsewhere, or as the user does.

        A name of somebody else's that leads here (DNS rebinding) would let their page read the answers.
        """
        name, _, port = host.rpartition(":")
        if port != str(self.port):
            return False
        return name in ("localhost", self.name) or _is_address(name.removeprefix("[").removesuffix("]"))


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
