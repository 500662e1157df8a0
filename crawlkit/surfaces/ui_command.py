"""`crawlkit ui`: the live page of a crawl, whether it runs or not."""

from pathlib import Path

import click

from crawlkit.engine.partitions import check_crawl
from crawlkit.engine.runner import run_async
from crawlkit.surfaces.live_page.serving import OPEN_TO_OTHERS, Desk
from crawlkit.surfaces.speech import say


@click.command("ui")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--listen", default="0", metavar="ADDR:PORT", help="Where to. [default: any free port of this machine]")
def ui_command(directory: Path, listen: str) -> None:
    """Show the crawl in DIR as a page in a browser, whether it runs or not.

    Until SIGINT or SIGTERM ends it.
    """
    check_crawl(directory)
    with Desk.open("--listen", listen) as desk:
        say(f"crawlkit: live page at {desk.url}", *([f"crawlkit: {OPEN_TO_OTHERS}"] if desk.is_open_to_others else []))
        run_async(desk.serve_until_signalled(directory))
