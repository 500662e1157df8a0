"""`crawlkit reparse`: pick fields from pages that are archived, by other rules, without the network."""

import time
from pathlib import Path

import click

from crawlkit.engine.reparse import reparse
from crawlkit.surfaces.options import options_of
from crawlkit.surfaces.speech import say


@click.command("reparse")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@options_of("extract")
def reparse_command(directory: Path, extract: tuple[str, ...]) -> None:
    """Read the archived pages of the crawl in DIR anew, and pick other fields from them, without the network.

    The rules given take the place of the crawl's; without any, its own are used. Title, description, language, headings
    and words are read anew too. A crawl that is gone on with later uses the new rules.
    """
    done = reparse(directory, extract, time.time())
    say(f"read {done.pages} pages anew; {done.changed} records changed")
