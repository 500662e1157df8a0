"""What every request carries, and what only the requests to one host do."""

import asyncio
from collections.abc import Sequence

from crawlkit.net.fetch import ExtraHeaders, Fetcher
from crawlkit.net.resolver import GuardedResolver, parse_resolves
from crawlkit.net.transport import open_transport
from tests.net.client import LONG_S, NO_ROOTS
from tests.net.raw_server import End, Script, raw_server

ANSWER = Script((b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",), End.KEEP)


async def _heads(extra: ExtraHeaders, hosts: Sequence[str]) -> list[list[bytes]]:
    async with raw_server([ANSWER]) as server:
        rules = parse_resolves([f"*=127.0.0.1:{server.port}"])
        transport = open_transport(GuardedResolver(rules), connections=2, tls=NO_ROOTS)
        try:
            fetcher = Fetcher(transport, timeout_s=LONG_S, max_body_bytes=9, user_agent="testkit/1.0", extra=extra)
            for host in hosts:
                await fetcher.fetch(f"http://{host}/")
        finally:
            await transport.aclose()
        return [head.removesuffix(b"\r\n\r\n").split(b"\r\n")[1:] for head in server.heads]


def heads(extra: ExtraHeaders, *hosts: str) -> list[list[bytes]]:
    """Return the header lines of one request to each host, as they arrived."""
    return asyncio.run(_heads(extra, hosts))


def test_a_header_of_the_settings_goes_to_every_host_and_takes_the_place_of_ours() -> None:
    extra = ExtraHeaders(((b"accept", b"text/html"), (b"X-A", b"1"), (b"X-A", b"2")))
    for number, lines in enumerate(heads(extra, "a.test", "b.test")):
        assert lines[0] == b"Host: %b.test" % b"ab"[number : number + 1]
        assert lines[-3:] == [b"accept: text/html", b"X-A: 1", b"X-A: 2"]
        assert [line for line in lines if line.lower().startswith(b"accept:")] == [b"accept: text/html"]


def test_a_secret_goes_to_its_host_at_any_port_and_to_no_other() -> None:
    extra = ExtraHeaders((), {"a.test": b"Basic eA=="})
    hosts = ["a.test", "b.test", "a.test:8080", "x.a.test", "a.test.b.test", "test", "a.test"]
    told = [b"Authorization: Basic eA==" in lines for lines in heads(extra, *hosts)]
    assert told == [True, False, True, False, False, False, True]
