"""Partitions as processes of this machine, each over a pair of sockets: no port, no file, and it ends with either side.

A partition is in a session of its own, so that keys pressed in a terminal reach the driver alone, which stops it in order.
"""

import asyncio
import contextlib
import subprocess
from collections.abc import Sequence

from crawlkit.cluster.places import Here
from crawlkit.net.frames import Frames, inherited, pair


class Process:
    """A partition's process, and the line to it."""

    def __init__(self, process: asyncio.subprocess.Process, frames: Frames) -> None:
        self._process = process
        self._frames = frames

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    async def send(self, message: bytes) -> None:
        """Send a message; one to a process that has died is dropped.

        Without waiting: the driver has to go on reading, or partitions and it could wait for each other in a ring. What
        gathers is bounded by what partitions may have on the way.
        """
        with contextlib.suppress(ConnectionError):
            self._frames.post(message)

    async def receive(self) -> bytes | None:
        """Return its next message, None once it has died or ended."""
        return await self._frames.receive()

    async def kill(self) -> None:
        """End it at once, and wait until it has."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        self._frames.close()


class Processes(Here):
    """Starts `command` for each partition, with the number of its socket's file descriptor as one more argument."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command

    async def start(self, number: int) -> Process:
        """Start a partition's process."""
        ours, theirs = pair()
        with theirs:
            descriptor = theirs.fileno()
            process = await asyncio.create_subprocess_exec(
                *self._command,
                str(descriptor),
                pass_fds=(descriptor,),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        return Process(process, await Frames.over(ours))


async def open_line(descriptor: int) -> Frames:
    """Return the partition's side of the line."""
    return await Frames.over(inherited(descriptor))
