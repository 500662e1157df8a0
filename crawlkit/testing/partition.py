"""One simulated process of a partition: the real coordinator and desk over the real state, in steps that come in any order."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_never

from crawlkit.cluster.desk import Desk
from crawlkit.cluster.messages import Allow, Back, Begin, Ended, Finish, Look, Parcel, Ready, Receipt, Stop, ToMember, WalkHeld
from crawlkit.config import Config, changed_config, to_values
from crawlkit.engine.abroad import Abroad
from crawlkit.engine.archiving import open_archive
from crawlkit.engine.coordinator import Coordinator
from crawlkit.engine.ending import Ending
from crawlkit.engine.hook import Callers
from crawlkit.model import Fetched
from crawlkit.policy.partition import Owners
from crawlkit.policy.scope import Scope
from crawlkit.state.crawl import Checkpoint, CrawlState
from crawlkit.state.layout import ARCHIVE, BLOOM, CHECKPOINT
from crawlkit.testing.aftermath import spoil_filter, tear_archive
from crawlkit.testing.archived import exchange_of
from crawlkit.testing.clock import ManualClock
from crawlkit.testing.watch import Flight, Watch
from crawlkit.testing.ways import FromPartition, Post, ToPartition, Weather

Step = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Scene:
    """What the partitions of one run have in common.

    The wall clock is `skew_s` ahead of the true time; `weather` is that of lines, `spoilt` what else a kill may make of a
    filter.
    """

    rng: random.Random
    fate: random.Random
    clock: ManualClock
    skew_s: float
    config: Config
    span: tuple[str, ...]
    owners: Owners
    epoch: int
    post: Post
    weather: Weather
    spoilt: tuple[str, ...]

    def now(self) -> float:
        """Return the wall clock's time."""
        return self.clock.now() + self.skew_s


@dataclass(frozen=True, slots=True)
class Place:
    """Which partition it is, where, whom it asks, and until when it may ask nothing: it was killed before."""

    number: int
    directory: Path
    watch: Watch
    quiet_until_s: float


class Partition:
    """A partition from its opening to its end or its kill."""

    def __init__(self, scene: Scene, place: Place, most: int | None, down: ToPartition, up: FromPartition) -> None:
        self._scene = scene
        self._place = place
        self._down = down
        self._up = up
        self._flights: list[Flight] = []
        self._writing: Checkpoint | None = None
        self._promised: list[Receipt] = []  # for what the next checkpoint is to hold
        self._held: list[Receipt] = []  # for what the one holds that is being written
        self._idle_until_s = -1.0  # nothing to claim before, in wall time
        self._silent_until_s = -1.0  # nothing to send before, in true time
        self._stands_by = True
        self._stop: Ending | None = None
        self.ended = False
        self.state = CrawlState.open(place.directory)
        self.coordinator = self._open()
        self.desk = Desk(self.coordinator, scene.owners, place.number, scene.epoch, most)
        self._tell(Ready(place.number))

    def _open(self) -> Coordinator:
        scene, state = self._scene, self.state
        wanted, found = to_values(scene.config), to_values(state.config())
        changes = {key: value for key, value in wanted.items() if found[key] != value}
        config = changed_config(state.config(), changes)
        scope = Scope.of(list(scene.span), config)
        callers = Callers(abroad=Abroad(state.letters, scene.owners, self._place.number))
        most_hosts = scene.rng.choice((1, 2, 8_192))
        coordinator = Coordinator(state, config, scope, scene.now(), callers, most_hosts=most_hosts)
        open_archive(state, config)
        if changes:
            state.change_settings(config, changes)
        coordinator.freeze(scene.now()).write()
        state.installed()
        return coordinator

    def _tell(self, message: Any) -> None:
        self._up.put(message, self._scene.clock.now())

    # Steps -----------------------------------------------------------------------------------------------------------

    @property
    def is_stopping(self) -> bool:
        """Whether it was told to stop."""
        return self._stop is not None

    @property
    def is_done(self) -> bool:
        """Whether it has nothing left: nothing waits, is in flight, or has to be sent."""
        counters = self.state.counters
        nothing_waits = counters.queued == counters.sitemaps == counters.held == 0
        return (nothing_waits or self.coordinator.budget_spent()) and self.is_quiet

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is in flight, owed or has to be sent."""
        return not self._flights and self.coordinator.exhausted and self.state.letters.waiting == 0

    def steps(self) -> list[Step]:
        """Return the steps that are possible now."""
        now = self._scene.clock.now()
        found: list[Step] = []
        if (due := self._down.next_s) is not None and due <= now:
            found.append(self._listen)
        if not self._flights and (self.is_stopping or (self.coordinator.exhausted and not self._stands_by)):
            return [*found, self.end]
        landed = [flight for flight in self._flights if flight.landed_s <= now]
        if landed:
            found.append(lambda: self._settle(self._scene.rng.choice(landed)))
        if self._may_claim and self._scene.now() >= self._idle_until_s:
            found.append(self._claim)
        if not self.is_stopping and (self.coordinator.owes_work or self.coordinator.idle_work):
            found.append(self._work)
        if self.state.letters.waiting and now >= self._silent_until_s:
            found.append(self._send)
        return found

    def moments_s(self) -> list[float]:
        """Return when something may happen by itself."""
        found = [flight.landed_s for flight in self._flights]
        if self._may_claim and self._idle_until_s != float("inf"):
            found.append(self._idle_until_s - self._scene.skew_s)
        if self._down.next_s is not None:
            found.append(self._down.next_s)
        if self.state.letters.waiting:
            found.append(self._silent_until_s)
        return found

    @property
    def _may_claim(self) -> bool:
        return not self.is_stopping and len(self._flights) < self._scene.config.workers

    def _claim(self) -> None:
        scene = self._scene
        job = self.coordinator.claim(scene.now())
        if job is not None:
            started = self._place.watch.start(job, scene.config, scene.clock.now(), self._place.quiet_until_s)
            self._flights.append(started)
            return
        due = None if self.coordinator.budget_spent() else self.coordinator.next_time()
        self._idle_until_s = float("inf") if due is None else due

    def _work(self) -> None:
        self.coordinator.work()
        self._idle_until_s = -1.0

    def _settle(self, flight: Flight) -> None:
        scene = self._scene
        self._flights.remove(flight)
        exchange = exchange_of(flight.job, flight.answer) if scene.config.warc else None
        started_s, ended_s = flight.started_s + scene.skew_s, flight.landed_s + scene.skew_s
        fetched = Fetched(flight.job, started_s, ended_s, flight.answer, exchange, sitemap=flight.sitemap)
        self.coordinator.settle(fetched, scene.now())
        self._place.watch.settled(flight, scene.clock.now())
        self._idle_until_s = -1.0

    # Messages --------------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        """Send what is to be sent; if that is nothing, look again later."""
        now = self._scene.clock.now()
        parcels = self.desk.parcels(self._scene.now())
        for parcel in parcels:
            self._scene.post.send(parcel, now)
        self._silent_until_s = now + self._scene.rng.choice((0.1, 0.2, 1.0, 35.0))

    def deliver(self, message: Parcel | Receipt) -> None:
        """Take in a parcel, or a receipt."""
        now = self._scene.now()
        match message:
            case Parcel():
                receipt = self.desk.take(message, now)
                if receipt is not None:
                    self._promised.append(receipt)
            case Receipt():
                self.desk.acknowledge(message, now)
        self._wake()

    def _wake(self) -> None:
        self._idle_until_s = self._silent_until_s = -1.0

    def _listen(self) -> None:
        message = self._down.take()
        assert message is not None
        self._obey(message)
        self._wake()

    def _obey(self, message: ToMember) -> None:
        match message:
            case Parcel() | Receipt():
                self.deliver(message)
            case Look(wave):
                self._tell(self.desk.standing(wave, with_counters=False))
            case Allow():
                self.desk.allow(message)
            case WalkHeld():
                self.desk.walk_held()
            case Finish():
                self._stands_by = False
            case Stop(how):
                self._stop = self._stop or how
            case Back(number):
                self.desk.send_again(number)
            case Begin():
                pass
            case unknown:
                assert_never(unknown)

    # Checkpoints -----------------------------------------------------------------------------------------------------

    def checkpoint(self) -> None:
        """Freeze a checkpoint, or write the one that is frozen."""
        if self._writing is not None:
            self._write(self._writing)
        elif self.state.changed or self._promised:
            self._writing = self._freeze()

    def _freeze(self) -> Checkpoint:
        self._note_frozen()
        return self.coordinator.freeze(self._scene.now())

    def _note_frozen(self) -> None:
        self._place.watch.frozen()
        self._held, self._promised = self._promised, []

    def _write(self, checkpoint: Checkpoint) -> None:
        checkpoint.write()
        self.state.installed()
        self._place.watch.written()
        self._writing = None
        for receipt in self._held:
            self._scene.post.send(receipt, self._scene.clock.now())
        self._held = []

    def end(self) -> None:
        """End the run as the loop does."""
        if self._writing is not None:
            self._write(self._writing)
        how = self.coordinator.ending() if self._stop is None else self._stop
        self._note_frozen()
        self._write(self.coordinator.end(how, self._scene.now()))
        self._tell(Ended(self._place.number, how))
        self._close()

    def _close(self) -> None:
        self.state.close()
        self.ended = True
        self._up.put(None, self._scene.clock.now())

    def kill(self) -> None:
        """Lose what is not written; perhaps the moment is between a batch and its `CHECKPOINT`."""
        moment = self._scene.rng.choice(("between", "frozen", "written"))
        if moment == "frozen" and self._writing is None:
            self._freeze()
        if moment == "written":
            checkpoint = self._writing or self._freeze()
            self._held = []  # nothing is told any more
            path = self.state.directory / CHECKPOINT
            before = path.read_bytes()
            self._write(checkpoint)
            path.write_bytes(before)
        filter_ = self._scene.rng.choice(("kept", "kept", "missing", *self._scene.spoilt))
        self._close()
        tear_archive(self.state.directory / ARCHIVE, self._scene.fate)
        self._place.watch.killed(self._flights, self._scene.clock.now(), lost_filter=filter_ == "empty")
        spoil_filter(self.state.directory / BLOOM, filter_)
