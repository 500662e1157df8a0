"""`crawlkit hosts`: the hosts of a crawl, and orders about one of them."""

import time
from enum import StrEnum
from pathlib import Path

import click
import msgspec

from crawlkit.config_units import parse_duration
from crawlkit.engine.figures import HostFigures, first_hosts
from crawlkit.engine.partitions import Partitions, check_crawl
from crawlkit.engine.resting import hosts_at_rest
from crawlkit.errors import UsageError
from crawlkit.state.directory import is_held
from crawlkit.state.partitions import is_partitioned
from crawlkit.state.reading import open_crawl_for_reading
from crawlkit.surfaces.control.client import NoAnswer, ask
from crawlkit.surfaces.control.messages import Do, Request
from crawlkit.surfaces.status import host_text
from crawlkit.surfaces.steering_commands import order


class HostsAction(StrEnum):
    """What is done about hosts."""

    LIST = "list"
    HOLD = "hold"
    RELEASE = "release"
    DROP = "drop"


_ORDERS = {HostsAction.HOLD: Do.HOLD, HostsAction.RELEASE: Do.RELEASE, HostsAction.DROP: Do.DROP}


@click.command("hosts")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("action", metavar="[list|hold|release|drop]", default="list", type=click.Choice([a.value for a in HostsAction]))
@click.argument("host", metavar="[HOST]", required=False)
@click.argument("duration", metavar="[DUR]", required=False)
@click.option("--limit", default=50, show_default=True, metavar="N", type=click.IntRange(1, 100_000), help="List N hosts.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a host.")
def hosts_command(directory: Path, action: str, host: str | None, duration: str | None, limit: int, as_json: bool) -> None:
    """List the hosts of the crawl in DIR that have URLs, or were held or dropped; or do something about one of them.

    hold: ask nothing of HOST for DUR, or until it is released. release: undo that, or a drop for what is still to come.
    drop: end its URLs, those found later too, without a request, as host.dropped.
    """
    chosen = HostsAction(action)
    if chosen is HostsAction.LIST:
        if host is not None:
            raise UsageError("hosts list takes no HOST")
        _list(directory, limit, as_json=as_json)
        return
    if host is None:
        raise UsageError(f"hosts {chosen} needs a HOST, like example.com")
    if duration is not None and chosen is not HostsAction.HOLD:
        raise UsageError(f"hosts {chosen} takes no duration")
    order(directory, Request(do=_ORDERS[chosen], host=host, for_s=None if duration is None else _seconds(duration)))


def _seconds(text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is not a duration, like 500ms, 10s or 2h") from error


def _list(directory: Path, limit: int, *, as_json: bool) -> None:
    for host in _hosts(directory, limit):
        click.echo(msgspec.json.encode(host).decode() if as_json else host_text(host))


def _hosts(directory: Path, limit: int) -> list[HostFigures]:
    check_crawl(directory)
    if not is_partitioned(directory):
        return _hosts_of(directory, limit)
    partitions = Partitions.read(directory)
    found = [host for member in partitions.members for host in _hosts_of(member, limit)]
    return first_hosts(found, limit)


def _hosts_of(directory: Path, limit: int) -> list[HostFigures]:
    if is_held(directory):
        try:
            live = ask(directory, Request(do=Do.STATUS, hosts=limit)).live
            return [] if live is None else live.hosts
        except NoAnswer:
            if is_held(directory):
                raise
    with open_crawl_for_reading(directory) as crawl:
        return hosts_at_rest(crawl, limit, time.time())
