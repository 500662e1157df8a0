"""Who watches a run from outside: metrics and spans, each where it was asked for. Their packages are extras."""

import importlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager

import msgspec

from crawlkit.engine.session import Running
from crawlkit.engine.watcher import Watcher
from crawlkit.errors import UsageError
from crawlkit.net.local import Socket

Beside = Callable[[Running], AbstractAsyncContextManager[object]]

NO_SDK = (
    "warning: --otel: no SDK of OpenTelemetry is configured, so spans go nowhere; "
    "opentelemetry-instrument crawlkit ... configures one"
)


class Watching(msgspec.Struct, frozen=True):
    """What is told what happens in a run, and what is open while it goes on."""

    watchers: tuple[Watcher, ...] = ()
    besides: tuple[Beside, ...] = ()


@contextmanager
def watching(
    metrics: str | None, on_place: Callable[[str, str], object], warn: Callable[[str], object], *, spans: bool
) -> Iterator[Watching]:
    """Give what watches a run, with a socket for `metrics` (`ADDR:PORT`, None for none) that listens already.

    `on_place` is told what is at which URL, `warn` of spans that will go nowhere. UsageError if the address cannot be listened
    at, or a package is not installed.
    """
    traced = _spans(warn) if spans else ()
    if metrics is None:
        yield Watching(traced)
        return
    _need("--metrics", "prometheus_client", "prometheus-client")
    from crawlkit.surfaces.listening import listen_for, url_of  # noqa: PLC0415  (most runs need no server of HTTP)

    with listen_for("--metrics", metrics) as listening:
        counted = _metrics(listening)
        on_place("metrics", f"{url_of(listening)}/metrics")
        yield Watching((*counted.watchers, *traced), counted.besides)


def _need(option: str, module: str, package: str) -> None:
    """Raise UsageError, naming the extra, where a module of `package` is not installed."""
    try:
        importlib.import_module(module)
    except ImportError as error:
        extra = option.removeprefix("--")
        raise UsageError(f"{option} needs {package}, which is not installed: pip install 'crawlkit[{extra}]'") from error


def _metrics(listening: Socket) -> Watching:
    from crawlkit.surfaces.metrics.exporter import Exporter  # noqa: PLC0415  (its package is an extra)

    exporter = Exporter(listening)
    return Watching((exporter.tally,), (exporter.beside,))


def _spans(warn: Callable[[str], object]) -> tuple[Watcher, ...]:
    _need("--otel", "opentelemetry.trace", "opentelemetry-api")
    from crawlkit.surfaces.spans import Spans, open_tracer  # noqa: PLC0415  (its package is an extra)

    tracer = open_tracer()
    if tracer is None:
        warn(NO_SDK)
        return ()
    return (Spans(tracer),)


@asynccontextmanager
async def all_beside(running: Running, besides: tuple[Beside, ...]) -> AsyncIterator[None]:
    """Open all of `besides` for a run."""
    async with AsyncExitStack() as stack:
        for beside in besides:
            await stack.enter_async_context(beside(running))
        yield
