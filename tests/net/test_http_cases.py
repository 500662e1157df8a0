"""The shared cases of what servers send: every one ends in a recorded outcome, and no broken answer passes as whole."""

import asyncio
import base64
import gzip
import time
from typing import Any

import pytest

from crawlkit.model import FetchFailure, Reason, Response
from tests.net.client import fetch_script
from tests.net.raw_server import End, Script
from tests.shared_cases import bugs, suite

MIB = 1 << 20

# http-25, http-22 and http-24 ask about links and types too: here only that the body arrives as sent.
NOT_HERE = frozenset(
    {
        "http-29",  # many hosts that do not resolve: the engine's; one such host is in test_fetch
        "http-32",  # certificates that do not verify: test_fetch, with certificates
    }
)


def raw_of(case: dict[str, Any]) -> bytes:
    given: dict[str, Any] = case["input"]
    if "raw" in given:
        return str(given["raw"]).encode("latin-1")
    if "raw_b64" in given:
        return base64.b64decode(str(given["raw_b64"]))
    return f"HTTP/1.1 200 OK\r\n{given['headers']}\r\n\r\n".encode() + b"x" * int(given["body_len"])


@pytest.mark.parametrize("case", suite("http_responses"))
@pytest.mark.parametrize("end", [End.CLOSE, End.RESET])
def test_every_answer_ends_in_an_outcome_and_a_broken_one_is_never_whole(case: dict[str, Any], end: End) -> None:
    started_s = time.monotonic()
    answer = asyncio.run(fetch_script(Script((raw_of(case),), end)))
    assert time.monotonic() - started_s < 5
    assert isinstance(answer, Response | FetchFailure)
    if case["expected"]["h11"]["end"] != "complete":
        assert not (isinstance(answer, Response) and not answer.truncated)


@pytest.mark.parametrize("case", suite("http_responses"))
def test_a_whole_answer_has_the_status_and_the_body_that_were_sent(case: dict[str, Any]) -> None:
    answer = asyncio.run(fetch_script(raw_of(case)))
    expected = case["expected"]["h11"]
    if isinstance(answer, FetchFailure) or answer.truncated:
        return  # llhttp refuses some answers that h11 takes
    assert answer.status == expected.get("status", 200)
    assert len(answer.body) == expected.get("body_len", len(answer.body))
    assert answer.body.startswith(str(expected.get("body", "")).encode("latin-1"))


def plain(body: bytes, headers: list[tuple[str, str]]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return f"HTTP/1.1 200 OK\r\n{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body


def described(case: dict[str, Any]) -> Script | None:
    """The script of a case that describes what a server does, None of one that gives its bytes."""
    given = case["input"]
    headers = given.get("headers", {})
    scripts = {
        "http-01": lambda: Script((plain(gzip.compress(b" " * MIB) * 200, list(headers.items())),)),
        "http-15": lambda: Script((plain(b"ok", [("X-Big", "x" * 200_000)]),)),
        "http-18": lambda: Script((b"HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\n\r\n", b"\xff" * 65536), End.FLOOD),
        "http-20": lambda: Script((), End.STALL),
        "http-25": lambda: Script((plain(base64.b64decode(given["body_b64"]), list(headers.items())),)),
        "http-26": lambda: Script((plain(given["body"].encode(), given["headers_list"]),)),
    }
    return scripts[case["id"]]() if case["id"] in scripts else None


PAGE = b'<a href="/x">x</a>'
OUTCOMES: dict[str, Reason | tuple[bytes | None, bool]] = {
    "http-01": (b" " * MIB, True),
    "http-03": (None, True),
    "http-05": (PAGE, False),
    "http-07": (PAGE, False),
    "http-10": (PAGE + b"<p>cut", True),
    "http-12": (PAGE, False),
    "http-13": Reason.PROTOCOL,
    "http-15": Reason.PROTOCOL,
    "http-17": Reason.PROTOCOL,
    "http-18": (b"\xff" * MIB, True),
    "http-20": Reason.TIMEOUT,
    "http-21": (b"", False),
    "http-22": (b"<!doctype html>" + PAGE, False),
    "http-24": (PAGE, False),
    "http-25": (None, False),
    "http-26": (PAGE, False),
    "http-28": (PAGE, False),
}


@pytest.mark.parametrize("case", bugs("http", leave_out=NOT_HERE))
def test_what_servers_were_seen_to_do_has_the_outcome_it_should(case: dict[str, Any]) -> None:
    timeout_s = 0.2 if case["id"] == "http-20" else 20.0
    answer = asyncio.run(fetch_script(described(case) or raw_of(case), timeout_s=timeout_s))
    expected = OUTCOMES[case["id"]]
    if isinstance(expected, Reason):
        assert isinstance(answer, FetchFailure)
        assert answer.reason is expected
    else:
        body, truncated = expected
        assert isinstance(answer, Response)
        assert answer.truncated is truncated
        assert answer.body == (answer.body if body is None else body)
        assert answer.body or case["id"] == "http-21"
