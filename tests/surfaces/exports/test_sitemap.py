"""The sitemap export: the pages that may be indexed, in files that keep the protocol's bounds."""

from contextlib import ExitStack
from pathlib import Path
from xml.etree import ElementTree

import pytest

from crawlkit.durable import open_replacement
from crawlkit.state.reading import open_crawl_for_reading
from crawlkit.surfaces.exports.job import ExportJob
from crawlkit.surfaces.exports.sitemap import PROTOCOL, Limits, write_sitemap
from crawlkit.surfaces.sidecar import meta_of
from tests.surfaces.conftest import Cli
from tests.surfaces.made_crawls import Make, page

NAMESPACE = "{http://www.sitemaps.org/schemas/sitemap/0.9}"


def locations(path: Path, root: str = "urlset") -> list[str]:
    tree = ElementTree.parse(path).getroot()
    assert tree.tag == NAMESPACE + root
    return [element.text or "" for element in tree.iter(f"{NAMESPACE}loc")]


def write(directory: Path, path: Path, limits: Limits) -> int:
    with open_crawl_for_reading(directory) as crawl, ExitStack() as files:
        out = files.enter_context(open_replacement(path))
        return write_sitemap(ExportJob(crawl, meta_of(crawl), path, out, files), limits)


def test_it_has_the_pages_that_may_be_indexed(cli: Cli, make: Make, tmp_path: Path) -> None:
    records = [page("http://a.test/?a=1&b='x'")]
    make([*records, page("http://a.test/hidden", directives=("noindex",))])
    assert cli("export", "x.crawl", "--to", "sitemap", "-o", "sitemap.xml").status == 0
    assert locations(tmp_path / "sitemap.xml") == ["http://a.test/?a=1&b='x'"]
    assert "&amp;b=&apos;x&apos;" in (tmp_path / "sitemap.xml").read_text()


@pytest.mark.parametrize(
    ("header", "shown"),
    [
        ("Sun, 06 Nov 1994 08:49:37 GMT", "<lastmod>1994-11-06T08:49:37Z</lastmod>"),
        ("Sun, 06 Nov 1994 08:49:37 +0200", "<lastmod>1994-11-06T06:49:37Z</lastmod>"),
        ("Sun, 06 Nov 1994 08:49:37 -0000", "<lastmod>1994-11-06T08:49:37Z</lastmod>"),
        ("Sun Nov  6 08:49:37 1994", "<lastmod>1994-11-06T08:49:37Z</lastmod>"),
        ("yesterday", ""),
        ("Sun, 99 Nov 1994 08:49:37 GMT", ""),
        ("Fri, 31 Dec 9999 23:59:59 -2300", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_a_last_modified_that_is_a_time_is_shown(make: Make, tmp_path: Path, header: str | None, shown: str) -> None:
    write(make([page("http://a.test/", last_modified=header)]), tmp_path / "s.xml", PROTOCOL)
    assert f"<url><loc>http://a.test/</loc>{shown}</url>\n" in (tmp_path / "s.xml").read_text()


def test_without_pages_it_is_empty(make: Make, tmp_path: Path) -> None:
    assert write(make([]), tmp_path / "s.xml", PROTOCOL) == 0
    assert locations(tmp_path / "s.xml") == []


def test_more_urls_than_a_file_may_have_make_an_index_and_parts(make: Make, tmp_path: Path) -> None:
    urls = [f"http://a.test/deep/{n}" for n in range(7)]
    directory = make(page(url) for url in urls)
    assert write(directory, tmp_path / "my map.xml", Limits(3, 10**6)) == 7
    expected = [f"http://a.test/my%20map-{n}.xml" for n in (1, 2, 3)]
    assert locations(tmp_path / "my map.xml", "sitemapindex") == expected
    parts = [locations(tmp_path / f"my map-{n}.xml") for n in (1, 2, 3)]
    assert parts == [urls[:3], urls[3:6], urls[6:]]
    assert len(list(tmp_path.iterdir())) == 5


def test_as_many_as_a_file_may_have_stay_in_one(make: Make, tmp_path: Path) -> None:
    directory = make(page(f"http://a.test/{n}") for n in range(3))
    assert write(directory, tmp_path / "s.xml", Limits(3, 10**6)) == 3
    assert len(locations(tmp_path / "s.xml")) == 3


def test_no_file_is_larger_than_it_may_be(make: Make, tmp_path: Path) -> None:
    urls = [f"http://a.test/{n}{'x' * n}" for n in range(60)]
    directory = make(page(url) for url in urls)
    for most in range(1000, 1030):
        write(directory, tmp_path / f"{most}.xml", Limits(10**6, most))
        parts = sorted(tmp_path.glob(f"{most}-*.xml"), key=lambda path: int(path.stem[5:]))
        assert [url for part in parts for url in locations(part)] == sorted(urls, key=str.encode)
        assert max(part.stat().st_size for part in parts) <= most
        assert min(part.stat().st_size for part in parts[:-1]) > 850


def test_the_bounds_are_those_of_the_protocol() -> None:
    assert Limits(50_000, 52_428_800) == PROTOCOL
