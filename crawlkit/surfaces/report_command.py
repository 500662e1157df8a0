"""`crawlkit report`: the results of a crawl, sorted, or a view on the site's health, on standard output or into a file."""

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from crawlkit.config_extract import parse_extract
from crawlkit.errors import UsageError
from crawlkit.state.reading import CrawlReader
from crawlkit.surfaces.control.client import open_crawl
from crawlkit.surfaces.health.views import View
from crawlkit.surfaces.health.writing import write_view, write_view_file
from crawlkit.surfaces.interrupts import files_removed_when_ended
from crawlkit.surfaces.report import Only, ReportFormat, ReportOptions, write_report, write_report_file
from crawlkit.surfaces.report_page.writing import write_page, write_page_file
from crawlkit.surfaces.selection import Selection, read_fields
from crawlkit.surfaces.sidecar import meta_of
from crawlkit.surfaces.standard_output import standard_output

_PAGE = "html"
"""The format that is a page for a browser and no list of records."""
_FORMATS = [*(format_.value for format_ in ReportFormat), _PAGE]

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_VIEWS = {
    View.BROKEN: "Instead: what failed or redirects, with the pages that link to it.",
    View.ORPHANS: "Instead: what a sitemap names and nothing else leads to.",
    View.REDIRECTS: "Instead: what redirects, with the chain that it begins.",
    View.TITLES: "Instead: pages without a title, or with that of others.",
    View.CANONICALS: "Instead: pages whose canonical is another URL, and what is wrong with that.",
    View.DUPLICATES: "Instead: pages with the same bytes, or nearly the same text, as others.",
}


def view_options(command: Decorated) -> Decorated:
    """Give a click command a flag for each view, as parameters of the views' names."""
    for view in reversed(View):
        command = click.option(f"--{view.value}", view.value, is_flag=True, help=_VIEWS[view])(command)
    return command


@click.command("report")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--format", "format_", type=click.Choice(_FORMATS), default="text", show_default=True)
@click.option("--only", type=click.Choice([o.value for o in Only]), help="[default: pages for text, all for jsonl and csv]")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Replace FILE.")
@click.option("--with-timing", is_flag=True, help="Add what depends on time and order (jsonl, csv).")
@click.option("--fields", metavar="NAME,...", help="Show these fields only, in this order (jsonl, csv).")
@view_options
def report_command(
    directory: Path,
    format_: str,
    only: str | None,
    output: Path | None,
    with_timing: bool,
    fields: str | None,
    **views: bool,
) -> None:
    """Write the results of the crawl in DIR, sorted by URL, or a view on the site's health."""
    given = {"--only": only is not None, "--with-timing": with_timing, "--fields": fields is not None}
    others = [name for name, is_given in given.items() if is_given]
    view = _chosen([View(name) for name, is_given in views.items() if is_given], others)
    if format_ == _PAGE:
        _page(directory, [*others, *([] if view is None else [f"--{view.value}"])], output)
        return
    options = ReportOptions(ReportFormat(format_), None if only is None else Only(only), with_timing)
    with files_removed_when_ended(), open_crawl(directory) as crawl:
        if view is not None:
            _show(view, crawl, options.format, output)
        else:
            _report(crawl, options if fields is None else _selecting(crawl, options, fields), output)


def _page(directory: Path, rest: list[str], output: Path | None) -> None:
    if rest:
        raise UsageError(f"--format html is one page with all there is: it cannot go with {rest[0]}")
    with files_removed_when_ended(), open_crawl(directory) as crawl:
        if output is not None:
            write_page_file(crawl, output)
            return
        with standard_output() as out:
            write_page(crawl, out)


def _chosen(views: list[View], rest: list[str]) -> View | None:
    """Return the view that was asked for, None if none was; UsageError for what cannot go together."""
    if not views:
        return None
    others = [f"--{view.value}" for view in views[1:]] + rest
    if others:
        raise UsageError(f"--{views[0].value} and {others[0]} cannot go together")
    return views[0]


def _selecting(crawl: CrawlReader, options: ReportOptions, fields: str) -> ReportOptions:
    if options.format is ReportFormat.TEXT:
        raise UsageError("--fields: text has no fields; add --format jsonl or --format csv")
    return replace(options, selection=Selection(read_fields(fields, _extracted(crawl)), partial(_text, crawl)))


def _report(crawl: CrawlReader, options: ReportOptions, output: Path | None) -> None:
    if output is not None:
        write_report_file(output, crawl.pages.walk_marked(), sys.stderr, options, meta_of(crawl))
        return
    with standard_output() as out:
        write_report(crawl.pages.walk_marked(), out, sys.stderr, options)


def _show(view: View, crawl: CrawlReader, format_: ReportFormat, output: Path | None) -> None:
    if output is not None:
        write_view_file(view, crawl, format_, output)
        return
    with standard_output() as out:
        write_view(view, crawl, format_, out)


def _extracted(crawl: CrawlReader) -> list[str] | None:
    config = crawl.config()
    return None if config.plugin else [parse_extract(item).name for item in config.extract]


def _text(crawl: CrawlReader, url: str) -> str | None:
    content = crawl.pages.content(url)
    return None if content is None else content.text
