"""`crawlkit pause`, `crawlkit continue` and `crawlkit add`: orders to a crawl, whether it runs or not."""

import time
from collections.abc import Sequence
from pathlib import Path

import click

from crawlkit.engine.partitions import Partitions, check_crawl
from crawlkit.state.directory import is_held
from crawlkit.state.partitions import is_partitioned
from crawlkit.surfaces.control.client import NoAnswer, ask
from crawlkit.surfaces.control.messages import Do, Request
from crawlkit.surfaces.control.partitioned import order_partitions
from crawlkit.surfaces.speech import say

_directory = click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))


@click.command("pause")
@_directory
def pause_command(directory: Path) -> None:
    """Let the crawl that runs in DIR start no new fetches. A pause ends with the run: a resumed crawl is not paused."""
    order(directory, Request(do=Do.PAUSE))


@click.command("continue")
@_directory
def continue_command(directory: Path) -> None:
    """Let the crawl that was paused in DIR go on."""
    order(directory, Request(do=Do.CONTINUE))


@click.command("add")
@_directory
@click.argument("seeds", metavar="SEED...", nargs=-1, required=True)
def add_command(directory: Path, seeds: tuple[str, ...]) -> None:
    """Add SEEDs (URLs) to the crawl in DIR, at depth 0.

    One that is outside of the scope is crawled itself, and does not extend the scope.
    """
    order(directory, Request(do=Do.ADD, seeds=seeds))


def order(directory: Path, request: Request) -> None:
    """Have an order carried out by the crawl that runs, or on its directory; say what was done, which is on disk then.

    StateError and its kinds, UsageError for what the order names.
    """
    check_crawl(directory)
    if is_partitioned(directory):
        say(*(f"crawlkit: {done}" for done in order_partitions(Partitions.read(directory), request, _done)))
    else:
        say(f"crawlkit: {_done(directory, request)}")


def _done(directory: Path, request: Request, span: Sequence[str] | None = None) -> str:
    if is_held(directory):
        try:
            return ask(directory, request).done or ""
        except NoAnswer:
            if is_held(directory):
                raise
    from crawlkit.surfaces.control.stopped import carry_out  # noqa: PLC0415  (what a running crawl does needs little)

    return carry_out(directory, request, time.time(), span)
