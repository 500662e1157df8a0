"""`crawlkit reparse` as a user sees it."""

from pathlib import Path

from click.testing import CliRunner, Result

from crawlkit.errors import UsageError
from crawlkit.state.reading import open_crawl_for_reading
from crawlkit.surfaces.reparse_command import reparse_command
from tests.engine.test_archiving import start


def command(*arguments: str | Path) -> Result:
    return CliRunner().invoke(reparse_command, [str(argument) for argument in arguments], standalone_mode=False)


def test_it_says_what_it_did(tmp_path: Path) -> None:
    start(tmp_path / "c")
    result = command(tmp_path / "c", "--extract", "name=title", "--extract", "links[]=a@href")
    assert result.exception is None
    assert (result.stdout, result.stderr) == ("", "read 6 pages anew; 5 records changed\n")
    with open_crawl_for_reading(tmp_path / "c") as crawl:
        record = next(crawl.pages.walk())
    assert record.fields["name"] == "Home"


def test_without_an_archive_it_says_what_is_missing(tmp_path: Path) -> None:
    start(tmp_path / "c", warc=False)
    result = command(tmp_path / "c")
    assert isinstance(result.exception, UsageError)
    assert "--warc" in str(result.exception)
