"""A site answers by its table, and its helpers write what they say."""

import gzip

from selectolax.lexbor import LexborHTMLParser

from crawlkit.testing.site import (
    BOMB_BYTES,
    Fault,
    Reply,
    Site,
    bomb,
    in_turn,
    page,
    redirect,
    robots,
    status,
)


def test_what_is_not_in_the_table_is_404() -> None:
    assert Site({"/a": page("A")}).reply("h1.test", "/b").status == 404


def test_the_query_is_part_of_the_key() -> None:
    site = Site({"/a?x=1": status(200), "/a": status(201)})
    assert site.reply("h", "/a?x=1").status == 200
    assert site.reply("h", "/a").status == 201
    assert site.reply("h", "/a?x=2").status == 404


def test_the_closest_route_answers_port_before_host_before_any() -> None:
    site = Site({"*/a": status(200), "h1.test/a": status(201), "h1.test:8443/a": status(202)})
    assert site.reply("h1.test:8443", "/a").status == 202
    assert site.reply("h1.test:80", "/a").status == 201
    assert site.reply("h1.test", "/a").status == 201
    assert site.reply("h2.test:80", "/a").status == 200
    assert site.reply("[::1]", "/a").status == 200


def test_a_function_can_be_the_whole_network() -> None:
    site = Site(otherwise=lambda host, target: page(f"{host}{target}"))
    assert b"<title>h1.test/x</title>" in site.reply("h1.test", "/x").body


def test_routes_are_added_to_a_site_without_changing_it() -> None:
    before = Site({"/a": status(200), "/b": status(200)})
    after = before | {"/b": status(503), "/robots.txt": robots("User-agent: *\n")}
    assert [after.reply("h", target).status for target in ("/a", "/b", "/robots.txt")] == [200, 503, 200]
    assert [before.reply("h", target).status for target in ("/b", "/robots.txt")] == [200, 404]


def test_replies_in_turn_end_with_the_last_for_ever() -> None:
    site = Site({"/": in_turn(status(503), status(503), status(200))})
    assert [site.reply("h", "/").status for _ in range(5)] == [503, 503, 200, 200, 200]


def test_a_page_holds_its_links_in_order_and_escaped() -> None:
    reply = page("a < b", ["/x?a=1&b=2", '/"q"'], nofollow=["/n"], canonical='/c?d&e"f', text="1 < 2")
    tree = LexborHTMLParser(reply.body.decode())
    assert [node.attributes["href"] for node in tree.css("a")] == ["/x?a=1&b=2", '/"q"', "/n"]
    assert [node.attributes["href"] for node in tree.css("a[rel=nofollow]")] == ["/n"]
    assert [node.attributes["href"] for node in tree.css("link[rel=canonical]")] == ['/c?d&e"f']
    assert [node.text() for node in tree.css("title, p")] == ["a < b", "1 < 2"]
    assert reply.headers == (("content-type", "text/html; charset=utf-8"),)


def test_a_redirect_sends_its_location_as_it_is() -> None:
    assert redirect("//h2.test/ä b", 308) == Reply(308, (("location", "//h2.test/ä b"),))


def test_a_reply_is_framed_by_its_length_unless_it_frames_itself() -> None:
    assert Reply(body=b"abc").on_wire() == ((("content-length", "3"),), b"abc")
    lying = (("Content-Length", "10"),)
    assert Reply(headers=lying, body=b"abc").on_wire() == (lying, b"abc")
    chunked = (("transfer-encoding", "chunked"),)
    assert Reply(headers=chunked, body=b"0\r\n\r\n").on_wire() == (chunked, b"0\r\n\r\n")
    assert Reply(fault=Fault.ENDLESS, body=b"abc").on_wire() == (chunked, b"abc")


def test_answers_that_have_no_body_announce_none() -> None:
    assert status(204).on_wire() == ((), b"")
    assert status(304).on_wire() == ((), b"")
    assert status(404).on_wire() == ((("content-length", "0"),), b"")


def test_a_bomb_is_small_and_decodes_to_64_mib() -> None:
    headers, body = Reply(fault=Fault.BOMB).on_wire()
    assert dict(headers) == {"content-encoding": "gzip", "content-length": str(len(body))}
    assert len(body) < 100_000
    assert len(gzip.decompress(bomb())) == BOMB_BYTES == 64 * 1024 * 1024
