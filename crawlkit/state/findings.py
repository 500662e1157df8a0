"""What a check of the state found: the rules by name, and for each that is broken how often and where first."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

MOST_EXAMPLES = 5


class Rule(StrEnum):
    """What holds of every crawl on disk, whenever it was stopped or killed."""

    READABLE = "database.readable"  # LevelDB can read every row, and its checksums agree
    KNOWN = "rows.known"  # every key has the shape of its kind
    DECODES = "rows.decode"  # every value can be decoded
    CHECKPOINT = "checkpoint.agrees"  # CHECKPOINT says what the database said at its batch
    SETTINGS = "settings.readable"
    LEDGER = "ledger.sane"  # runs are numbered from 1 and end after they start
    SEEDS = "seeds.seen"  # every seed was admitted at distance 0
    COUNTERS = "counters.count"  # each counter equals what is counted
    QUEUED_SEEN = "queued.seen"  # every queued or timed row belongs to a URL that was seen
    QUEUED_PLACED = "queued.placed"  # it lies where its host, depth and sequence put it
    SEEN_QUEUED = "seen.queued"  # every URL seen and not settled has the row that its entry points to
    SEEN_SETTLED = "seen.settled"  # every settled URL has a record, and one only
    RECORDS_SEEN = "records.seen"  # every record belongs to a URL that was seen
    RECORDS_DISTANCES = "records.distances"  # with the same depth, hops and sources
    HOSTS_KNOWN = "hosts.known"  # every row and record has its host's record, under the host's id
    HOSTS_COUNTS = "hosts.counts"  # which counts them
    HOSTS_CURSOR = "hosts.cursor"  # and whose cursor is beyond no row
    RELAX = "relax.settled"  # distances to propagate are those of a settled URL
    REFUSALS = "refusals.placed"  # what was refused lies under its host, and is bounded
    ORIGINS = "origins.placed"  # what is known of a robots.txt lies under its origin
    ALIKE = "alike.rows"  # rows by digest and SimHash are those of the records, no more and no less
    CONTENTS = "contents.settled"  # texts and anchors are those of a settled URL
    SITEMAPS = "sitemaps.placed"  # sitemaps that wait are queued at their host, and no others are
    FINISHED = "finished.empty"  # a crawl that says it is finished has nothing left to do
    EDGES_SEEN = "edges.seen"  # every URL that a record admits, in scope and within the depth, was seen
    EDGES_DISTANCES = "edges.distances"  # at no greater distance than this way to it, and as linked to
    ARCHIVE_FILES = "archive.files"  # every file of the archive is there, and no shorter than acknowledged
    ARCHIVE_EXTENTS = "archive.extents"  # what is known of a file covers it, and is found by URL and by body
    ARCHIVE_RECORDS = "archive.records"  # every record with an answer has that answer in the archive, and one only
    ARCHIVE_BYTES = "archive.bytes"  # what lies there is what was archived
    PARTITIONS_PLACED = "partitions.placed"  # what is of a host lies in the partition that owns it
    PARTITIONS_LETTERS = (
        "partitions.letters"  # letters are for other partitions, and none was acknowledged that was not taken in
    )
    FILTER = "filter.complete"  # the Bloom filter in use has every key of the seen-set


@dataclass(frozen=True, slots=True)
class Broken:
    """How often a rule is broken, and the first examples, as text."""

    count: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found: the rules that are broken, and how many there were of what it looked at."""

    broken: Mapping[Rule, Broken]
    checked: Mapping[str, int]

    @property
    def whole(self) -> bool:
        """Whether no rule is broken."""
        return not self.broken


class Findings:
    """A report in the making, in bounded memory."""

    def __init__(self) -> None:
        self.checked: Counter[str] = Counter()
        self._counts: Counter[Rule] = Counter()
        self._examples: dict[Rule, list[str]] = {}

    def broke(self, rule: Rule, example: str) -> None:
        """Note that a rule is broken, and where."""
        self._counts[rule] += 1
        examples = self._examples.setdefault(rule, [])
        if len(examples) < MOST_EXAMPLES:
            examples.append(example)

    def has(self, rule: Rule) -> bool:
        """Whether a rule was found broken so far."""
        return rule in self._counts

    def compare(self, rule: Rule, what: str, noted: object, counted: object) -> None:
        """Note a rule as broken if what the state says of itself is not what was counted."""
        if noted != counted:
            self.broke(rule, f"{what}: {noted} noted, {counted} found")

    def take(self, report: Report, where: str) -> None:
        """Add what a check of a part found; `where` names the part."""
        self.checked.update(report.checked)
        for rule, broken in report.broken.items():
            self._counts[rule] += broken.count
            examples = self._examples.setdefault(rule, [])
            examples += [f"{where}: {example}" for example in broken.examples[: MOST_EXAMPLES - len(examples)]]

    def report(self) -> Report:
        """Return what was found so far, in the order of the rules."""
        broken = {rule: Broken(self._counts[rule], tuple(self._examples[rule])) for rule in Rule if rule in self._counts}
        return Report(MappingProxyType(broken), MappingProxyType(dict(self.checked)))
