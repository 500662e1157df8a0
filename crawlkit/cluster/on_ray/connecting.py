"""Finding Ray, or starting it on this machine: quietly, and in one line where that cannot be."""

import asyncio
import contextlib
import importlib
import importlib.util
import logging
import os
import threading
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import ModuleType
from typing import Any

from crawlkit.errors import StateError, UsageError

CONNECT_S = 5.0
ANSWER_S = 12.0
START_S = 90.0
OBJECT_STORE_BYTES = 80 * 1024 * 1024
"""Of a Ray that is started here, about the least it takes: parcels pass through it, and nothing stays."""

_LOCAL = ("local", None)
WITHOUT_SPARE = {"RAY_prestart_worker_first_driver": "0", "RAY_enable_worker_prestart": "0"}
"""A Ray that is started here makes processes when they are asked for: one for each partition, none to spare."""

_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is told to anybody
    "RAY_BACKEND_LOG_LEVEL": "fatal",  # its native parts would write to our standard error
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


def check_installed() -> None:
    """UsageError if Ray is not installed."""
    try:
        found = importlib.util.find_spec("ray")
    except ValueError:  # it is hidden on purpose
        found = None
    if found is None:
        raise UsageError("--engine ray needs Ray, which is not installed: pip install crawlkit[ray]")


def check_address(address: str | None) -> None:
    """UsageError for an address that Ray could not have."""
    if address in (*_LOCAL, "auto"):
        return
    host, _, port = str(address).rpartition(":")
    if not host or "/" in host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise UsageError(
            f"--ray-address {address}: HOST:PORT of the cluster's head is expected, or auto, on a machine of the cluster"
        )


@asynccontextmanager
async def connected(address: str | None) -> AsyncIterator[ModuleType]:
    """Be connected with a Ray cluster, or one that is started on this machine, while the block runs. StateError if not."""
    check_installed()
    check_address(address)
    if address not in (*_LOCAL, "auto"):
        await _check_answers(str(address))
    for name, value in (_ENVIRONMENT | (WITHOUT_SPARE if address in _LOCAL else {})).items():
        os.environ.setdefault(name, value)
    connection = _Connection(address)
    with _quiet():
        ray = await connection.open()
    try:
        yield ray
    finally:
        with _quiet():
            await connection.close()


async def _check_answers(address: str) -> None:
    """StateError if nobody listens there: Ray itself would try for a minute."""
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(CONNECT_S):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except (OSError, TimeoutError) as error:
        why = (
            (error.strerror or str(error))
            if isinstance(error, OSError) and not isinstance(error, TimeoutError)
            else "no answer"
        )
        raise _unreachable(address, why) from error
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


class _Connection:
    """Ray, opened and closed by a thread of its own.

    What Ray starts on this machine is killed by the kernel when the thread ends that started it, so that nothing outlives a
    killed driver. And opening cannot be stopped: a thread that takes too long is left behind.
    """

    def __init__(self, address: str | None) -> None:
        self._address = address
        self._loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[ModuleType] = self._loop.create_future()
        self._closed = asyncio.Event()
        self._close = threading.Event()
        self._thread = threading.Thread(target=self._work, name="crawlkit-ray", daemon=True)

    async def open(self) -> ModuleType:
        """Return Ray once it is ready; StateError if it cannot be."""
        self._thread.start()
        try:
            async with asyncio.timeout(START_S if self._address in _LOCAL else ANSWER_S):
                return await self._opened
        except TimeoutError as error:
            raise _unreachable(self._address, "no answer of a Ray cluster") from error
        except Exception as error:
            raise _unreachable(self._address, _first_line(error)) from error

    async def close(self) -> None:
        """Disconnect, and end what was started."""
        self._close.set()
        await self._closed.wait()
        self._thread.join()

    def _work(self) -> None:
        try:
            ray = _init(self._address)
        except Exception as error:
            self._tell(self._settle, error)
            return
        self._tell(self._settle, ray)
        self._close.wait()
        ray.shutdown()
        self._tell(self._closed.set)

    def _tell(self, call: Callable[..., object], *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(call, *arguments)

    def _settle(self, result: ModuleType | Exception) -> None:
        if self._opened.done():
            return
        if isinstance(result, Exception):
            self._opened.set_exception(result)
        else:
            self._opened.set_result(result)


def _init(address: str | None) -> ModuleType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray = importlib.import_module("ray")
        importlib.import_module("ray.util.scheduling_strategies")
        local: dict[str, Any] = {"include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
        ray.init(
            address=address or "local",
            log_to_driver=False,
            configure_logging=True,
            logging_level=logging.CRITICAL,
            **(local if address in _LOCAL else {}),
        )
    return ray


def _unreachable(address: str | None, why: str) -> StateError:
    if address in _LOCAL:
        return StateError(f"Ray cannot be started on this machine: {why}")
    return StateError(
        f"--ray-address {address} cannot be used: {why}; is Ray running there (ray status), and this a machine of the cluster?"
    )


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].partition(". ")[0].strip() if lines else type(error).__name__


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what native code writes off our standard error while the block runs."""
    kept = os.dup(2)
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.close(nowhere)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
