"""One partition in its process: the ordinary loop over the ordinary crawl directory, and beside it the desk and its line.

A line carries whole messages to the driver and back, in order, or ends. If it ends the driver is gone: the run ends at once,
as by a bug (LineEnded), and its process with it, which is as safe as being killed.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol, assert_never

import msgspec

from crawlkit.cluster.desk import Desk
from crawlkit.cluster.messages import (
    Allow,
    Back,
    Begin,
    Ended,
    Finish,
    Look,
    Parcel,
    Ready,
    Receipt,
    Stop,
    ToDriver,
    ToMember,
    WalkHeld,
    Warned,
    decode_for_member,
    encode,
)
from crawlkit.config import Config, to_values
from crawlkit.engine.loop import Loop
from crawlkit.engine.session import Hooks, Membership, Running, Surroundings, go_on
from crawlkit.errors import CrawlError, StateLocked
from crawlkit.model import Reason
from crawlkit.policy.partition import Owners
from crawlkit.state.partitions import Table, member_directory, read_span, read_table
from crawlkit.state.reading import open_crawl_for_reading

SEND_EVERY_S = 0.1

LOCK_TRIES = 100
LOCK_EVERY_S = 0.1
"""How long a partition waits for the one that it takes the place of to be gone."""


class LineEnded(ConnectionError):
    """There is nobody at the other end of a line."""


class Line(Protocol):
    """The way to the driver."""

    async def receive(self) -> bytes | None:
        """Return the next message, None if the other end is gone."""

    async def send(self, message: bytes) -> None:
        """Send a message; ConnectionError if the other end is gone."""


async def serve(line: Line, hooks_of: Callable[[Begin], Hooks], surroundings: Surroundings) -> None:
    """Be the partition that the first message says, until its run ends. LineEnded if the line ends before that begins."""
    first = await line.receive()
    begin = None if first is None else decode_for_member(first)
    if not isinstance(begin, Begin):
        raise LineEnded
    try:
        ended = await _run(begin, line, hooks_of(begin), surroundings)
    except CrawlError as error:
        ended = Ended(begin.number, None, str(error), error.exit_status)
    await _send(line, ended)


async def _send(line: Line, message: ToDriver) -> None:
    try:
        await line.send(encode(message))
    except ConnectionError as error:
        raise LineEnded from error


async def _run(begin: Begin, line: Line, hooks: Hooks, surroundings: Surroundings) -> Ended:
    directory = Path(begin.directory)
    table = read_table(directory)
    membership = Membership(begin.number, Owners(tuple(table.owners)), read_span(directory))
    beside = _Beside(begin, membership.owners, line, hooks)
    own = member_directory(directory, begin.number)
    changes = await _changes(own, table)
    told = msgspec.structs.replace(hooks, beside=beside.running, on_warning=beside.warnings.append)
    outcome = await go_on(own, changes, told, surroundings, frozenset(map(Reason, begin.retry)), membership)
    await beside.tell_warnings()
    return Ended(begin.number, outcome.how)


async def _changes(directory: Path, table: Table) -> dict[str, object]:
    """Return the settings in which a partition differs from the crawl: a kill may have come between the one and the other."""
    wanted = to_values(Config.from_values(table.settings))
    for attempt in range(LOCK_TRIES):
        try:
            with open_crawl_for_reading(directory) as crawl:
                found = to_values(crawl.config())
            return {key: value for key, value in wanted.items() if found[key] != value}
        except StateLocked:
            if attempt == LOCK_TRIES - 1:
                raise
            await asyncio.sleep(LOCK_EVERY_S)
    raise AssertionError


def _note_failure(task: asyncio.Task[None], loop: Loop) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        loop.fail(error)


class _Beside:
    """What goes on beside the loop: messages from the driver, parcels to others."""

    def __init__(self, begin: Begin, owners: Owners, line: Line, hooks: Hooks) -> None:
        self._begin = begin
        self._owners = owners
        self._line = line
        self._hooks = hooks
        self.warnings: list[str] = []
        self._receipts: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def running(self, running: Running) -> AsyncIterator[None]:
        """Take part in the crawl while the block runs."""
        begin = self._begin
        desk = Desk(running.coordinator, self._owners, begin.number, begin.epoch, begin.most)
        running.loop.stand_by(True)
        async with self._hooks.beside(running):
            await self._tell(Ready(begin.number))
            tasks = [asyncio.create_task(self._listen(desk, running)), asyncio.create_task(self._send(desk, running))]
            for task in tasks:
                task.add_done_callback(lambda task: _note_failure(task, running.loop))
            try:
                yield
            finally:
                await asyncio.gather(*self._receipts, return_exceptions=True)  # the last checkpoint answers for them
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _tell(self, message: ToDriver) -> None:
        await _send(self._line, message)

    async def tell_warnings(self) -> None:
        """Pass on what people should read."""
        while self.warnings:
            await self._tell(Warned(self._begin.number, self.warnings.pop(0)))

    async def _listen(self, desk: Desk, running: Running) -> None:
        while (data := await self._line.receive()) is not None:
            await self._take(decode_for_member(data), desk, running)
        raise LineEnded

    async def _take(self, message: ToMember, desk: Desk, running: Running) -> None:
        now = running.clock.now()
        match message:
            case Parcel():
                self._take_parcel(message, desk, running, now)
            case Receipt():
                desk.acknowledge(message, now)
            case Look(wave):
                await self._tell(desk.standing(wave))
            case Allow():
                desk.allow(message)
            case WalkHeld():
                desk.walk_held()
            case Finish():
                running.loop.stand_by(False)
            case Stop(how):
                running.loop.stop(how)
            case Back(number):
                desk.send_again(number)
            case Begin():
                pass
            case unknown:
                assert_never(unknown)
        running.loop.wake()

    def _take_parcel(self, parcel: Parcel, desk: Desk, running: Running, now: float) -> None:
        promise = running.loop.promise()
        if promise is None:  # nothing that is taken in now would reach the disk
            return
        receipt = desk.take(parcel, now)
        if receipt is None:
            return
        task = asyncio.create_task(self._receipt(promise, receipt))
        self._receipts.add(task)
        task.add_done_callback(self._receipts.discard)

    async def _receipt(self, promise: Awaitable[None], receipt: Receipt) -> None:
        await promise
        await self._tell(receipt)

    async def _send(self, desk: Desk, running: Running) -> None:
        while True:
            for parcel in desk.parcels(running.clock.now()):
                await self._tell(parcel)
            await self.tell_warnings()
            await asyncio.sleep(SEND_EVERY_S)
