"""Requests to a running crawl, answered between the loop's turns, none of which that holds up.

What a client does wrong, or does not do, ends its own connection only.
"""

import asyncio
import contextlib
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, assert_never

import msgspec

from crawlkit.engine.figures import Live
from crawlkit.engine.lately import Witness
from crawlkit.engine.live import HostsSeen, summary_of
from crawlkit.engine.network import seeds_private_addresses
from crawlkit.engine.pace import Pacer
from crawlkit.engine.session import Running, read_seeds
from crawlkit.engine.steering import Added, Steering
from crawlkit.errors import CrawlError, StateError, StorageError, UsageError
from crawlkit.net.local import Socket
from crawlkit.state.copying import EVERYTHING, REPORTED, lines_of
from crawlkit.surfaces.control.messages import END, MOST_REQUEST_BYTES, PROTOCOL, Answer, Do, Request
from crawlkit.surfaces.control.orders import note_added, steer

REQUEST_WITHIN_S = 10.0
TAKEN_WITHIN_S = 60.0
"""How long a client may take none of what it asked for. Its snapshot holds back what LevelDB could remove."""

SEEDS_A_TURN = 250
SEARCHED_RECORDS = 1_000
"""Records that are searched for links to a URL: in a turn, so fewer than of a crawl that does not run."""

LAST_ANSWERS_S = 2.0
"""How long the end of a run waits for answers that are on their way."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Request).decode


class Answering:
    """Answers one request a connection."""

    def __init__(self, running: Running, pacer: Pacer, witness: Witness) -> None:
        self._running = running
        self._steering = Steering.of(running.coordinator, running.on_event)
        self._pacer = pacer
        self._witness = witness
        self._awaiting: set[asyncio.Task[None]] = set()  # those whose answer the end of the run waits for
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="crawlkit-reader")

    async def finish(self) -> None:
        """Wait for answers that are on their way."""
        if self._awaiting:
            await asyncio.wait(self._awaiting, timeout=LAST_ANSWERS_S)

    def close(self) -> None:
        """Wait for who reads a snapshot, for some milliseconds: before the state is closed."""
        self._reader.shutdown()

    async def serve(self, connection: Socket) -> None:
        """Take one request and answer it."""
        reader, writer = await asyncio.open_unix_connection(sock=connection, limit=MOST_REQUEST_BYTES)
        try:
            await self._answer(_read(await asyncio.wait_for(reader.readline(), REQUEST_WITHIN_S)), writer)
        except CrawlError as error:
            with contextlib.suppress(OSError, TimeoutError):
                await _send(writer, _encode(Answer(error=str(error), status=error.exit_status)) + b"\n")
        except ValueError:  # what `readline` raises
            with contextlib.suppress(OSError, TimeoutError):
                await _send(writer, _encode(Answer(error="the request is too long", status=UsageError.exit_status)) + b"\n")
        except (OSError, TimeoutError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        match request.do:
            case Do.STATUS:
                await _send(writer, _encode(Answer(live=await self._live(request.hosts))) + b"\n")
            case Do.READ:
                await self._send_rows(writer, EVERYTHING if request.whole else REPORTED)
            case Do.WATCH:
                live = await self._live(request.hosts)
                await _send(writer, _encode(Answer(live=live, lately=self._witness.lately())) + b"\n")
            case Do.EXPLAIN:
                await _send(writer, _encode(Answer(explanation=self._explain(request.url))) + b"\n")
            case Do.PAUSE | Do.CONTINUE | Do.HOLD | Do.RELEASE | Do.DROP | Do.ADD:
                with self._awaited():
                    await _send(writer, _encode(Answer(done=await self._steer(request))) + b"\n")
            case unknown:
                assert_never(unknown)

    def _explain(self, url: str) -> dict[str, Any]:
        from crawlkit.engine.explain.explainer import Explainer  # noqa: PLC0415  (most crawls are never asked: 7 ms of a start)

        coordinator = self._running.coordinator
        explainer = Explainer(coordinator.state.look(), coordinator.admission.scope)
        explanation = explainer.explain(url, self._running.clock.now(), SEARCHED_RECORDS)
        told: dict[str, Any] = msgspec.to_builtins(explanation)
        return told

    @contextmanager
    def _awaited(self) -> Iterator[None]:
        """Let the end of the run wait for the task that this is: what it does is in the last checkpoint."""
        task = asyncio.current_task()
        assert task is not None
        self._awaiting.add(task)
        try:
            yield
        finally:
            self._awaiting.discard(task)

    async def _steer(self, request: Request) -> str:
        """Do what is asked for, wait until a checkpoint on disk holds it, and say what was done."""
        if request.do is Do.ADD:
            return await self._add(request.seeds)
        on_disk = self._changing()
        done = steer(self._steering, self._running.coordinator, request, self._running.clock.now())
        await self._durable(on_disk)
        return done

    async def _add(self, urls: Sequence[str]) -> str:
        """Add seeds, some between any two turns of the loop."""
        running = self._running
        seeds = read_seeds(urls)
        private = await seeds_private_addresses(seeds, running.config)
        on_disk = self._changing()
        running.resolver.allow(private)
        running.coordinator.state.allow_private(private)
        added = Added()
        for start in range(0, len(seeds), SEEDS_A_TURN):
            on_disk = self._changing()
            added += self._steering.add(seeds[start : start + SEEDS_A_TURN])
            await asyncio.sleep(0)
        on_disk = self._changing()
        done = note_added(self._steering, seeds, added, running.clock.now())
        await self._durable(on_disk)
        return done

    def _changing(self) -> "asyncio.Future[None]":
        """Return what is done when the change that comes now is on disk; StateError if the run ends without it."""
        on_disk = self._running.loop.look_again()
        if on_disk is None:
            raise StateError("the run is just ending; try again when it has")
        return on_disk

    @staticmethod
    async def _durable(on_disk: "asyncio.Future[None]") -> None:
        await asyncio.wait([on_disk])
        if on_disk.cancelled():
            raise StorageError("the run ended before this was written; try again")

    async def _live(self, most_hosts: int) -> Live:
        coordinator, clock = self._running.coordinator, self._running.clock
        hosts = HostsSeen(coordinator, most_hosts)
        for _ in iter(lambda: hosts.step(clock.now()), False):
            await asyncio.sleep(0)
        now = clock.now()
        pace = self._pacer.pace(coordinator, now)
        return Live(summary_of(coordinator, now), pace, coordinator.paused, hosts.result())

    async def _send_rows(self, writer: asyncio.StreamWriter, kinds: Collection[bytes]) -> None:
        """Send the crawl as of its last checkpoint: read and encoded by a thread, as fast as the client takes it."""
        in_thread = asyncio.get_running_loop().run_in_executor
        snapshot = self._running.coordinator.state.snapshot()
        lines = lines_of(snapshot, kinds)

        def close() -> None:
            lines.close()
            snapshot.close()

        try:
            await _send(writer, _encode(Answer()) + b"\n")
            while (line := await in_thread(self._reader, next, lines, None)) is not None:
                await _send(writer, line + b"\n")
            await _send(writer, END)
        finally:
            self._reader.submit(close)


def _read(line: bytes) -> Request:
    """Return the request that a line is; UsageError if it is none, or of a protocol that is not ours."""
    try:
        request = _decode(line)
    except msgspec.DecodeError as error:
        raise UsageError(f"not a request that this crawl knows: {error}") from error
    if request.v != PROTOCOL:
        raise UsageError(f"this crawl speaks version {PROTOCOL} of the control protocol, not {request.v}")
    return request


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await asyncio.wait_for(writer.drain(), TAKEN_WITHIN_S)
