"""The driver: starts the partitions of a crawl, carries what they tell each other, starts again what dies, and ends them.

It decides nothing (`cluster.conductor` does) and keeps nothing: whatever ends it, the partitions' directories hold the crawl.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, assert_never

from crawlkit.cluster.conductor import Conductor, Orders, Phase
from crawlkit.cluster.messages import (
    Begin,
    Ended,
    Parcel,
    Ready,
    Receipt,
    Standing,
    ToDriver,
    Warned,
    decode_for_driver,
    encode,
)
from crawlkit.cluster.places import Places
from crawlkit.engine.ending import Ending
from crawlkit.engine.signals import Stoppable
from crawlkit.errors import CrawlError, error_of
from crawlkit.state.checkpoint import read_summary

WAVE_EVERY_S = 0.25
HURRIED_WAVE_S = 0.02
LAST_WORDS_S = 10.0
"""How long the processes of partitions that have ended are given to close their databases."""

MOST_DEATHS = 5
"""Deaths of a partition in a row, without a checkpoint in between, before the crawl is given up."""


class Link(Protocol):
    """A partition that was started, wherever it runs."""

    async def send(self, message: bytes) -> None:
        """Send a message; one to a partition that has died is dropped."""

    async def receive(self) -> bytes | None:
        """Return its next message, None once it has died or ended."""

    async def kill(self) -> None:
        """End it at once."""


class Engine(Places, Protocol):
    """Where partitions lie and run."""

    async def start(self, number: int) -> Link:
        """Start the process of a partition; its first message is its `Begin`. CrawlError if it cannot be."""


@dataclass(frozen=True, slots=True)
class Watching:
    """What the caller is told: how the partitions stand, often; what people should read. `around` wraps the run, to stop it."""

    on_turn: Callable[[Mapping[int, Standing]], object] = lambda _: None
    on_warning: Callable[[str], object] = lambda _: None
    around: Callable[[Stoppable], AbstractContextManager[object]] = nullcontext


@dataclass(frozen=True, slots=True)
class Orderly:
    """What a run is asked for besides: changed settings, failures to be tried again, options for the partitions' processes.

    `partitions` is how many there are to be, None for as many as there are.
    """

    changes: Mapping[str, object] = field(default_factory=dict)
    retry: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    partitions: int | None = None


class Driver:
    """One run of all partitions."""

    def __init__(
        self, directory: Path, epoch: int, conductor: Conductor, engine: Engine, watching: Watching, orderly: Orderly
    ) -> None:
        self._directory = directory
        self._epoch = epoch
        self._conductor = conductor
        self._engine = engine
        self._watching = watching
        self._orderly = orderly
        self._links: dict[int, Link] = {}
        self._pumps: set[asyncio.Task[None]] = set()
        self._deaths: dict[int, int] = {}
        self._batches: dict[int, int] = {}
        self._failure: BaseException | None = None
        self._stop: Ending | None = None
        self._changed = asyncio.Event()

    def stop(self, how: Ending) -> None:
        """Start no new fetches, let those in flight finish, end. May be called by a signal's handler."""
        self._stop = self._stop or how
        self._changed.set()

    async def run(self) -> Ending:
        """Run until all partitions have ended. Raises what made one of them fail."""
        try:
            await asyncio.gather(*(self._start(number) for number in self._conductor.members))
            while not self._conductor.over and self._failure is None:
                self._watching.on_turn(self._conductor.latest)
                if self._stop is not None and self._conductor.phase is not Phase.STOPPING:
                    await self._send(self._conductor.stop(self._stop))
                await self._send(self._conductor.look())
                await self._wait(HURRIED_WAVE_S if self._conductor.hurried else WAVE_EVERY_S)
            if self._pumps and self._failure is None:
                await asyncio.wait(self._pumps, timeout=LAST_WORDS_S)
        finally:
            for pump in self._pumps:
                pump.cancel()
            await asyncio.gather(*self._pumps, return_exceptions=True)
            await asyncio.gather(*(link.kill() for link in self._links.values()))
        if self._failure is not None:
            raise self._failure
        self._raise_failed()
        return self._conductor.how()

    async def _wait(self, most_s: float) -> None:
        try:
            async with asyncio.timeout(most_s):
                await self._changed.wait()
        except TimeoutError:
            pass
        self._changed.clear()

    def _raise_failed(self) -> None:
        for ended in self._conductor.ended.values():
            if ended.error is not None:
                raise error_of(ended.status, str(ended.error))

    # Starting --------------------------------------------------------------------------------------------------------

    async def _start(self, number: int) -> None:
        link = await self._engine.start(number)
        self._links[number] = link
        begin = Begin(
            str(self._directory.absolute()),
            number,
            self._epoch,
            self._conductor.shares.of(number),
            list(self._orderly.retry),
            self._orderly.options,
        )
        await link.send(encode(begin))
        pump = asyncio.create_task(self._pump(number, link))
        self._pumps.add(pump)
        pump.add_done_callback(self._pumped)

    def _pumped(self, pump: asyncio.Task[None]) -> None:
        self._pumps.discard(pump)
        if not pump.cancelled() and (error := pump.exception()) is not None:
            self._failure = self._failure or error
        self._changed.set()

    async def _pump(self, number: int, link: Link) -> None:
        """Pass on what a partition tells until it ends; start it again if that was not due."""
        while (data := await link.receive()) is not None:
            await self._take(decode_for_driver(data), number)
        await link.kill()
        died = number not in self._conductor.ended
        again = self._conductor.gone(number)
        if died and again:
            await self._note_death(number)
        for each in again:
            await self._start(each)

    async def _note_death(self, number: int) -> None:
        batch = (await self._engine.at(number, read_summary)).batch
        deaths = 1 if batch != self._batches.get(number) else self._deaths.get(number, 0) + 1
        self._batches[number], self._deaths[number] = batch, deaths
        if deaths >= MOST_DEATHS:
            raise CrawlError(
                f"partition {number} of {self._directory} died {deaths} times without getting on: see what it wrote to "
                "standard error; nothing is lost"
            )
        self._watching.on_warning(f"warning: partition {number} died and is started again")

    # Messages --------------------------------------------------------------------------------------------------------

    async def _take(self, message: ToDriver, number: int) -> None:
        match message:
            case Parcel() | Receipt():
                await self._send([(message.to, message)])
            case Standing():
                await self._send(self._conductor.stands(message))
            case Ready():
                await self._send(self._conductor.ready(number))
            case Ended():
                await self._send(self._conductor.has_ended(message))
                self._changed.set()
            case Warned(text=text):
                self._watching.on_warning(text)
            case unknown:
                assert_never(unknown)
        if self._conductor.hurried:
            self._changed.set()

    async def _send(self, orders: Orders) -> None:
        for number, message in orders:
            link = self._links.get(number)
            if link is not None:
                await link.send(encode(message))
