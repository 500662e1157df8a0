"""The whole state against a model: whatever happens, each admitted URL waits once, settles once, and nothing is lost."""

import copy
import mmap
import os
import shutil
from collections.abc import Callable, Sequence
from enum import Enum, auto
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from crawlkit.model import Source
from crawlkit.policy.edges import admitting_edges
from crawlkit.state.codec import Head, SeenEntry, UrlState
from crawlkit.state.crawl import Checkpoint, CrawlState
from crawlkit.state.layout import BLOOM
from tests.state.frontier_model import Model, check_rows_on_disk
from tests.state.making import NOW, begin_crawl, claim, host_name, host_of, reopen, scratch_directory, settle

HOSTS = ["a.test", "b.test"]
URLS = [f"http://{host}/{n}" for host in HOSTS for n in range(6)]
DEPTHS = st.integers(0, 6) | st.sampled_from([254, 255, 256, 300])
HOPS = st.integers(0, 10)
CLAIMS_BETWEEN_CRASHES = 4  # or nothing ever gets far

Answer = float | tuple[str, ...] | str | None
"""How a claim ends: to be tried again after seconds, a page with links, a redirect to a URL, given back."""
ANSWERS: st.SearchStrategy[Answer] = st.one_of(
    st.sampled_from([0.0, 0.5, 5.0, 1000.0]),
    st.lists(st.sampled_from(URLS), max_size=3, unique=True).map(tuple),
    st.sampled_from(URLS),
    st.none(),
)


class Crash(Enum):
    """What a kill leaves behind."""

    NOTHING_LOST = auto()
    BATCH_WRITTEN = auto()  # of the checkpoint in the making, if there is one
    FILTER_LOST = auto()
    BITS_LOST = auto()


class FrontierMachine(RuleBasedStateMachine):
    """`now` is the model of what is in memory, `frozen` of a batch in the making, `saved` of the last checkpoint."""

    state: CrawlState

    @initialize()
    def make(self) -> None:
        self.directory = scratch_directory() / "x.crawl"
        self.state = begin_crawl(self.directory)
        self.time_s = NOW
        self.claimed = 0
        self.model, self.saved = Model(), Model()
        self.frozen: tuple[Checkpoint, Model] | None = None
        self.claims: dict[str, str] = {}

    # URLs are met ------------------------------------------------------------------------------------------------------------

    @rule(met=st.lists(st.tuples(st.sampled_from(URLS), DEPTHS, HOPS), min_size=2, max_size=6, unique_by=lambda way: way[0]))
    def told(self, met: list[tuple[str, int, int]]) -> None:
        for url, depth, hops in met:
            self.model.tell(url, depth, hops)
            self.meet(url, depth, hops)

    def meet(self, url: str, depth: int, hops: int) -> None:
        host = host_of(self.state, url)
        entry = self.state.seen.find(url, host.id)
        if entry is None:
            self.add(url, depth, hops)
        else:
            assert url in self.model.urls
            if depth < entry.depth or hops < entry.hops:
                self.state.distances.lower(url, host, entry, entry.joined(Head(depth, hops, Source.LINK)))
            self.model.meet(url, depth, hops)

    def add(self, url: str, depth: int, hops: int) -> None:
        if url in self.model.urls and url not in self.claims:
            self.model.double(url)
        self.state.frontier.add(url, host_of(self.state, url), depth, hops, None)
        self.model.meet(url, depth, hops)

    @rule(url=st.sampled_from(URLS), depth=DEPTHS, hops=HOPS)
    def added_although_seen(self, url: str, depth: int, hops: int) -> None:
        """What a wrong "no" of the filter leads to."""
        if url in self.model.urls:
            self.model.tell(url, depth, hops)
            self.add(url, depth, hops)

    # Claims ------------------------------------------------------------------------------------------------------------------

    @rule(work=st.lists(st.tuples(st.sampled_from(HOSTS), ANSWERS), min_size=2, max_size=6), answer_at_once=st.booleans())
    def claim_and_answer(self, work: list[tuple[str, Answer]], answer_at_once: bool) -> None:
        for host, answer in work:
            self.claim(host)
            if answer_at_once and self.claims:
                self.answer(next(reversed(self.claims)), answer)

    def claim(self, host: str) -> str | None:
        expected = self.model.claimable(host, self.claims)
        row = claim(self.state, self.state.hosts.get(host))
        if row is None:
            assert not expected
            return None
        assert row.url in expected
        self.claims[row.url] = host
        self.claimed += 1
        if not any(host_name(url) == host for url in self.model.doubled):
            known = self.model.urls[row.url]
            assert row.url == expected[0]
            assert (row.depth, row.hops, row.attempts) == (known.depth, known.hops, known.attempts)
        return row.url

    @precondition(lambda self: self.claims)
    @rule(answers=st.lists(ANSWERS, min_size=1, max_size=4))
    def answer_those_claimed_first(self, answers: list[Answer]) -> None:
        for url, answer in zip(list(self.claims), answers, strict=False):
            self.answer(url, answer)

    def answer(self, url: str, answer: Answer) -> None:
        match answer:
            case float():
                self.postpone(url, answer)
            case tuple():
                self.settle(url, answer, None)
            case str():
                self.settle(url, (), answer)
            case None:
                self.release(url)

    def settle(self, url: str, links: tuple[str, ...], target: str | None) -> None:
        assert self.model.urls[url].state is not UrlState.SETTLED
        record = settle(self.state, url, links, target)
        del self.claims[url]
        self.model.settle(record)
        for edge in admitting_edges(record):
            self.meet(*edge)

    def postpone(self, url: str, wait_s: float) -> None:
        host = host_of(self.state, url)
        known = self.model.urls[url]
        known.state, known.attempts, known.due_s = UrlState.TIMED, known.attempts + 1, self.time_s + wait_s
        self.state.frontier.postpone(url, host, known.attempts, known.due_s, wait_s)
        host.in_flight -= 1
        del self.claims[url]

    def release(self, url: str) -> None:
        host = host_of(self.state, url)
        self.state.frontier.release(url, host)
        host.in_flight -= 1
        del self.claims[url]

    @rule(wait_s=st.sampled_from([0.0, 1.0, 10.0]))
    def promote(self, wait_s: float) -> None:
        self.time_s += wait_s
        timed = [known.due_s for known in self.model.urls.values() if known.state is UrlState.TIMED]
        if timed and not self.model.doubled:
            assert self.state.frontier.next_due() == min(timed)
        self.state.frontier.promote(self.time_s, 1000, self.state.distances.lower)
        self.model.promote(self.time_s)

    @rule(steps=st.integers(1, 4))
    def propagate(self, steps: int) -> None:
        for _ in range(steps):
            record = self.state.distances.next()
            if record is not None:
                for edge in admitting_edges(record):
                    self.meet(*edge)

    # Memory ------------------------------------------------------------------------------------------------------------------

    @rule(rows=st.integers(1, 4), most_hosts=st.integers(0, 2), keys=st.integers(0, 5))
    def change_what_is_in_memory(self, rows: int, most_hosts: int, keys: int) -> None:
        self.state.frontier.window_rows = rows
        self.state.hosts.trim(most_hosts)
        self.state.seen.rebuild(keys)

    # Checkpoints and crashes -------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.frozen is None)
    @rule()
    def freeze(self) -> None:
        self.frozen = self.state.freeze(), copy.deepcopy(self.model)

    @precondition(lambda self: self.frozen is not None)
    @rule()
    def write(self) -> None:
        assert self.frozen is not None
        self.frozen[0].write()
        self.state.installed()
        self.saved, self.frozen = self.frozen[1], None

    @rule()
    def checkpoint(self) -> None:
        if self.frozen is not None:
            self.write()
        self.state.checkpoint()
        self.saved = copy.deepcopy(self.model)

    @precondition(lambda self: self.claimed >= CLAIMS_BETWEEN_CRASHES)
    @rule(how=st.sampled_from(Crash))
    def crash(self, how: Crash) -> None:
        if how is Crash.BATCH_WRITTEN and self.frozen is not None:
            self.frozen[0].write()
            self.saved = self.frozen[1]
        self.close()
        if how is Crash.FILTER_LOST:
            (self.directory / BLOOM).unlink()
        if how is Crash.BITS_LOST:
            with (self.directory / BLOOM).open("r+b") as file:
                size = file.seek(0, os.SEEK_END) - mmap.ALLOCATIONGRANULARITY
                file.seek(mmap.ALLOCATIONGRANULARITY)
                file.write(bytes(size))
        self.state = reopen(self.directory)

    def close(self) -> None:
        """Drop what no checkpoint holds, as a kill does, and look at what is left."""
        self.state.close()
        check_rows_on_disk(self.directory, self.saved)
        self.model = copy.deepcopy(self.saved)
        self.claims, self.frozen, self.claimed = {}, None, 0

    # The end -----------------------------------------------------------------------------------------------------------------

    def teardown(self) -> None:
        if not hasattr(self, "state"):
            return
        try:
            self.drain()
            self.checkpoint()
            self.close()
        finally:
            self.state.close()
            shutil.rmtree(self.directory.parent)

    def drain(self) -> None:
        """Finish the crawl: then each admitted URL has one record, at its graph distance."""
        for claimed in list(self.claims):
            self.settle(claimed, (), None)
        while self.state.counters.queued or self.state.distances.pending:
            before = self.state.counters.queued, len(self.model.urls)
            self.propagate(100)
            self.promote(10_000.0)
            for host in HOSTS:
                while (url := self.claim(host)) is not None:
                    self.settle(url, (), None)
            after = self.state.counters.queued, len(self.model.urls)
            stuck = after == before and after[0] > 0 and not self.state.distances.pending
            assert not stuck, "URLs wait that nobody can claim"
        state, counters = self.state, self.state.counters
        assert counters.seen == len(self.model.urls)
        for url, distances in self.model.distances().items():
            assert state.pages.head(url) == (*distances, Source.LINK)
            entry = state.seen.known(url, host_of(state, url).id)
            assert entry == SeenEntry(UrlState.SETTLED, *distances, sources=Source.LINK)
        exceeding = sum(self.model.distances()[url][1] >= 10 for url in self.model.redirects)
        assert counters.redirects == len(self.model.redirects) - exceeding
        assert counters.failures == exceeding
        assert counters.pages == len(self.model.urls) - len(self.model.redirects)
        self.model.doubled.clear()


TestFrontier = FrontierMachine.TestCase
TestFrontier.settings = settings(max_examples=60, stateful_step_count=60)


# Hypothesis finds short ways to a failure; a long life, with steps that are likelier to matter, goes deeper.


def random_answer(random: Random) -> Answer:
    return random.choice(
        [0.0, 0.5, 5.0, 1000.0, None, tuple(random.sample(URLS, 2)), tuple(random.sample(URLS, 3)), (), random.choice(URLS)]
    )


def random_step(machine: FrontierMachine, random: Random, crashes: Sequence[Crash]) -> None:
    pick, below = random.choice, random.randrange
    depth, hops = pick([0, 1, 2, 3, 254, 255, 256]), below(11)
    step = pick(list("tttccccccaaappprrmffkx" + "d" * (Crash.BITS_LOST in crashes)))
    if step == "t":
        machine.told([(url, depth, hops) for url in random.sample(URLS, below(1, 4))])
    elif step == "c":
        machine.claim_and_answer([(pick(HOSTS), random_answer(random))], random.random() < 0.6)
    elif step == "a" and machine.claims:
        machine.answer(pick(list(machine.claims)), random_answer(random))
    others: dict[str, Callable[[], None]] = {
        "p": lambda: machine.promote(pick([0.0, 1.0, 10.0, 2000.0])),
        "r": lambda: machine.propagate(below(1, 4)),
        "m": lambda: machine.change_what_is_in_memory(below(1, 5), below(3), below(6)),
        "f": machine.freeze if machine.frozen is None else machine.write,
        "k": machine.checkpoint,
        "x": lambda: machine.crash(pick(crashes)),
        "d": lambda: machine.added_although_seen(pick(URLS), depth, hops),
    }
    others.get(step, lambda: None)()


SOUND = [Crash.NOTHING_LOST, Crash.BATCH_WRITTEN, Crash.FILTER_LOST]


@pytest.mark.parametrize("crashes", [SOUND, list(Crash)], ids=["sound filter", "failing filter"])
@pytest.mark.parametrize("life", range(12))
def test_a_long_life_loses_nothing(seed: int, life: int, crashes: list[Crash]) -> None:
    random = Random(f"{seed}/{life}")
    machine = FrontierMachine()
    machine.make()
    for _ in range(random.randrange(30, 300)):
        random_step(machine, random, crashes)
    machine.teardown()
