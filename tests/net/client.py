"""A fetcher over a real transport, for tests against the raw server."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import uvloop

from crawlkit.model import FetchFailure, Response
from crawlkit.net.fetch import Fetcher
from crawlkit.net.proxy import Proxy
from crawlkit.net.resolver import GuardedResolver, private_seed_addresses
from crawlkit.net.transport import open_transport
from tests.net.raw_server import RawServer, Script, raw_server

NO_ROOTS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
LONG_S = 20.0  # never reached by a test that passes
LoopFactory = Callable[[], asyncio.AbstractEventLoop]
BOTH_LOOPS = pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])


@asynccontextmanager
async def open_fetcher(
    resolver: GuardedResolver,
    *,
    timeout_s: float = LONG_S,
    max_body_bytes: int = 1 << 20,
    tls: ssl.SSLContext = NO_ROOTS,
    proxy: Proxy | None = None,
) -> AsyncIterator[Fetcher]:
    transport = open_transport(resolver, connections=4, tls=tls, proxy=proxy)
    try:
        yield Fetcher(transport, timeout_s=timeout_s, max_body_bytes=max_body_bytes, user_agent="testkit/1.0")
    finally:
        await transport.aclose()


async def resolver_for(server: RawServer) -> GuardedResolver:
    """A resolver that lets a crawl seeded with this server reach it."""
    return GuardedResolver((), await private_seed_addresses([server.url()]))


async def fetch_scripts(
    *scripts: Script | bytes, timeout_s: float = LONG_S, max_body_bytes: int = 1 << 20, times: int = 1
) -> list[Response | FetchFailure]:
    async with raw_server(scripts) as server:
        resolver = await resolver_for(server)
        async with open_fetcher(resolver, timeout_s=timeout_s, max_body_bytes=max_body_bytes) as fetcher:
            return [await fetcher.fetch(server.url()) for _ in range(times)]


async def fetch_script(
    script: Script | bytes, *, timeout_s: float = LONG_S, max_body_bytes: int = 1 << 20
) -> Response | FetchFailure:
    answers = await fetch_scripts(script, timeout_s=timeout_s, max_body_bytes=max_body_bytes)
    return answers[0]
