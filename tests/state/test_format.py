"""A crawl directory as an earlier version left it is opened, or refused by its version; its records say the same.

`tests/data/crawl-format-1.tar.gz` holds a crawl that was killed half way (`crawl/`, without the filter, which is a cache), its
records then (`then`) and in the end (`finally`). A version that writes another format adds a file of its own, made by

    python -c "from tests.state.test_format import make; make()"
"""

import io
import json
import tarfile
import tempfile
from pathlib import Path

import msgspec
import pytest

from crawlkit.engine.ending import Ending
from crawlkit.engine.verify import Thoroughness, verify
from crawlkit.errors import StateVersion
from crawlkit.state.directory import FORMAT
from crawlkit.state.layout import BLOOM, CRAWL
from tests.crash.fake_crawls import crawl, dump, kill, resume

DATA = Path(__file__).parent.parent / "data"
FIXTURES = sorted(DATA.glob("crawl-format-*.tar.gz"))


def make() -> None:
    """Write the fixture of the format that this version writes."""
    with tempfile.TemporaryDirectory() as place, tarfile.open(DATA / f"crawl-format-{FORMAT}.tar.gz", "w:gz") as archive:
        directory = Path(place) / "crawl"
        kill(directory, 30, crawl)
        kill(directory, 60, resume)
        archive.add(directory, "crawl", filter=lambda member: None if member.name.endswith(BLOOM) else member)
        _add(archive, "then", dump(directory))
        assert resume(directory).how is Ending.FINISHED
        _add(archive, "finally", dump(directory))


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


def _unpack(fixture: Path, place: Path) -> Path:
    with tarfile.open(fixture) as archive:
        archive.extractall(place, filter="data")
    return place / "crawl"


def told_then(directory: Path, earlier: Path) -> bytes:
    """Return the report of the crawl in `directory` with those fields only that the version which wrote `earlier` had."""
    names = list(json.loads(earlier.read_bytes().splitlines()[0]))
    now = (json.loads(line) for line in dump(directory).splitlines())
    return b"".join(msgspec.json.encode({name: line[name] for name in names}) + b"\n" for line in now)


def test_the_format_that_is_written_has_a_fixture() -> None:
    assert DATA / f"crawl-format-{FORMAT}.tar.gz" in FIXTURES


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.name)
def test_a_crawl_of_every_format_so_far_opens_and_goes_on(fixture: Path, tmp_path: Path) -> None:
    directory = _unpack(fixture, tmp_path)
    assert told_then(directory, tmp_path / "then") == (tmp_path / "then").read_bytes()
    assert verify(directory, Thoroughness.FULL).whole
    assert resume(directory).how is Ending.FINISHED
    assert told_then(directory, tmp_path / "finally") == (tmp_path / "finally").read_bytes()


def test_a_crawl_of_a_format_to_come_is_refused_by_its_version(tmp_path: Path) -> None:
    directory = _unpack(FIXTURES[-1], tmp_path)
    manifest = json.loads((directory / CRAWL).read_text())
    (directory / CRAWL).write_text(json.dumps({**manifest, "format": FORMAT + 1, "made_by": "crawlkit 99.0"}))
    with pytest.raises(StateVersion, match=r"crawlkit 99\.0"):
        dump(directory)
