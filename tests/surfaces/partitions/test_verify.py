"""`verify` of a crawl in partitions: a sound one passes, and each rule between partitions is broken once."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import pytest

from crawlkit.errors import ExitStatus
from crawlkit.policy.partition import node_of
from crawlkit.state.bloom import MappedBloom, boot_id
from crawlkit.state.crawl import CrawlState
from crawlkit.state.directory import read_manifest
from crawlkit.state.findings import Rule
from crawlkit.state.layout import BLOOM, SEEDS
from crawlkit.state.letters import Letter, LetterKind
from crawlkit.state.partitions import member_directory, read_table, write_table
from tests.surfaces.conftest import Cli
from tests.surfaces.partitions.conftest import Pair
from tests.surfaces.partitions.dividing import A, B, E

UNSEEN = f"{E}/unseen"


@contextmanager
def opened(parts: Path, number: int) -> Iterator[CrawlState]:
    """A partition to be changed; what was changed is on disk when the block ends."""
    with CrawlState.open(member_directory(parts, number)) as state:
        yield state
        state.checkpoint()


def link(parts: Path, *urls: str) -> None:
    """Let a page of the first partition lead to these URLs."""
    with opened(parts, 0) as state:
        record = state.pages.get(f"{A}/1")
        assert record is not None
        state.pages.put(msgspec.structs.replace(record, links=(*record.links, *urls)))


def post(parts: Path, number: int, host: str, url: str, *, forgotten: bool = False) -> None:
    with opened(parts, number) as state:
        state.counters.finished = False
        state.letters.post(node_of(host), Letter(LetterKind.LINK, url, 2, 0))
        if forgotten:
            state.letters.acknowledge(node_of(host), 1)


def take(parts: Path, number: int, host: str, sender: int) -> None:
    with opened(parts, number) as state:
        state.letters.take(node_of(host), sender, 5)


def give_away(parts: Path, host: str, to: int) -> None:
    table = read_table(parts)
    owners = [to if node == node_of(host) else owner for node, owner in enumerate(table.owners)]
    write_table(parts, msgspec.structs.replace(table, owners=owners))


def finish_with_a_letter(parts: Path) -> None:
    post(parts, 0, "e.test", UNSEEN)
    with opened(parts, 0) as state:
        state.counters.finished = True


BREAKS: list[tuple[Callable[[Path], object], Rule, str]] = [
    (lambda parts: (parts / SEEDS).write_text(f"{E}/other\n"), Rule.SEEDS, f"{E}/other was not seen as a seed by partition 1"),
    (lambda parts: (parts / SEEDS).write_text(f"{A}/1\n"), Rule.SEEDS, f"{A}/1 was not seen as a seed by partition 0"),
    (lambda parts: link(parts, UNSEEN), Rule.EDGES_SEEN, f"partition 0: {A}/1 links to {UNSEEN}"),
    (lambda parts: link(parts, f"{E}/farthest"), Rule.EDGES_DISTANCES, f"{E}/farthest has depth 3"),
    (lambda parts: post(parts, 0, "e.test", UNSEEN, forgotten=True), Rule.PARTITIONS_LETTERS, "it sent 1, and forgot 1"),
    (lambda parts: take(parts, 1, "e.test", 0), Rule.PARTITIONS_LETTERS, "5 letters of partition 0 to node"),
    (lambda parts: take(parts, 1, "e.test", 9), Rule.PARTITIONS_LETTERS, "partition 1 took in letters of 9"),
    (lambda parts: post(parts, 0, "a.test", f"{A}/x"), Rule.PARTITIONS_LETTERS, "which is its own"),
    (lambda parts: post(parts, 0, "e.test", f"{B}/x"), Rule.PARTITIONS_LETTERS, "is about another node's"),
    (finish_with_a_letter, Rule.FINISHED, "partition 0: 1 letters wait"),
]  # fmt: skip


@pytest.mark.parametrize("how", ["--quick", "--full", "--deep"])
@pytest.mark.parametrize("name", ["finished", "stopped"])
def test_a_sound_crawl_is_whole(cli: Cli, request: pytest.FixtureRequest, name: str, how: str) -> None:
    pair: Pair = request.getfixturevalue(name)
    verdicts = [json.loads(cli("verify", crawl, how, "--json").out) for crawl in (pair.whole, pair.parts)]
    assert [verdict["broken"] for verdict in verdicts] == [{}, {}]
    assert verdicts[0]["whole"]
    assert verdicts[1]["whole"]
    for what in ("records", "seen", "seeds", "hosts", *(["links", "admitted"] if how != "--quick" else [])):
        assert verdicts[1]["checked"][what] == verdicts[0]["checked"][what], what


@pytest.mark.parametrize(("breaks", "rule", "says"), BREAKS)
def test_what_does_not_hold_between_partitions_is_found(
    cli: Cli, parts: Path, breaks: Callable[[Path], object], rule: Rule, says: str
) -> None:
    breaks(parts)
    ended = cli("verify", parts, "--json")
    assert ended.status == ExitStatus.PAGES_FAILED, ended.err
    broken = json.loads(ended.out)["broken"]
    assert list(broken) == [rule]
    assert says in "\n".join(broken[rule]["examples"])


def test_what_lies_with_another_than_its_owner_is_found(cli: Cli, parts: Path) -> None:
    give_away(parts, "b.test", 2)
    broken = json.loads(cli("verify", parts, "--json").out)["broken"]
    assert broken[Rule.PARTITIONS_PLACED]["count"] == 1 + 4  # the host, and its records
    assert "the host b.test lies in partition 1, and is partition 2's" in broken[Rule.PARTITIONS_PLACED]["examples"]
    assert broken.keys() == {Rule.PARTITIONS_PLACED, Rule.SEEDS, Rule.EDGES_SEEN}  # the owner has not seen them


def test_a_link_whose_letter_waits_need_not_be_seen(cli: Cli, parts: Path) -> None:
    link(parts, UNSEEN, f"{E}/farthest")
    post(parts, 0, "e.test", UNSEEN)
    post(parts, 0, "e.test", f"{E}/farthest")
    assert cli("verify", parts).status == 0


@pytest.mark.parametrize("table", [{"moving": [0] * 1024}, {"before": [0] * 1024}], ids=lambda table: next(iter(table)))
@pytest.mark.parametrize("command", [("verify",), ("verify", "--repair"), ("hosts", "drop", "a.test"), ("add", f"{A}/new")])
def test_while_rows_are_on_the_move_there_is_only_going_on(
    cli: Cli, parts: Path, table: dict[str, list[int]], command: tuple[str, ...]
) -> None:
    write_table(parts, msgspec.structs.replace(read_table(parts), **table))
    refused = cli(command[0], parts, *command[1:])
    assert refused.status == 3
    assert f"crawlkit resume {parts} finishes that" in refused.err.splitlines()[-1]
    assert cli("report", parts).status == 0


def test_a_letter_to_a_node_that_came_to_its_sender_may_wait(cli: Cli, parts: Path) -> None:
    table = read_table(parts)
    post(parts, table.owners[node_of("b.test")], "b.test", f"{B}/")
    assert list(json.loads(cli("verify", parts, "--json").out)["broken"]) == [Rule.PARTITIONS_LETTERS]
    write_table(parts, msgspec.structs.replace(table, version=2))
    assert cli("verify", parts).status == 0


def test_a_partition_s_own_damage_is_found_and_not_repaired(cli: Cli, parts: Path) -> None:
    with opened(parts, 1) as state:
        state.counters.pages += 1
        state.counters.seen += 1
    ended = cli("verify", parts)
    assert ended.status == ExitStatus.PAGES_FAILED
    assert "partition 1: settled: " in ended.out
    assert "--repair" not in ended.out
    refused = cli("verify", parts, "--repair")
    assert refused.status == 3
    assert refused.err.splitlines()[-1].startswith(f"crawlkit: partitions of {parts} cannot be repaired")
    assert not parts.with_name("own.crawl.repaired").exists()


def test_a_partition_that_cannot_be_opened_is_named(cli: Cli, parts: Path) -> None:
    (member_directory(parts, 2) / "CHECKPOINT").write_bytes(b"{}\n")
    for arguments in (["--quick"], ["--repair"]):
        refused = cli("verify", parts, *arguments)
        assert refused.status == 3
        assert "partitions/002/CHECKPOINT does not match its checksum" in refused.err


def test_filters_are_dropped_by_a_repair(cli: Cli, parts: Path) -> None:
    member = member_directory(parts, 0)
    with closing(MappedBloom.create(member / BLOOM, read_manifest(member).crawl_id.encode()[:16], boot_id())) as bloom:
        bloom.mark_complete()  # and empty
    assert list(json.loads(cli("verify", parts, "--json").out)["broken"]) == [Rule.FILTER]
    assert cli("verify", parts, "--repair").status == 0
    assert not (member / BLOOM).exists()


@pytest.mark.parametrize("owners", [[0] * 1023, [3] * 1024])
def test_a_table_that_is_not_complete_is_refused(cli: Cli, parts: Path, owners: list[int]) -> None:
    write_table(parts, msgspec.structs.replace(read_table(parts), owners=owners))
    for command in ("verify", "report", "status"):
        refused = cli(command, parts)
        assert (refused.status, refused.err.count("\n")) == (3, 1)
        assert "does not name a partition for each node" in refused.err


@pytest.mark.parametrize("options", [[], ["--repair"]])
def test_a_partition_by_itself_is_not_checked(cli: Cli, parts: Path, options: list[str]) -> None:
    refused = cli("verify", member_directory(parts, 1), *options)
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert f"crawlkit verify {parts}" in refused.err
