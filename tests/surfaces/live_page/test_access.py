"""Who may ask for what."""

from http import HTTPStatus

import pytest

from crawlkit.net.http_server import Asked
from crawlkit.surfaces.live_page.access import Access

ACCESS = Access("s3cret", "box.example", 8080)
FORBIDDEN, NOT_ALLOWED = HTTPStatus.FORBIDDEN, HTTPStatus.METHOD_NOT_ALLOWED
OWN = "127.0.0.1:8080"


def refusal(
    method: str = "GET", path: str = "/", token: str | None = "s3cret", host: str | None = OWN, origin: str | None = None
) -> object:
    query = {} if token is None else {"token": token}
    headers = {name: value for name, value in (("host", host), ("origin", origin)) if value is not None}
    return ACCESS.refusal(Asked(method, path, query, headers))


@pytest.mark.parametrize("token", [None, "", "S3cret", "s3cre", "s3cretx", "\u00e9", "\U0001f600" * 100])
@pytest.mark.parametrize("path", ["/", "/events", "/api/explain", "/api/pause", "/elsewhere"])
def test_without_the_token_nothing_is_answered(token: str | None, path: str) -> None:
    assert refusal(path=path, token=token) is FORBIDDEN


@pytest.mark.parametrize("host", [OWN, "localhost:8080", "[::1]:8080", "192.0.2.7:8080", "box.example:8080"])
def test_the_server_is_known_by_addresses_and_by_the_name_it_was_given(host: str) -> None:
    assert refusal(host=host) is None


@pytest.mark.parametrize(
    "host",
    [None, "", "evil.test:8080", "evil.test", "127.0.0.1", "127.0.0.1:80", "localhost:8081", "127.0.0.1.evil.test:8080",
     "127.0.0.1:8080@evil.test", "evil.test:8080:8080", "[::1].evil.test:8080", ":8080", "localhost.:8080"],
)  # fmt: skip
def test_a_name_that_somebody_points_here_is_not_the_server_s(host: str | None) -> None:
    assert refusal(host=host) is FORBIDDEN


@pytest.mark.parametrize("path", ["/api/pause", "/api/continue"])
def test_an_order_is_posted_from_the_page_itself(path: str) -> None:
    assert refusal("POST", path, origin=f"http://{OWN}") is None
    assert refusal("POST", path) is None  # no browser: those always say where from
    for origin in ("http://evil.test", "null", "", "https://127.0.0.1:8080", "http://127.0.0.1:9", "http://localhost:8080"):
        assert refusal("POST", path, origin=origin) is FORBIDDEN
    for method in ("GET", "PUT", "HEAD", "OPTIONS", "DELETE"):
        assert refusal(method, path) is NOT_ALLOWED


@pytest.mark.parametrize("method", ["POST", "PUT", "HEAD", "OPTIONS", "DELETE", "PATCH"])
def test_all_else_is_got(method: str) -> None:
    assert refusal(method) is NOT_ALLOWED
