"""The loop: asyncio around the synchronous coordinator. Workers, timers, the writer thread, stops.

It decides nothing about the crawl: `engine.steps` says what is next, the coordinator does it. It never waits for the disk:
checkpoints are written by one thread while results gather, up to a bound.
"""

import asyncio
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from crawlkit.clock import Clock
from crawlkit.config import Config
from crawlkit.engine.coordinator import Coordinator
from crawlkit.engine.ending import Ending
from crawlkit.engine.hook import PageHookError
from crawlkit.engine.steps import Situation, Step, next_step
from crawlkit.engine.watcher import Watcher
from crawlkit.engine.worker import Worker
from crawlkit.errors import StorageError
from crawlkit.model import Fetched, Job
from crawlkit.state.crawl import Checkpoint
from crawlkit.state.letters import MOST_LETTERS
from crawlkit.state.space import check_space

MOST_UNWRITTEN = 4_000
"""Results that may settle while a checkpoint is being written, before no more fetches are started."""

MOST_UNARCHIVED_BYTES = 64 * 1024 * 1024
"""Bytes to be archived that may gather likewise."""

RESULTS_A_TURN = 8
"""Results that settle before the network has its turn: all at once, 64 connections made a stall of 80 ms in a hundred."""

LONGEST_WAIT_S = 60.0

IDLE_CHECKPOINT_S = 0.1
"""The interval of a partition that has nothing to do: what it was led to elsewhere leaves with a checkpoint."""

READ_WITHIN_S = 5.0
"""What an answer may take to be read beside its request, when a stop waits for it. What takes longer waits for turns."""

_MOOT_AT_THE_END = (Ending.LIMIT_TIME, Ending.LOW_SPACE)
"""Stops that mean nothing to a crawl with nothing left to do."""


class Loop:
    """Drives one run of a crawl to its end. `on_turn` is shown the coordinator before each wait."""

    def __init__(
        self,
        coordinator: Coordinator,
        worker: Worker,
        config: Config,
        clock: Clock,
        on_turn: Callable[[Coordinator], object],
        watchers: tuple[Watcher, ...] = (),
    ) -> None:
        self._coordinator = coordinator
        self._worker = worker
        self._config = config
        self._clock = clock
        self._on_turn = on_turn
        self._watchers = watchers
        self._results: list[Fetched] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="crawlkit-writer")
        self._writing: asyncio.Future[None] | None = None
        self._last_checkpoint_s = clock.now()
        self._handed_over_s = self._written_s = 0.0
        self._stop: Ending | None = None
        self._patient_until_s: float | None = None  # with what is in flight, once there is a stop
        self._nothing_due_until_s = 0.0
        self._hook_failure: BaseException | None = None
        self._low_space: StorageError | None = None
        self._bug: BaseException | None = None
        self._over = False
        self._stands_by = False  # whether the run goes on when there is nothing left to do
        self._promised: list[asyncio.Future[None]] = []  # until the next checkpoint is on disk, which is made at once
        self._patient: list[asyncio.Future[None]] = []  # the same, whenever that is made
        self._held: list[asyncio.Future[None]] = []  # until the one that is being written is

    def promise(self) -> asyncio.Future[None] | None:
        """Take note that something came in from outside between two turns, as `look_again` does, without any hurry."""
        if self._over:
            return None
        self.wake()
        self._patient.append(asyncio.get_running_loop().create_future())
        return self._patient[-1]

    def look_again(self) -> asyncio.Future[None] | None:
        """Take note that the crawl was steered, between two turns: what waited may be due now.

        What is returned is done when a checkpoint that holds all of this turn is on disk, and cancelled if none ever will be.
        None if the run has ended: then nothing may be changed any more, as no checkpoint would hold it.
        """
        if self._over:
            return None
        self.wake()
        self._promised.append(asyncio.get_running_loop().create_future())
        return self._promised[-1]

    def stand_by(self, stands_by: bool) -> None:
        """Go on, or end, when there is nothing left to do: others may bring more."""
        self._stands_by = stands_by
        self.wake()

    def fail(self, error: BaseException) -> None:
        """End the run by raising this: what goes on beside it cannot go on."""
        self._bug = self._bug or error
        self._wake.set()

    def wake(self) -> None:
        """End a wait: something has changed."""
        self._nothing_due_until_s = 0.0
        self._wake.set()

    def watch(self, watcher: Watcher) -> None:
        """Tell one more watcher what happens, too."""
        self._watchers = (*self._watchers, watcher)

    def stop(self, how: Ending) -> None:
        """Start no new fetch, let those in flight finish, checkpoint, end."""
        if self._stop is None:  # or a stop that is repeated every turn would leave the others none
            self._stop = how
            self._wake.set()

    async def run(self) -> Ending:
        """Run until the crawl, a limit or a stop ends it; the last checkpoint is on disk then.

        Raises what `on_page` raised (after a last checkpoint), StorageError, StateDamaged.
        """
        try:
            how = await self._turn_until_end()
            await self._write_last(how)
            if self._hook_failure is not None:
                raise self._hook_failure
            if how is Ending.LOW_SPACE and self._low_space is not None:
                raise self._low_space
            return how
        except asyncio.CancelledError:
            self._over = True
            await self._abandon()
            await self._write_last(Ending.CANCELLED)
            raise
        finally:
            self._over = True
            await self._abandon()
            self._writer.shutdown()
            for promise in self._promised + self._patient + self._held:
                promise.cancel()

    async def _turn_until_end(self) -> Ending:
        while True:
            now = self._clock.now()
            if self._bug is not None:
                raise self._bug
            if self._writing is not None and self._writing.done():
                self._end_checkpoint()
            if now >= self._coordinator.deadline_s:
                self.stop(Ending.LIMIT_TIME)
            if self._stop is not None:
                self._end_late(now)
            step = next_step(self._situation(now))
            if step is Step.END:
                self._over = True
                return self._ending()
            await self._take(step, now)

    def _end_late(self, now: float) -> None:
        """Give up what does not end in its time after a stop: its claim is void, and a resume fetches it."""
        if self._patient_until_s is None:
            self._patient_until_s = now + self._config.timeout + READ_WITHIN_S
        if now >= self._patient_until_s:
            self._patient_until_s = math.inf  # once: they may have something to close
            for task in self._tasks:
                task.cancel()

    async def _take(self, step: Step, now: float) -> None:
        match step:
            case Step.SETTLE:
                self._settle(now)
                await asyncio.sleep(0)
            case Step.CHECKPOINT:
                self._begin_checkpoint(now)
            case Step.DISPATCH:
                self._dispatch(now)
                await asyncio.sleep(0)  # let the fetches start, and results come in
            case Step.WORK:
                self._coordinator.work()
                self._nothing_due_until_s = 0.0
                await asyncio.sleep(0)
            case Step.WAIT:
                self._on_turn(self._coordinator)
                await self._wait(now)
            case Step.END:
                pass

    def _situation(self, now: float) -> Situation:
        coordinator = self._coordinator
        interval_over = now - self._last_checkpoint_s >= self._checkpoint_interval_s
        return Situation(
            results_waiting=bool(self._results),
            checkpoint_due=coordinator.checkpoint_urgent or bool(self._promised) or (interval_over and self._is_owed),
            writing=self._writing is not None,
            may_dispatch=not coordinator.paused
            and len(self._tasks) < self._config.workers
            and now >= self._nothing_due_until_s
            and coordinator.unwritten < MOST_UNWRITTEN
            and coordinator.state.outbox.size < MOST_UNARCHIVED_BYTES
            and coordinator.state.letters.waiting < MOST_LETTERS,
            owes_work=coordinator.owes_work,
            idle_work=coordinator.idle_work,
            in_flight=len(self._tasks),
            stopping=self._stop is not None,
            exhausted=coordinator.exhausted and not self._stands_by,
        )

    @property
    def _is_owed(self) -> bool:
        """Whether a checkpoint would hold anything, or someone waits for one: what came in may have been known already."""
        return self._coordinator.state.changed or bool(self._patient)

    @property
    def _checkpoint_interval_s(self) -> float:
        """How often there is a checkpoint: more often where others wait for what it holds and nothing else is to be done."""
        interval_s = self._config.checkpoint_interval
        return min(interval_s, IDLE_CHECKPOINT_S) if self._stands_by and not self._tasks else interval_s

    def _ending(self) -> Ending:
        is_moot = self._stop in _MOOT_AT_THE_END and self._coordinator.exhausted and not self._stands_by
        if self._stop is None or is_moot:
            return self._coordinator.ending()
        return self._stop

    # Results and fetches ---------------------------------------------------------------------------------------------

    def _settle(self, now: float) -> None:
        results = self._results[:RESULTS_A_TURN]
        del self._results[:RESULTS_A_TURN]
        self._nothing_due_until_s = 0.0
        for fetched in results:
            for watcher in self._watchers:
                watcher.fetched(fetched)
            try:
                self._coordinator.settle(fetched, now)
            except PageHookError as error:
                self._hook_failure = self._hook_failure or error.original
                self.stop(Ending.HOOK)

    def _dispatch(self, now: float) -> None:
        """Claim and start fetches until the workers are busy or no host is due."""
        loop = asyncio.get_running_loop()
        while len(self._tasks) < self._config.workers:
            job = self._coordinator.claim(now)
            if job is None:
                due = None if self._coordinator.budget_spent() else self._coordinator.next_time()
                self._nothing_due_until_s = math.inf if due is None else due
                return
            task = loop.create_task(self._carry_out(job))
            self._tasks.add(task)
            task.add_done_callback(self._done)

    async def _carry_out(self, job: Job) -> None:
        self._results.append(await self._worker.carry_out(job))

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._bug = self._bug or error
        self._wake.set()

    async def _wait(self, now: float) -> None:
        """Wait for a result, the writer or a stop, at most until a host or a checkpoint is due."""
        until = now + LONGEST_WAIT_S
        if self._stop is None:
            until = min(until, self._coordinator.deadline_s)
        elif self._patient_until_s is not None:
            until = min(until, self._patient_until_s)
        if len(self._tasks) < self._config.workers and self._nothing_due_until_s > now:
            until = min(until, self._nothing_due_until_s)
        if self._writing is None and self._is_owed:
            until = min(until, self._last_checkpoint_s + self._checkpoint_interval_s)
        timer = asyncio.get_running_loop().call_later(max(0.0, until - now), self._wake.set)
        try:
            await self._wake.wait()
        finally:
            timer.cancel()
            self._wake.clear()

    # Checkpoints -----------------------------------------------------------------------------------------------------

    def _begin_checkpoint(self, now: float) -> None:
        self._last_checkpoint_s = now
        try:
            check_space(self._coordinator.state.directory, self._config.min_free_disk)
        except StorageError as error:  # this checkpoint and the last one go into what was kept free for them
            self._low_space = error
            self.stop(Ending.LOW_SPACE)
        self._writing = self._hand_over(self._coordinator.freeze(now))

    def _hand_over(self, checkpoint: Checkpoint) -> asyncio.Future[None]:
        self._held, self._promised, self._patient = self._promised + self._patient, [], []
        self._handed_over_s = self._clock.now()
        writing = asyncio.get_running_loop().run_in_executor(self._writer, checkpoint.write)
        writing.add_done_callback(self._wrote)
        return writing

    def _wrote(self, _: "asyncio.Future[None]") -> None:
        self._written_s = self._clock.now()
        self._wake.set()

    def _end_checkpoint(self) -> None:
        assert self._writing is not None
        writing, self._writing = self._writing, None
        writing.result()
        self._installed()

    async def _write_last(self, how: Ending) -> None:
        if self._writing is not None:
            await self._writing
            self._end_checkpoint()
        await self._hand_over(self._coordinator.end(how, self._clock.now()))
        self._installed()

    def _installed(self) -> None:
        """Note that the checkpoint that was written is on disk, and tell who waits for that."""
        self._coordinator.state.installed()
        for watcher in self._watchers:
            watcher.written(self._written_s, self._written_s - self._handed_over_s)
        for promise in self._held:
            if not promise.done():
                promise.set_result(None)
        self._held = []

    async def _abandon(self) -> None:
        """Leave nothing running behind, however the run ended."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._writing is not None:
            await asyncio.gather(self._writing, return_exceptions=True)
