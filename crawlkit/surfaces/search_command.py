"""`crawlkit search`: the pages of a crawl that have some words."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
import msgspec

from crawlkit.surfaces.search.index import open_index
from crawlkit.surfaces.search.query import Found, find
from crawlkit.surfaces.speech import say
from crawlkit.surfaces.standard_output import standard_output
from crawlkit.surfaces.terminal import printable


@click.command("search")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("words", metavar="WORDS...", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option("--limit", type=click.IntRange(min=1), default=10, show_default=True, help="Show this many pages at most.")
def search_command(directory: Path, words: tuple[str, ...], as_json: bool, limit: int) -> None:
    """Show the pages of the crawl in DIR that have all of WORDS, the best first.

    Words match whatever their case and accents; several in one argument are a phrase. The first search after a crawl
    has gone on makes DIR/search.sqlite.
    """
    highlight = partial(click.style, bold=True) if sys.stdout.isatty() else _starred
    with open_index(directory) as database, standard_output() as out:
        pages = find(database, words, limit)
        out.writelines(_json_line(page) if as_json else _as_text(page, highlight).encode() for page in pages)
    if not pages:
        say("crawlkit: no page has all of these words")


_encode = msgspec.json.Encoder().encode


def _json_line(page: Found) -> bytes:
    return _encode(page) + b"\n"


def _starred(text: str) -> str:
    return f"*{text}*"


def _as_text(page: Found, highlight: Callable[[str], str]) -> str:
    """Return three lines: title, URL, snippet with its matches marked."""
    pieces = []
    last = 0
    for begin, end in page.matches:
        pieces += [_on_a_line(page.snippet[last:begin]), highlight(_on_a_line(page.snippet[begin:end]))]
        last = end
    snippet = "".join([*pieces, _on_a_line(page.snippet[last:])])
    return f"{_on_a_line(page.title or '(no title)')}\n  {page.url}\n  {snippet}\n"


def _on_a_line(text: str) -> str:
    return printable(text.translate(_BLANKS))


_BLANKS = dict.fromkeys(map(ord, "\t\n\r\f"), " ")
