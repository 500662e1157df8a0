"""Records of one exchange, against the standard's rules and the shared cases for writers."""

import hashlib
import re
from collections.abc import Callable
from typing import Any

import pytest

from crawlkit.archive import records
from crawlkit.archive.records import Original, WarcRecord
from crawlkit.exchange import Cut, Role, Settled
from tests.archive.exchanges import AT_S, HEAD, settled
from tests.shared_cases import suite

ID, INFO, OTHER = bytes(range(16)), bytes(16), bytes([255]) * 16
URN = re.compile(r"<urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}>")


def fields(record: WarcRecord) -> dict[str, str]:
    first, *lines = record.head.decode().removesuffix("\r\n\r\n").split("\r\n")
    assert first == "WARC/1.1"
    pairs = [line.split(": ", 1) for line in lines]
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def block(record: WarcRecord) -> bytes:
    return b"".join(record.block)


def response(each: Settled) -> WarcRecord:
    return records.response(each, ID, INFO, records.payload_digest(each))


def revisit(each: Settled) -> WarcRecord:
    return records.revisit(each, ID, INFO, records.payload_digest(each), Original(OTHER, "http://b.test/", AT_S - 60))


def all_kinds(each: Settled) -> list[WarcRecord]:
    info = records.warcinfo(INFO, "x.warc.gz", AT_S, {"software": "testkit"})
    return [
        info, response(each), revisit(each), records.request(each, ID, INFO, OTHER), records.metadata(each, ID, INFO, OTHER)
    ]  # fmt: skip


CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\nA: Transfer-Encoding: x\r\nContent-Length: 9\r\nZ: z\r\n\r\n"
FULL = settled(
    "http://a.test/x", b"body", links=("http://a.test/1", "http://b.test/2"), depth=2, hops=1, via="http://a.test/",
    reason="http.server_error", attempt=3, address="::1", protocol="h2",
)  # fmt: skip


@pytest.mark.parametrize(
    ("head", "archived"),
    [
        (HEAD, HEAD),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"),
        (
            CHUNKED,
            b"HTTP/1.1 200 OK\r\nX-Crawl-transfer-encoding: Chunked\r\nA: Transfer-Encoding: x\r\nX-Crawl-Content-Length: 9\r\n"
            b"Z: z\r\nContent-Length: 4\r\n\r\n",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"),
    ],
)
def test_a_head_is_archived_as_received_but_for_a_transfer_coding(head: bytes, archived: bytes) -> None:
    assert records.archived_head(head, 4) == archived


def test_the_date_is_utc_with_milliseconds() -> None:
    assert records.warc_date(0.0) == "1970-01-01T00:00:00.000Z"
    assert records.warc_date(1_796_000_000.1239) == "2026-11-30T00:53:20.123Z"
    assert records.warc_date(1_796_000_001.9999) == "2026-11-30T00:53:21.999Z"


def test_request_and_metadata_stand_beside_the_response() -> None:
    of_response = fields(response(FULL))
    for record in (records.request(FULL, INFO, INFO, ID), records.metadata(FULL, INFO, INFO, ID)):
        told = fields(record)
        assert told["WARC-Concurrent-To"] == of_response["WARC-Record-ID"]
        assert told["WARC-Date"] == of_response["WARC-Date"]
        assert told["WARC-Target-URI"] == of_response["WARC-Target-URI"] == "http://a.test/x"
    assert (of_response["WARC-IP-Address"], of_response["WARC-Protocol"]) == ("::1", "h2")


def test_metadata_tell_what_the_crawl_made_of_it() -> None:
    assert block(records.metadata(FULL, ID, INFO, OTHER)) == (
        b"via: http://a.test/\r\ndepth: 2\r\nredirects: 1\r\npurpose: record\r\nattempt: 3\r\nfetchTimeMs: 50\r\n"
        b"reason: http.server_error\r\noutlink: http://a.test/1\r\noutlink: http://b.test/2\r\n"
    )
    assert block(records.metadata(settled(role=Role.ROBOTS), ID, INFO, OTHER)) == (
        b"purpose: robots\r\nattempt: 1\r\nfetchTimeMs: 50\r\n"
    )


def test_a_whole_answer_with_a_body_is_an_original() -> None:
    assert records.is_original(settled())
    assert not records.is_original(settled(body=b""))
    assert not records.is_original(settled(cut=Cut.LENGTH))


EACH = settled("http://a.test/a%20b", b"body", CHUNKED)
DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z")


def _refers(record: WarcRecord) -> bool:
    told = fields(record)
    return told["WARC-Refers-To-Target-URI"] == "http://b.test/" and told["WARC-Refers-To-Date"].endswith("52:20.123Z")


def _is_http(record: WarcRecord) -> bool:
    return fields(record)["Content-Type"].replace(";", "; ") == "application/http; msgtype=response"


# The rules of the shared cases for writers; w00, w10 and w11 are those of whole files, tested with the writer and the crawl.
RULES: dict[str, Callable[[], bool]] = {
    "warc-w01": lambda: all(
        int(fields(r)["Content-Length"]) == len(block(r)) and r.pieces() == (r.head, *r.block, b"\r\n\r\n")
        for r in all_kinds(EACH)
    ),
    "warc-w02": lambda: all(URN.fullmatch(fields(r)["WARC-Record-ID"]) for r in all_kinds(EACH)),
    "warc-w03": lambda: all(DATE.fullmatch(fields(r)["WARC-Date"]) for r in all_kinds(EACH)),
    "warc-w04": lambda: all(fields(r).get("WARC-Target-URI", EACH.url) == EACH.url for r in all_kinds(EACH)),
    "warc-w05": lambda: _is_http(response(settled())) and block(response(settled())) == HEAD + b"hello",
    "warc-w06": lambda: (
        b"\r\nContent-Length: 4\r\n\r\nbody" in block(response(EACH)) and b"\r\ntransfer" not in block(response(EACH))
    ),
    "warc-w07": lambda: all(fields(response(settled(cut=cut)))["WARC-Truncated"] == cut for cut in Cut),
    "warc-w08": lambda: _digests_hold(response(EACH)),
    "warc-w09": lambda: not any(re.search(r"[\r\n\0]", value) for r in all_kinds(EACH) for value in fields(r).values()),
    "warc-w12": lambda: _refers(revisit(EACH)),
}


def _digests_hold(record: WarcRecord) -> bool:
    told = fields(record)
    payload = hashlib.sha256(record.block[1]).hexdigest()
    whole = hashlib.sha256(block(record)).hexdigest()
    return (told["WARC-Payload-Digest"], told["WARC-Block-Digest"]) == (f"sha256:{payload}", f"sha256:{whole}")


ELSEWHERE = frozenset([*[f"warc-{number:02}" for number in range(11)], "warc-w00", "warc-w10", "warc-w11"])


@pytest.mark.parametrize("case", suite("warc", leave_out=ELSEWHERE))
def test_records_keep_the_rules_for_writers(case: Any) -> None:
    assert RULES[case["id"]]() is case["expected"]["holds"]
