"""`crawlkit export`: the records of a crawl as a file of another format."""

from pathlib import Path

import click

from crawlkit.surfaces.control.client import open_crawl
from crawlkit.surfaces.exports.formats import ExportFormat, export, writer_of
from crawlkit.surfaces.interrupts import files_removed_when_ended


@click.command("export")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--to", "format_", type=click.Choice([f.value for f in ExportFormat]), required=True, help="The format.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", required=True, help="Replace FILE."
)
def export_command(directory: Path, format_: str, output: Path) -> None:
    """Write the records of the crawl in DIR to FILE, sorted by URL, with a sidecar FILE.meta.json.

    FILE is replaced when all is written. `edges` is the link graph: CSV if FILE is named .csv, else JSON lines. `sitemap`
    has the pages that may be indexed; where they are too many for one file, FILE is the index and its parts lie beside it.
    `cdxj` is the index of the archive, for tools that replay.
    """
    chosen = ExportFormat(format_)
    write = writer_of(chosen)
    with files_removed_when_ended(), open_crawl(directory) as crawl:
        export(crawl, chosen, output, write)
