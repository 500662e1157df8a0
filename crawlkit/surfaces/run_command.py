"""`crawlkit run` and `crawlkit resume`: from the command line to a session, and its end to a summary and a status."""

import contextlib
import os
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from crawlkit.clock import SystemClock
from crawlkit.engine.runner import run_async
from crawlkit.engine.session import Hooks, Outcome, Surroundings, begin, default_directory, go_on
from crawlkit.engine.signals import stopping_on_signals
from crawlkit.errors import ExitStatus, StorageError, UsageError
from crawlkit.model import Reason
from crawlkit.policy.urls import parse_seed
from crawlkit.state.directory import is_begun
from crawlkit.surfaces.control.server import serving
from crawlkit.surfaces.help_sections import SectionedCommand
from crawlkit.surfaces.log import Log, LogFormat, Verbosity
from crawlkit.surfaces.options import config_file_option, given, parse_set, setting_options
from crawlkit.surfaces.partition_options import partition_options, read_partitions
from crawlkit.surfaces.progress import Progress, open_progress
from crawlkit.surfaces.settings import gather
from crawlkit.surfaces.watching import Beside, all_beside, watching

if TYPE_CHECKING:
    from crawlkit.surfaces.live_page.serving import Desk

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Session = Callable[[Hooks, Progress], Coroutine[Any, Any, Outcome]]

_PATH = click.Path(path_type=Path)  # one for all: each looks for a translation of what it is called


def _talking_options(command: Decorated) -> Decorated:
    """Give a command the options that say how a run talks and ends, in the order of the contract."""
    for option in (
        click.option("--otel", is_flag=True, help="Make an OpenTelemetry span of each request, by the SDK that is configured."),
        click.option("--metrics", metavar="ADDR:PORT", help="Serve metrics for Prometheus there while the crawl runs."),
        click.option(
            "--ui",
            is_flag=False,
            flag_value="0",
            metavar="[ADDR:PORT]",
            help="Show the crawl as a page in a browser, at ADDR:PORT or any free port of this machine.",
        ),
        click.option("--progress/--no-progress", default=None, help="Show progress. [default: unless quiet]"),
        click.option("--log-format", type=click.Choice([*map(str, LogFormat)]), default="text", help="How lines are written."),
        click.option("-v", "--verbose", count=True, help="Say what becomes of each URL; twice, also when it is asked for."),
        click.option("-q", "--quiet", is_flag=True, help="Say errors only, and how to resume."),
        click.option("--exit-zero", is_flag=True, help="Page failures do not make the exit status 1."),
    ):
        command = option(command)
    return command


@click.command("run", cls=SectionedCommand)
@click.argument("seeds", nargs=-1, metavar="[SEED]...")
@click.option("-i", "--input", "inputs", multiple=True, metavar="FILE", help="Seeds, one a line, # comments, - for stdin.")
@click.option("-d", "--dir", "directory", type=_PATH, help="The crawl directory. [default: <host>.crawl]")
@click.option("--since", type=_PATH, metavar="DIR", help="Ask only for what has changed since the crawl in DIR.")
@config_file_option
@setting_options
@partition_options
@_talking_options
def run_command(
    seeds: tuple[str, ...],
    inputs: tuple[str, ...],
    directory: Path | None,
    since: Path | None,
    config_file: Path | None,
    **params: Any,
) -> int:
    """Start a crawl from SEEDs (URLs) into a crawl directory."""
    settings = gather(Path.cwd(), config_file, os.environ, given(params))
    all_seeds = [*seeds, *(seed for name in inputs for seed in _read_seeds(name))]
    into = directory or default_directory(all_seeds)
    partitions = read_partitions(params["partitions"])
    if partitions is not None:
        from crawlkit.surfaces.partitioned import run_session  # noqa: PLC0415  (most runs need none of it)

        return _run(into, params, run_session(all_seeds, into, settings.config, partitions, {**params, "since": since}))
    return _run(into, params, lambda hooks, _: begin(all_seeds, into, settings.config, hooks, Surroundings(), since))


@click.command("resume", cls=SectionedCommand)
@click.argument("directory", metavar="DIR", type=_PATH)
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="Change a setting. May be repeated.")
@click.option(
    "--retry-failed",
    is_flag=False,
    flag_value="",
    metavar="[=REASON,...]",
    help="Try failures again: all, or for some reasons.",
)
@partition_options
@_talking_options
def resume_command(directory: Path, changes: tuple[str, ...], retry_failed: str | None, **params: Any) -> int:
    """Go on with the crawl in DIR, after a crash, a stop or a limit."""
    from crawlkit.state.partitions import is_partitioned  # noqa: PLC0415  (a crawl that begins is not asked)

    changed = parse_set(changes)
    retry = frozenset[Reason]()
    if retry_failed is not None:
        from crawlkit.engine.revival import read_reasons  # noqa: PLC0415  (most runs need none of it)

        retry = read_reasons(retry_failed)
    if is_partitioned(directory):
        from crawlkit.surfaces.partitioned import resume_session  # noqa: PLC0415

        return _run(directory, params, resume_session(directory, changed, retry, params))
    if params["partitions"] is not None:
        raise UsageError(f"--partitions: {directory} is one crawl; begin one in partitions: crawlkit run --partitions N SEED")
    return _run(directory, params, lambda hooks, _: go_on(directory, changed, hooks, Surroundings(), retry))


def _read_seeds(name: str) -> list[str]:
    """Return the seeds of a file, in normal form: its lines that are neither empty nor comments."""
    where = "standard input" if name == "-" else name
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read the seeds in {where}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"the seeds in {where} are not UTF-8 text (byte {error.start})") from error
    lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    found = [parse_seed(line, f"{where}, line {number}: seed") for number, line in lines if line and not line.startswith("#")]
    if not found:
        raise UsageError(f"no seed in {where}: one URL a line is expected")
    return found


@contextmanager
def _page_desk(place: str | None, log: Log) -> "Iterator[Desk | None]":
    """Give the desk of the live page, None if it is not wanted."""
    if place is None:
        yield None
        return
    from crawlkit.surfaces.live_page.serving import OPEN_TO_OTHERS, Desk  # noqa: PLC0415  (most runs need none of it)

    with Desk.open("--ui", place) as desk:
        log.show_page(desk.url)
        if desk.is_open_to_others:
            log.warn(OPEN_TO_OTHERS)
        yield desk


def _run(directory: Path, params: dict[str, Any], session: Session) -> int:
    """Run a session with progress and signals; say how it ended and return its status."""
    verbosity = Verbosity.QUIET if params["quiet"] else Verbosity(min(Verbosity.NORMAL + params["verbose"], Verbosity.ALL))
    log = Log(directory, LogFormat(params["log_format"]), verbosity, SystemClock())

    def on_second_signal() -> None:
        if is_begun(directory):
            with contextlib.suppress(OSError):
                os.write(sys.stderr.fileno(), f"{log.left_line()}\n".encode(errors="surrogateescape"))

    try:
        with (
            _page_desk(params["ui"], log) as desk,
            stopping_on_signals(on_second_signal) as stopper,
            watching(params["metrics"], log.serve, log.warn, spans=params["otel"]) as watch,
            open_progress(params["progress"], log) as progress,
        ):
            page: tuple[Beside, ...] = () if desk is None else (desk.beside,)
            besides: tuple[Beside, ...] = (partial(serving, warn=log.warn), *watch.besides, *page)
            hooks = Hooks(
                on_turn=progress.show,
                on_warning=log.warn,
                on_event=None if verbosity is Verbosity.QUIET else log.on_event,
                around=stopper.around,
                beside=partial(all_beside, besides=besides),
                watchers=watch.watchers,
            )
            outcome = run_async(session(hooks, progress))
    except StorageError as error:
        log.fail(str(error), resumable=is_begun(directory))
        return ExitStatus.STORAGE
    log.end(outcome)
    if params["exit_zero"] and outcome.status is ExitStatus.PAGES_FAILED and outcome.counters.pages:
        return ExitStatus.DONE
    return outcome.status
