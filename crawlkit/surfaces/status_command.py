"""`crawlkit status`: how far a crawl is, asked of it while it runs, else from `CHECKPOINT`."""

import sys
import time
from pathlib import Path

import click
import msgspec

from crawlkit.engine.partitions import Partitions, check_crawl
from crawlkit.state.checkpoint import read_summary
from crawlkit.state.directory import is_held
from crawlkit.state.partitions import is_partitioned
from crawlkit.surfaces.control.client import NoAnswer, ask
from crawlkit.surfaces.control.messages import Do, Request
from crawlkit.surfaces.partitioned_status import partitioned_status
from crawlkit.surfaces.status import CrawlCondition, Status, as_line, as_text, live_status, status_of

REDRAW_EVERY_S = 1.0


@click.command("status")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--watch", is_flag=True, help="Say it again every second until the crawl does not run any more.")
@click.option("--hosts", default=10, show_default=True, metavar="N", type=click.IntRange(0, 10_000), help="Name N hosts.")
def status_command(directory: Path, as_json: bool, watch: bool, hosts: int) -> None:
    """Say how far the crawl in DIR is: at this moment while it runs, else as of its last checkpoint."""
    check_crawl(directory)
    status = status_now(directory, hosts)
    if not watch:
        _print(status, as_json=as_json)
    elif sys.stdout.isatty() and not as_json:
        _redraw(directory, hosts, status)
    else:
        _print_often(directory, hosts, status, as_json=as_json)


def status_now(directory: Path, hosts: int) -> Status:
    """Return the status of a crawl, with up to `hosts` hosts if it answers."""
    if is_partitioned(directory):
        return partitioned_status(Partitions.read(directory), hosts)
    if is_held(directory):
        try:
            live = ask(directory, Request(do=Do.STATUS, hosts=hosts)).live
        except NoAnswer:  # it is being made or opened, or is another version's
            live = None
        if live is not None:
            return live_status(live, directory)
    return status_of(read_summary(directory), directory, running=is_held(directory))


def _print(status: Status, *, as_json: bool) -> None:
    click.echo(msgspec.json.encode(status).decode() if as_json else as_text(status))


def _print_often(directory: Path, hosts: int, status: Status, *, as_json: bool) -> None:
    """Print a line a second."""
    while status.state is CrawlCondition.RUNNING:
        click.echo(msgspec.json.encode(status).decode() if as_json else as_line(status))
        time.sleep(REDRAW_EVERY_S)
        status = status_now(directory, hosts)
    click.echo(msgspec.json.encode(status).decode() if as_json else as_line(status))


def _redraw(directory: Path, hosts: int, status: Status) -> None:
    """Draw the status over itself."""
    from rich.live import Live  # noqa: PLC0415  (a tenth of the time that a start takes)
    from rich.text import Text  # noqa: PLC0415

    with Live(Text(as_text(status)), auto_refresh=False) as screen:
        while status.state is CrawlCondition.RUNNING:
            time.sleep(REDRAW_EVERY_S)
            status = status_now(directory, hosts)
            screen.update(Text(as_text(status)), refresh=True)
