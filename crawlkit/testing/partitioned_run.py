"""One simulated run of the driver over all partitions: the real `Conductor`, with `testing.partition` for processes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from crawlkit.cluster.conductor import Conductor, Orders, Phase
from crawlkit.cluster.driver import HURRIED_WAVE_S, WAVE_EVERY_S
from crawlkit.cluster.messages import Ended, Finish, Parcel, Ready, Receipt, Standing, ToDriver, WalkHeld, Warned
from crawlkit.cluster.running import Members
from crawlkit.cluster.shares import Shares
from crawlkit.engine.ending import Ending
from crawlkit.state.checkpoint import read_summary
from crawlkit.testing.partition import Partition, Place, Scene, Step
from crawlkit.testing.watch import SimulationError, Watch, require
from crawlkit.testing.ways import FromPartition, ToPartition

MOST_STEPS = 60_000
MOST_UNHEARD = 3
"""Messages on the way to a partition from which on the driver asks no more: on ways so slow there would be no end to it."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where partitions run, whom they ask, and what is known of them over all runs: when they were killed, their pages."""

    directories: list[Path]
    watches: list[Watch]
    killed_s: dict[int, float] = field(default_factory=dict)
    pages: dict[int, int] = field(default_factory=dict)

    def of(self, number: int, now: float) -> Place:
        """Return where a partition runs that is opened now, and whether it was killed before."""
        quiet_until_s = now if self.killed_s.pop(number, None) is not None else -1e12
        return Place(number, self.directories[number], self.watches[number], quiet_until_s)


@dataclass(slots=True)
class Figures:
    """What was done to crawls."""

    runs: int = 0
    driver_deaths: int = 0
    deaths: int = 0
    late_deaths: int = 0  # while partitions were finishing
    letters: int = 0
    walks: int = 0  # of what was held, as nobody had anything else to do
    traps: int = 0  # crawls whose report says that what a small budget was spent on depended on order

    def line(self) -> str:
        """Return all of it in words."""
        return (
            f"{self.runs} runs, {self.driver_deaths} drivers and {self.deaths} partitions killed "
            f"({self.late_deaths} at the end), {self.letters} letters, {self.walks} walks of what was held, "
            f"{self.traps} trapped"
        )


@dataclass(slots=True)
class _Process:
    """What the driver has of a partition: the lines to it and from it, and itself once it is open."""

    down: ToPartition
    up: FromPartition
    opens_s: float
    partition: Partition | None = None


class Run:
    """One run of the driver over all partitions, to its end or until all are killed."""

    def __init__(self, scene: Scene, places: Places, members: Members, figures: Figures) -> None:
        self._scene = scene
        self._places = places
        self._rng = scene.rng
        self._clock = scene.clock
        self._figures = figures
        used = {number: read_summary(directory).counters.pages for number, directory in enumerate(places.directories)}
        self.conductor = Conductor(members.active, Shares(scene.config.max_pages, used), members.letters_apart)
        self._look_s = 0.0
        self._processes: dict[int, _Process] = {}
        for number in self.conductor.members:
            self._start(number)

    # Life ------------------------------------------------------------------------------------------------------------

    def run(self, deaths: Sequence[int], end: int | None, *, stop: bool) -> Ending | None:
        """Take steps until the crawl ends. Partitions die at steps `deaths`; at step `end` all stop, or die (None)."""
        late_deaths = len(deaths)
        for number in range(MOST_STEPS):
            if number == end:
                if not stop:
                    self._kill_all()
                    return None
                self._send(self.conductor.stop(Ending.SIGINT))
            if number in deaths:
                self._kill_one()
            if self.conductor.phase is Phase.FINISHING and late_deaths and self._rng.random() < 0.05:
                late_deaths -= 1
                self._figures.late_deaths += self._kill_one()
            if self.conductor.over and not any(process.up.waiting for process in self._processes.values()):
                return self.conductor.how()
            self._step()
            self._see_limit()
        self._kill_all()
        raise SimulationError(f"the crawl did not end within {MOST_STEPS} steps")

    def _start(self, number: int) -> None:
        weather = self._scene.weather
        opens_s = self._clock.now() + self._rng.choice(weather.delays_s)
        self._processes[number] = _Process(ToPartition(self._rng, weather), FromPartition(self._rng, weather), opens_s)

    def _open(self, number: int) -> None:
        process = self._processes[number]
        most = self.conductor.shares.of(number)
        process.partition = Partition(self._scene, self._places.of(number, self._clock.now()), most, process.down, process.up)

    @property
    def partitions(self) -> list[Partition]:
        """The partitions that are open."""
        found = [process.partition for process in self._processes.values()]
        return [partition for partition in found if partition is not None and not partition.ended]

    def _kill_one(self) -> bool:
        alive = [number for number, process in self._processes.items() if process.partition in self.partitions]
        if not alive:
            return False
        self._kill(self._rng.choice(alive))
        self._figures.deaths += 1
        return True

    def _kill(self, number: int) -> None:
        partition = self._processes[number].partition
        assert partition is not None
        partition.kill()
        self._places.killed_s[number] = self._clock.now()

    def _kill_all(self) -> None:
        for number, process in self._processes.items():
            if process.partition in self.partitions:
                self._kill(number)
        self._figures.driver_deaths += 1

    # Steps -----------------------------------------------------------------------------------------------------------

    def _step(self) -> None:
        """Take one of the steps that are possible, or let time pass if there is none."""
        now = self._clock.now()
        partitions = self.partitions
        steps = [step for partition in partitions for step in partition.steps()] + self._steps(now)
        if partitions and self._rng.random() < (0.1 if steps else 0.5):
            self._rng.choice(partitions).checkpoint()
        is_behind = any(len(process.down.waiting) > MOST_UNHEARD for process in self._processes.values())
        if now >= self._look_s and not is_behind:
            self._look_s = now + (HURRIED_WAVE_S if self.conductor.hurried else WAVE_EVERY_S)
            self._send(self.conductor.look())
        if steps:
            self._rng.choice(steps)()
        else:
            self._pass_time(now)

    def _steps(self, now: float) -> list[Step]:
        """Return the steps that are the driver's, or the ways'."""
        found: list[Step] = []
        for number, process in self._processes.items():
            if process.partition is None and process.opens_s <= now:
                found.append(partial(self._open, number))
            if process.up.waiting and process.up.waiting[0][0] <= now:
                found.append(partial(self._hear, number))
        post_s = self._scene.post.next_s
        if post_s is not None and post_s <= now:
            found.append(self._deliver)
        return found

    def _pass_time(self, now: float) -> None:
        """Go to the next moment at which something can happen, or a little beyond."""
        moments = [moment for partition in self.partitions for moment in partition.moments_s()]
        moments += [process.opens_s for process in self._processes.values() if process.partition is None]
        moments += [process.up.waiting[0][0] for process in self._processes.values() if process.up.waiting]
        if self._scene.post.next_s is not None:
            moments.append(self._scene.post.next_s)
        if self.conductor.hurried or not moments:
            moments.append(max(now + HURRIED_WAVE_S, self._look_s))
        self._clock.advance(max(0.0, min(moments) - now) + self._rng.choice((0.0, 0.0, 1e-9, 0.05, 1.0)))

    # Messages --------------------------------------------------------------------------------------------------------

    def _send(self, orders: Orders) -> None:
        if any(isinstance(message, Finish) for _, message in orders):
            self._see_done()
        for number, message in orders:
            self._figures.walks += isinstance(message, WalkHeld)
            process = self._processes[number]
            if process.partition is None or not process.partition.ended:
                process.down.put(message, self._clock.now())

    def _deliver(self) -> None:
        """Let a parcel or a receipt arrive; one for a partition that is not there is lost."""
        message = self._scene.post.take(self._clock.now())
        process = self._processes.get(message.to)  # in an earlier run it may have been for one that has nothing to do now
        if process is not None and process.partition in self.partitions:
            process.partition.deliver(message)

    def _hear(self, number: int) -> None:
        """Take in the next message of a partition, or that there is none any more."""
        message = self._processes[number].up.take()
        if message is None:
            for each in self.conductor.gone(number):
                self._start(each)
        else:
            self._take(message)

    def _take(self, message: ToDriver) -> None:
        match message:
            case Standing():
                self._send(self.conductor.stands(message))
            case Ready(number):
                self._send(self.conductor.ready(number))
            case Ended():
                self._send(self.conductor.has_ended(message))
            case Parcel() | Receipt() | Warned():
                raise AssertionError(message)

    # What has to hold ------------------------------------------------------------------------------------------------

    def _see_done(self) -> None:
        """Check that all is done, as the driver has just found; of what has died and is not known to it nothing is said."""
        for partition in self.partitions:
            counters, waiting = partition.state.counters, partition.state.letters.waiting
            require(partition.is_done, f"the end was told too early: {waiting} letters wait, {counters}")

    def _see_limit(self) -> None:
        limit = self._scene.config.max_pages
        for number, process in self._processes.items():
            if process.partition is not None:
                self._places.pages[number] = process.partition.state.counters.pages
        pages = sum(self._places.pages.values())
        require(limit is None or pages <= limit, f"{pages} pages, and the limit is {limit}")
