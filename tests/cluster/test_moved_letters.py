"""`verify` once rows have moved: a letter about what a page leads to waits with the partition that the page once was in."""

from pathlib import Path

import pytest

from crawlkit.cluster.founding import Founding
from crawlkit.cluster.moves import repartition
from crawlkit.config import Config, ScopeMode
from crawlkit.engine.partitions import Partitions
from crawlkit.engine.verify import Thoroughness
from crawlkit.engine.verify_partitions import verify_partitions
from crawlkit.model import Kind, Record
from crawlkit.policy.partition import Owners, node_of
from crawlkit.state.crawl import CrawlState
from crawlkit.state.findings import Rule
from crawlkit.state.letters import Letter, LetterKind
from crawlkit.state.partitions import member_directory
from crawlkit.testing.clock import ManualClock

OWNERS = Owners.even(2)
THERE, HERE = (next(f"h{n}.test" for n in range(99) if OWNERS.of(f"h{n}.test") == owner) for owner in (0, 1))
PAGE, TARGET = f"http://{HERE}/", f"http://{THERE}/target"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A crawl of one page, in partition 1, whose letter about a URL of partition 0 has not left."""
    Founding([PAGE], Config(scope=ScopeMode.ANY), OWNERS, {}, ManualClock()).make_all(tmp_path, 2)
    with CrawlState.open(member_directory(tmp_path, 1)) as state:
        host = state.hosts.get(HERE)
        row = state.frontier.peek(host, state.distances.lower)
        assert row is not None
        state.frontier.take(host, row)
        head = state.frontier.finish(PAGE, host).head
        record = Record(url=PAGE, kind=Kind.PAGE, **head._asdict(), links=(TARGET,), attempts=1, body_bytes=1)
        state.pages.put(record)
        state.counters.settled(Kind.PAGE)
        state.counters.body_bytes += 1
        host.record.pages += 1
        state.letters.post(node_of(THERE), Letter(LetterKind.LINK, TARGET, 1, via=PAGE))
        state.checkpoint()
    return tmp_path


def unseen(directory: Path) -> bool:
    return Rule.EDGES_SEEN in verify_partitions(Partitions.read(directory), Thoroughness.FULL).report.broken


def test_what_a_letter_is_about_need_not_have_been_seen_wherever_the_page_and_the_letter_are(directory: Path) -> None:
    assert not unseen(directory)
    repartition(directory, 1, ManualClock().now())
    assert not unseen(directory)


def test_what_no_letter_is_about_has_to_have_been_seen(directory: Path) -> None:
    repartition(directory, 1, ManualClock().now())
    with CrawlState.open(member_directory(directory, 1)) as state:
        state.letters.acknowledge(node_of(THERE), 1)
        state.checkpoint()
    assert unseen(directory)
