"""A crawl in partitions that are processes of their own, each of which asks its host once an hour."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from crawlkit.state.directory import read_manifest
from crawlkit.state.partitions import member_directory
from crawlkit.testing.server import SiteServer
from tests.processes import command, started, wait_until
from tests.surfaces.control.crawls import SITE, is_settled
from tests.surfaces.partitions.dividing import seal_over

LIVE_SITE = SITE | {"e.test/": SITE.reply("a.test", "/")}


@contextmanager
def two_running(cwd: Path, server: SiteServer) -> Iterator[None]:
    """Two partitions that are processes, of http://a.test/ and http://e.test/; each asks its host once an hour."""
    directory = cwd / "x.crawl"
    settings = ("--delay", "1h", "--no-robots", "--retries", "0", "--checkpoint-interval", "50ms")
    with ExitStack() as stack:
        for number, seed in enumerate(("http://a.test/", "http://e.test/")):
            member = member_directory(directory, number)
            member.parent.mkdir(parents=True, exist_ok=True)
            resolve = ("--resolve", f"*.test=127.0.0.1:{server.port}")
            stack.enter_context(started(command("run", seed, "-d", str(member), *settings, *resolve), cwd))
        wait_until(lambda: all(is_settled(member_directory(directory, n)) for n in (0, 1)))
        seal_over(directory, [read_manifest(member_directory(directory, n)).crawl_id for n in (0, 1)], ["http://a.test/"])
        yield
