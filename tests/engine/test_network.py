"""The network as the settings ask for it, down to the wire."""

import asyncio
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from crawlkit.config import Config, GroupBy
from crawlkit.engine.network import check_network
from crawlkit.engine.session import Hooks, Outcome, Surroundings, begin
from crawlkit.errors import ConfigError
from tests.net.h2_server import H2Answer, h2_server
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


def test_a_crawl_may_speak_http_2(tmp_path: Path) -> None:
    async def crawl() -> tuple[Outcome, list[bytes]]:
        home = H2Answer(headers=((b"content-type", b"text/html"),), body=b"<a href=/a>")
        config = Config(http2=True, insecure=True, retries=0, delay=0, min_free_disk=0)
        async with h2_server([H2Answer(b"404"), home]) as server:
            seed = f"https://127.0.0.1:{server.port}/"
            outcome = await begin([seed], tmp_path / "crawl", config, Hooks(), Surroundings())
            assert server.connections == 1
            return outcome, server.targets()

    outcome, targets = asyncio.run(crawl())
    assert (outcome.counters.pages, outcome.counters.failures) == (2, 0)
    assert targets == [b"/robots.txt", b"/", b"/a"]


def test_http_2_through_a_proxy_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^http2: not through a proxy"):
        check_network(Config(http2=True, proxy="http://proxy.test"))
    check_network(Config(http2=True))


def test_grouping_by_address_through_a_proxy_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^group_by: what is behind a proxy has no address"):
        check_network(Config(group_by=GroupBy.ADDRESS, proxy="http://proxy.test"))
    check_network(Config(group_by=GroupBy.ADDRESS))


def test_without_its_packages_http_2_is_refused_with_the_way_out_before_there_is_a_directory(tmp_path: Path) -> None:
    without = "import sys; sys.modules['h2'] = None; from crawlkit.surfaces.cli import run_cli; sys.exit(run_cli(sys.argv[1:]))"
    command = [sys.executable, "-c", without, "run", "http://127.0.0.1:9/", "-d", str(tmp_path / "x.crawl"), "--retries", "0"]
    refused = subprocess.run([*command, "--http2"], capture_output=True, text=True, timeout=20, check=False)
    assert refused.returncode == 2
    assert "pip install 'crawlkit[http2]'" in refused.stderr
    assert list(tmp_path.iterdir()) == []
    plain = subprocess.run([*command, "--no-robots"], capture_output=True, text=True, timeout=20, check=False)
    assert plain.returncode == 1
    assert "net.connect" in plain.stderr


@pytest.mark.parametrize(
    ("roots", "problem"),
    [("no.pem", "^SSL_CERT_FILE: .*no.pem cannot be read: No"), ("empty.pem", "there is no certificate in ")],
)
def test_roots_that_cannot_be_read_are_refused_before_there_is_a_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, roots: str, problem: str
) -> None:
    (tmp_path / "empty.pem").touch()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / roots))
    seeds = ["http://127.0.0.1:9/"]
    with pytest.raises(ConfigError, match=problem):
        asyncio.run(begin(seeds, tmp_path / "x.crawl", Config(), Hooks(), Surroundings()))
    assert not (tmp_path / "x.crawl").exists()
    check_network(Config(insecure=True))
