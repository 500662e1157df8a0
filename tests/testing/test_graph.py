"""Graphs are the same for the same seed, and their oracle follows the contract."""

import hashlib
import itertools
from urllib.parse import urljoin

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from crawlkit.model import Kind, Source
from crawlkit.testing.graph import Answer, Features, Graph, Node, make_graph
from crawlkit.testing.site import Reply

H = "http://h1.test"
LINK, SEED = Source.LINK, Source.SEED
RICH = Features(redirects=9, chain=3, canonicals=5, missing=4, errors=3, outside=6, nofollow=8, unreachable=5)


def table(**targets: str) -> Graph:
    """Return a graph from `name="a b c"`: page /name links to /a, /b, /c."""
    return Graph({f"{H}/{name}": Node(links=tuple(f"{H}/{x}" for x in to.split())) for name, to in targets.items()})


def chain(length: int) -> dict[str, Node]:
    """Return /r0 -> /r1 -> ... -> /end: `length` redirects."""
    names = [f"{H}/r{n}" for n in range(length)] + [f"{H}/end"]
    redirects = {url: Node(302, location=to) for url, to in itertools.pairwise(names)}
    return redirects | {f"{H}/end": Node()}


def served(graph: Graph, url: str) -> Reply:
    return graph.site().reply("h1.test", url.removeprefix(H))


class TestOracle:
    def test_depth_is_the_shortest_way_from_any_seed(self) -> None:
        graph = table(s="a b", a="c", b="d", c="e", d="e f", e="", f="a")
        assert graph.bfs(f"{H}/s") == {
            f"{H}/s": 0, f"{H}/a": 1, f"{H}/b": 1, f"{H}/c": 2, f"{H}/d": 2, f"{H}/e": 3, f"{H}/f": 3
        }  # fmt: skip
        assert graph.bfs(f"{H}/s", f"{H}/d")[f"{H}/e"] == 1

    def test_what_no_way_leads_to_is_not_admitted(self) -> None:
        assert set(table(s="a", a="", lone="s").bfs(f"{H}/s")) == {f"{H}/s", f"{H}/a"}

    def test_max_depth_admits_that_depth_and_no_more(self) -> None:
        assert table(s="a", a="b", b="c", c="").bfs(f"{H}/s", max_depth=2) == {f"{H}/s": 0, f"{H}/a": 1, f"{H}/b": 2}

    def test_a_page_that_is_not_there_is_admitted_and_fails(self) -> None:
        assert table(s="gone").answers(f"{H}/s")[f"{H}/gone"] == Answer(Kind.FAILURE, 404, 1, 0, LINK)

    def test_a_redirect_keeps_the_depth_and_counts_a_hop(self) -> None:
        graph = Graph({f"{H}/": Node(links=(f"{H}/r0",)), **chain(2)})
        assert graph.answers() == {
            f"{H}/": Answer(Kind.PAGE, 200, 0, 0, SEED),
            f"{H}/r0": Answer(Kind.REDIRECT, 302, 1, 0, LINK),
            f"{H}/r1": Answer(Kind.REDIRECT, 302, 1, 1, LINK),
            f"{H}/end": Answer(Kind.PAGE, 200, 1, 2, LINK),
        }

    def test_hops_start_again_at_a_link(self) -> None:
        graph = Graph({**chain(2), f"{H}/end": Node(links=(f"{H}/next",)), f"{H}/next": Node()})
        assert graph.answers(f"{H}/r0")[f"{H}/next"] == Answer(Kind.PAGE, 200, 1, 0, LINK)

    def test_sources_are_all_that_hold_within_the_depth_limit(self) -> None:
        graph = table(s="a", a="s")
        assert [answer.sources for answer in graph.answers(f"{H}/s").values()] == [SEED | LINK, LINK]
        assert [answer.sources for answer in graph.answers(f"{H}/s", max_depth=1).values()] == [SEED, LINK]

    def test_a_redirect_at_ten_hops_fails_and_admits_nothing(self) -> None:
        ten, eleven = Graph(chain(10)), Graph(chain(11))
        assert ten.answers(f"{H}/r0")[f"{H}/end"] == Answer(Kind.PAGE, 200, 0, 10, LINK)
        answers = eleven.answers(f"{H}/r0")
        assert answers[f"{H}/r10"] == Answer(Kind.FAILURE, 302, 0, 10, LINK)
        assert f"{H}/end" not in answers

    def test_a_link_into_a_long_chain_makes_it_arrive_and_depth_stays_the_least(self) -> None:
        graph = Graph({f"{H}/": Node(links=(f"{H}/a", f"{H}/r0")), f"{H}/a": Node(links=(f"{H}/r8",)), **chain(12)})
        answers = graph.answers()
        assert answers[f"{H}/r8"] == Answer(Kind.REDIRECT, 302, 1, 0, LINK)
        assert answers[f"{H}/r11"] == Answer(Kind.REDIRECT, 302, 1, 3, LINK)
        assert answers[f"{H}/end"] == Answer(Kind.PAGE, 200, 1, 4, LINK)

    def test_a_loop_of_redirects_is_only_redirects(self) -> None:
        graph = Graph({f"{H}/": Node(302, location=f"{H}/b"), f"{H}/b": Node(302, location=f"{H}/")})
        assert {answer.kind for answer in graph.answers().values()} == {Kind.REDIRECT}

    def test_a_canonical_admits_one_deeper_and_is_not_listed(self) -> None:
        graph = Graph({f"{H}/": Node(links=(f"{H}/a",), canonical=f"{H}/c"), f"{H}/c": Node()})
        assert graph.bfs()[f"{H}/c"] == 1
        assert graph.links(f"{H}/") == (f"{H}/a",)

    def test_nofollow_is_listed_and_does_not_admit_unless_another_link_does(self) -> None:
        a, b = f"{H}/a", f"{H}/b"
        graph = Graph({f"{H}/": Node(links=(b,), nofollow=(a, b))})
        assert graph.links(f"{H}/") == (b, a)
        assert set(graph.bfs()) == {f"{H}/", b}

    def test_scope_is_the_hosts_of_the_seeds_unless_given(self) -> None:
        other = "http://h2.test/"
        graph = Graph({f"{H}/": Node(links=(other,)), other: Node()}, (H, "http://h2.test"))
        assert set(graph.answers(f"{H}/")) == {f"{H}/"}
        assert graph.bfs() == {f"{H}/": 0, other: 0}
        assert set(graph.answers(f"{H}/", scope={"h1.test", "h2.test"})) == {f"{H}/", other}

    @given(st.integers(0, 10_000), st.integers(1, 30))
    def test_depths_agree_with_a_search_by_levels(self, seed: int, pages: int) -> None:
        graph = make_graph(pages, seed, links_per_page=2)
        level = {graph.seeds[0]}
        depths: dict[str, int] = {}
        for depth in range(pages):
            depths |= dict.fromkeys(level, depth)
            level = {link for url in level for link in graph.nodes[url].links} - depths.keys()
        assert graph.bfs() == depths


class TestMakeGraph:
    def test_the_same_seed_gives_the_same_bytes_on_any_machine(self) -> None:
        graph = make_graph(60, 7, hosts=2, features=RICH)
        site = graph.site(page_bytes=2000)
        digest = hashlib.sha256()
        for url in graph.nodes:
            host, _, path = url.removeprefix("http://").partition("/")
            reply = site.reply(host, f"/{path}")
            digest.update(repr((url, reply.status, reply.headers, reply.body)).encode())
        assert digest.hexdigest() == "04bf2c8e99f17b99c76d52ccc0709da23833f52f94e2a4c3545177e43cb0b90c"

    def test_another_seed_gives_another_graph(self) -> None:
        assert make_graph(60, 7) != make_graph(60, 8)

    @given(st.integers(0, 10_000), st.integers(40, 80), st.integers(1, 3), st.integers(0, 6))
    def test_all_is_reachable_but_the_unreachable(self, seed: int, pages: int, hosts: int, links: int) -> None:
        graph = make_graph(pages, seed, hosts=hosts, links_per_page=links, features=RICH)
        answers = graph.answers()
        assert len(graph.nodes) == pages + RICH.redirects + RICH.missing + RICH.errors
        assert len(answers) == len(graph.nodes) - RICH.unreachable
        assert answers.keys() <= graph.nodes.keys()

    def test_features_are_there_in_the_number_asked_for(self) -> None:
        nodes = make_graph(200, 3, features=RICH).nodes.values()
        assert sum(node.location is not None for node in nodes) == RICH.redirects
        assert sum(node.canonical is not None for node in nodes) == RICH.canonicals
        assert sum(node.status == 404 for node in nodes) == RICH.missing
        assert sum(node.status == 500 for node in nodes) == RICH.errors
        assert sum("//outside.test/" in link for node in nodes for link in node.links) == RICH.outside
        assert 0 < sum(len(node.nofollow) for node in nodes) <= RICH.nofollow

    def test_nofollow_alone_leads_to_the_unreachable_pages(self) -> None:
        graph = make_graph(50, 1, features=Features(unreachable=10, nofollow=40))
        lone = graph.nodes.keys() - graph.bfs().keys()
        assert len(lone) == 10
        assert {link for node in graph.nodes.values() for link in node.nofollow} <= lone

    def test_redirects_come_in_chains_and_only_heads_are_linked(self) -> None:
        graph = make_graph(50, 1, features=Features(redirects=7, chain=3))
        redirects = {url for url, node in graph.nodes.items() if node.location is not None}
        heads = redirects - {graph.nodes[url].location for url in redirects}
        assert len(heads) == 3
        assert {link for node in graph.nodes.values() for link in node.links} & redirects == heads
        assert sorted(graph.answers()[url].hops for url in redirects) == [0, 0, 0, 1, 1, 2, 2]

    def test_a_chain_of_eleven_does_not_arrive(self) -> None:
        graph = make_graph(2, 1, links_per_page=0, features=Features(redirects=11, chain=11))
        kinds = [answer.kind for answer in graph.answers().values()]
        assert (kinds.count(Kind.REDIRECT), kinds.count(Kind.FAILURE)) == (10, 1)
        assert f"{H}/p1" not in graph.bfs()

    @pytest.mark.parametrize("features", [Features(unreachable=5), Features(redirects=5), Features(redirects=3, canonicals=2)])
    def test_features_that_do_not_fit_are_refused(self, features: Features) -> None:
        with pytest.raises(ValueError, match="does not fit"):
            make_graph(5, 1, features=features)


class TestServed:
    def test_the_pages_say_what_the_oracle_says(self) -> None:
        graph = make_graph(60, 7, features=RICH)
        for url, node in graph.nodes.items():
            reply = served(graph, url)
            assert reply.status == node.status
            if node.location is not None:
                assert urljoin(url, dict(reply.headers)["location"]) == node.location
                continue
            tree = LexborHTMLParser(reply.body.decode())
            hrefs = [urljoin(url, str(a.attributes["href"])) for a in tree.css("a")]
            assert tuple(dict.fromkeys(hrefs)) == graph.links(url)
            canonicals = [urljoin(url, str(c.attributes["href"])) for c in tree.css("link[rel=canonical]")]
            assert canonicals == ([] if node.canonical is None else [node.canonical])

    def test_one_base_is_the_same_bytes_wherever_it_is_served(self) -> None:
        graph = make_graph(30, 1, features=RICH)
        moved = graph.at("http://127.0.0.1:8080/")
        assert moved.seeds == ("http://127.0.0.1:8080/",)
        assert moved.bfs().keys() == {url.replace(H, "http://127.0.0.1:8080") for url in graph.bfs()}
        for path in ("/", "/p7", "/r0", "/missing9"):
            assert moved.site().reply("127.0.0.1:8080", path) == graph.site().reply("any", path)

    def test_with_more_bases_each_host_answers_for_its_own(self) -> None:
        graph = make_graph(20, 1, hosts=2)
        assert graph.seeds == ("http://h1.test/", "http://h2.test/")
        site = graph.site()
        assert [site.reply(host, "/p3").status for host in ("h1.test", "h2.test", "h2.test:80")] == [404, 200, 200]
        assert b'href="http://h2.test/' in site.reply("h1.test", "/").body

    def test_bases_are_moved_one_for_one(self) -> None:
        with pytest.raises(ValueError, match="zip"):
            make_graph(5, 1, hosts=2).at("http://a.test")

    def test_pages_are_filled_up_to_their_size_and_delayed(self) -> None:
        site = make_graph(20, 1).site(page_bytes=18_000, delay_s=0.25)
        assert {len(site.reply("h", path).body) for path in ("/", "/p1", "/p19")} == {18_000}
        assert site.reply("h", "/p1").delay_s == 0.25
