"""`crawlkit report`: the results of a crawl, sorted, on standard output or into a file."""

import sys
from pathlib import Path

import click

from crawlkit.errors import StorageError, UsageError
from crawlkit.state.reading import open_crawl_for_reading
from crawlkit.surfaces.report import Only, ReportFormat, ReportOptions, write_report, write_report_file
from crawlkit.surfaces.selection import Selection, read_fields
from crawlkit.surfaces.sidecar import meta_of


@click.command("report")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--format", "format_", type=click.Choice([f.value for f in ReportFormat]), default="text", show_default=True)
@click.option("--only", type=click.Choice([o.value for o in Only]), help="[default: pages for text, all for jsonl and csv]")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Replace FILE.")
@click.option("--with-timing", is_flag=True, help="Add what depends on time and order (jsonl, csv).")
@click.option("--fields", metavar="NAME,...", help="Show these fields only, in this order (jsonl, csv).")
def report_command(
    directory: Path, format_: str, only: str | None, output: Path | None, with_timing: bool, fields: str | None
) -> None:
    """Write the results of the crawl in DIR, sorted by URL."""
    if fields is not None and format_ == ReportFormat.TEXT:
        raise UsageError("--fields: text has no fields; add --format jsonl or --format csv")
    with open_crawl_for_reading(directory) as crawl:
        selection = None if fields is None else Selection(read_fields(fields, ()))
        options = ReportOptions(ReportFormat(format_), None if only is None else Only(only), with_timing, selection)
        if output is None:
            try:
                write_report(crawl.pages.walk(), sys.stdout.buffer, sys.stderr, options)
                sys.stdout.buffer.flush()
            except BrokenPipeError:
                raise
            except OSError as error:
                raise StorageError(f"cannot write standard output: {error.strerror}") from error
        else:
            write_report_file(output, crawl.pages.walk(), sys.stderr, options, meta_of(crawl))
