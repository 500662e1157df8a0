"""Starts partitions as actors, each on the machine that holds its directory, and talks with them."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from crawlkit.cluster.messages import Begin
from crawlkit.cluster.on_ray.actor import Heard, Partition, Terms
from crawlkit.cluster.on_ray.machines import (
    Machine,
    Stock,
    check_versions,
    gone,
    locate,
    machines_of,
    make_ready,
    mark_of,
    spread,
    take_stock,
    write_places,
)
from crawlkit.config import VERSION
from crawlkit.engine.session import Hooks
from crawlkit.errors import CrawlError, StateError
from crawlkit.state import layout
from crawlkit.state.partitions import Table, member_directory

Result = TypeVar("Result")

BEGIN_S = 60.0
SILENT_S = 60.0
"""An actor that does not answer for so long is given up: it, or its machine, hangs."""

_COPIES = (layout.CRAWL, layout.CONFIG, layout.SEEDS, layout.PARTITIONS)
_NO_RETRY: Mapping[str, Any] = {"num_cpus": 0, "max_retries": 0}
_NO_RESTART: Mapping[str, Any] = {"num_cpus": 0, "max_restarts": 0, "max_task_retries": 0}


class ActorLink:
    """A partition's actor, and the line to it."""

    def __init__(self, ray: ModuleType, actor: Any, say: Callable[[str], object]) -> None:
        self._ray = ray
        self._actor = actor
        self._say = say
        self._outgoing: list[bytes] = []
        self._telling: asyncio.Task[None] | None = None
        self._heard: deque[bytes] = deque()
        self._over = False

    async def begin(self, terms: Terms) -> None:
        """Let it start; RayError if it is dead already."""
        async with asyncio.timeout(BEGIN_S):
            await self._actor.begin.remote(terms)

    async def send(self, message: bytes) -> None:
        """Send a message; one to an actor that has died is dropped. Without waiting, as the driver has to go on reading."""
        self._outgoing.append(message)
        if not self._over and (self._telling is None or self._telling.done()):
            self._telling = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        with contextlib.suppress(self._ray.exceptions.RayError):
            while self._outgoing:
                messages, self._outgoing = self._outgoing, []
                await self._actor.tell.remote(messages)

    async def receive(self) -> bytes | None:
        """Return its next message, None once it has died or ended."""
        while not self._heard:
            if self._over:
                return None
            await self._listen()
        return self._heard.popleft()

    async def _listen(self) -> None:
        try:
            async with asyncio.timeout(SILENT_S):
                heard = Heard(*await self._actor.listen.remote())
        except (self._ray.exceptions.RayError, TimeoutError):
            self._over = True
            return
        if heard.said:
            self._say(heard.said)
        self._heard += heard.messages
        self._over = heard.over

    async def kill(self) -> None:
        """End it at once. Whoever takes its place waits for the lock of its directory."""
        self._over = True
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.gather(self._telling, return_exceptions=True)
        with contextlib.suppress(self._ray.exceptions.RayError):
            self._ray.kill(self._actor, no_restart=True)


class RayEngine:
    """Partitions on the machines of the cluster that `ray` is connected with. `say` writes what they say on standard error."""

    def __init__(
        self,
        ray: ModuleType,
        hooks_of: Callable[[Begin], Hooks],
        environ: Mapping[str, str],
        say: Callable[[str], object],
    ) -> None:
        self._ray = ray
        self._hooks_of = hooks_of
        self._environ = environ
        self._say = say
        self._directory = Path()
        self._places: list[str] = []
        self._ours: frozenset[str] = frozenset()

    # Where partitions lie --------------------------------------------------------------------------------------------

    async def place(self, directory: Path, partitions: int) -> None:
        """Spread the partitions of a new crawl over the machines."""
        self._directory = _absolute(directory)
        stocks = await self._take_stock(0)
        self._places = spread(machines_of(self._ray).values(), partitions)
        for name in sorted(set(self._places) - self._ours):
            await self.call(name, partial(make_ready, self._directory))
        check_versions(stocks)
        write_places(directory, self._places)

    async def find(self, directory: Path, table: Table) -> None:
        """Find the machine of each partition; StateError, naming one, if it is missing or in doubt."""
        self._directory = _absolute(directory)
        stocks = await self._take_stock(len(table.members))
        check_versions(stocks)
        self._places = locate(directory, table, stocks)
        write_places(directory, self._places)

    async def _take_stock(self, partitions: int) -> dict[str, Stock]:
        names = sorted(machines_of(self._ray))
        look = partial(take_stock, self._directory, partitions, mark_of(self._directory))
        stocks = dict(zip(names, await asyncio.gather(*(self.call(name, look) for name in names)), strict=True))
        self._ours = frozenset(name for name, stock in stocks.items() if stock.is_ours)
        return stocks

    async def at(self, number: int, look: Callable[[Path], Result]) -> Result:
        """Call `look` with a partition's directory on its machine."""
        member = member_directory(self._directory, number)
        name = self._places[number]
        if name in self._ours:
            return look(member)
        self._machine_of(number)
        return await self.call(name, partial(look, member))

    def member(self, number: int) -> Path:
        """Return a partition's directory, wherever it lies."""
        return member_directory(self._directory, number)

    def elsewhere(self) -> list[tuple[int, str]]:
        """Return the partitions that do not lie on the driver's disk, each with its machine."""
        return [(number, name) for number, name in enumerate(self._places) if name not in self._ours]

    def is_here(self, number: int) -> None:
        """Record that a partition was brought to the driver's disk."""
        self._places[number] = min(self._ours)
        write_places(self._directory, self._places)

    async def call(self, name: str, function: Callable[[], Result]) -> Result:
        """Call a function in a process on a machine."""
        machine = machines_of(self._ray).get(name)
        if machine is None:
            raise StateError(f"machine {name} has left the Ray cluster")
        task = self._ray.remote(**_NO_RETRY)(_called).options(scheduling_strategy=self._on(machine.nodes[0]))
        try:
            result: Result = await task.remote(function)
        except self._ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, CrawlError):
                raise cause from None
            raise _cannot_run(name, cause or error) from error
        return result

    # Partitions ------------------------------------------------------------------------------------------------------

    async def start(self, number: int) -> ActorLink:
        """Start a partition's actor; StateError if its machine is gone."""
        machine = self._machine_of(number)
        node = machine.nodes[number % len(machine.nodes)]
        actor = self._ray.remote(**_NO_RESTART)(Partition).options(scheduling_strategy=self._on(node)).remote()
        link = ActorLink(self._ray, actor, self._say)
        copies = {} if machine.name in self._ours else {name: (self._directory / name).read_bytes() for name in _COPIES}
        try:
            await link.begin(Terms(self._hooks_of, self._environ, self._directory, copies))
        except TimeoutError as error:
            await link.kill()
            raise _cannot_run(machine.name, error) from error
        except self._ray.exceptions.RayError as error:
            self._machine_of(number)
            if isinstance(cause := getattr(error, "cause", None), CrawlError):
                raise cause from None
        return link  # where it has died already, that is what the driver hears first

    def _machine_of(self, number: int) -> Machine:
        name = self._places[number]
        machine = machines_of(self._ray).get(name)
        if machine is None:
            raise gone(self._directory, number, name)
        return machine

    def _on(self, node: str) -> object:
        """Return what holds a process to a node."""
        return self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)


def _absolute(directory: Path) -> Path:
    return directory.absolute()


def _called(function: Callable[[], Result]) -> Result:
    return function()


def _cannot_run(name: str, error: BaseException) -> CrawlError:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return StateError(
        f"machine {name} of the Ray cluster cannot run partitions: {lines[-1].strip()}; "
        f"its Python needs crawlkit[ray] {VERSION}"
    )
