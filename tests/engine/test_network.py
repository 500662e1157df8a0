"""The network as the settings ask for it, down to the wire."""

import asyncio
import ssl
from pathlib import Path

import pytest

from crawlkit.config import Config
from crawlkit.engine.session import Hooks, Outcome, Surroundings, begin
from tests.net.raw_server import raw_server

TLS = Path(__file__).parent.parent / "net" / "tls"
PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


async def _crawl(directory: Path, *, insecure: bool) -> tuple[Outcome, list[str]]:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(TLS / "expired.pem", TLS / "key.pem")
    warnings: list[str] = []
    config = Config(insecure=insecure, robots=False, retries=0, delay=0, min_free_disk=0)
    async with raw_server([PAGE], tls=tls) as server:
        seed = server.url(scheme="https")
        return await begin([seed], directory, config, Hooks(on_warning=warnings.append), Surroundings()), warnings


@pytest.mark.parametrize("insecure", [False, True])
def test_certificates_are_verified_unless_it_is_asked_and_warned_otherwise(tmp_path: Path, insecure: bool) -> None:
    outcome, warnings = asyncio.run(_crawl(tmp_path / "crawl", insecure=insecure))

    assert (outcome.counters.pages, outcome.counters.failures) == ((1, 0) if insecure else (0, 1))
    assert len(warnings) == int(insecure)
