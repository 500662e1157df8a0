"""`ADDR:PORT` of an option."""

import socket

import pytest

from crawlkit.errors import UsageError
from crawlkit.net.http_server import listen_at
from crawlkit.surfaces.listening import listen_for, parse_address, url_of


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("9464", ("127.0.0.1", 9464)),
        (":9464", ("127.0.0.1", 9464)),
        ("0", ("127.0.0.1", 0)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),
        ("localhost:65535", ("localhost", 65535)),
        ("[::1]:9464", ("::1", 9464)),
    ],
)
def test_an_address_is_read(text: str, address: tuple[str, int]) -> None:
    assert parse_address("--x", text) == address


def test_a_socket_listens_where_it_says() -> None:
    with listen_for("--x", "localhost:0") as listening:
        host, port = listening.getsockname()[:2]
        assert url_of(listening).endswith(f":{port}")
        with socket.create_connection((host, port)):
            pass


def test_an_ipv6_address_stands_in_brackets() -> None:
    try:
        listening = listen_at("::1", 0)
    except OSError:
        pytest.skip("this machine has no IPv6")
    with listening:
        assert url_of(listening) == f"http://[::1]:{listening.getsockname()[1]}"


@pytest.mark.parametrize("text", ["192.0.2.1:0", "[2001:db8::1]:0"])  # for documentation: nobody's
def test_an_address_of_another_machine_cannot_be_listened_at(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--x .*:0: cannot listen there: "):
        listen_for("--x", text)
