"""The shared TLS set-ups, played on loopback: each ends in a value of its kind, in bounded time, and the next host is asked."""

import asyncio
import socket
import ssl
import threading
import time
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import NameOID

from crawlkit.model import FetchFailure, Reason, Response
from crawlkit.net.fetch import Fetcher
from crawlkit.net.resolver import GuardedResolver, parse_resolves
from tests.net.certificates import TLS
from tests.net.made_certificates import DAY, Identity, authority, client_context, context_of, server_context, server_identity
from tests.net.raw_server import End, Script, raw_server
from tests.net.transports import HTTP2_REFUSED, OURS_OVER_TLS, Kind
from tests.shared_cases import suite

HOST = "localhost"
OK = Script((b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",), End.KEEP)
LEFT_OUT = frozenset({"tls-12"})  # revoked: Python asks no list of what is, which the case says is no goal

ROOT = authority("a root")
INTERMEDIATE = authority("an intermediate", ROOT)
Setup = Callable[[Path], ssl.SSLContext]


def shows(make: Callable[[], Identity], *chain: Identity) -> Setup:
    return lambda folder: server_context(folder, make(), *chain)


def rsa_of(bits: int) -> rsa.RSAPrivateKey:
    if bits == 8192:  # takes half a minute to find, and seconds to verify
        key = load_pem_private_key((TLS / "rsa8192-key.pem").read_bytes(), None, unsafe_skip_rsa_key_validation=True)
        assert isinstance(key, rsa.RSAPrivateKey)
        return key
    return rsa.generate_private_key(65537, bits)


def many_names(count: int) -> tuple[str, ...]:
    return (*(f"host-{number}.example" for number in range(count - 1)), HOST)


def old_version(folder: Path) -> ssl.SSLContext:
    context = server_context(folder, server_identity(ROOT, HOST))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1
    return context


def wants_a_certificate(folder: Path) -> ssl.SSLContext:
    context = server_context(folder, server_identity(ROOT, HOST))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=ROOT.pem)
    return context


ORGANISATION = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "None of a common name")])
SETUPS: dict[str, Setup] = {
    "expired": shows(lambda: server_identity(ROOT, HOST, ends=-DAY)),
    "wrong.host": shows(lambda: server_identity(ROOT, "other.example")),
    "self-signed": shows(lambda: server_identity(None, HOST)),
    "untrusted-root": shows(lambda: server_identity(authority("another root"), HOST)),
    "incomplete-chain": shows(lambda: server_identity(INTERMEDIATE, HOST)),
    "no-common-name": shows(lambda: server_identity(ROOT, HOST, subject=ORGANISATION)),
    "no-subject": shows(lambda: server_identity(ROOT, HOST, subject=x509.Name([]))),
    "reversed-chain": shows(lambda: server_identity(INTERMEDIATE, HOST), ROOT, INTERMEDIATE),
    "1000-sans": shows(lambda: server_identity(ROOT, *many_names(1000))),
    "10000-sans": shows(lambda: server_identity(ROOT, *many_names(10_000))),
    "rsa1024": shows(lambda: server_identity(ROOT, HOST, key=rsa_of(1024))),
    "sha1-2017": lambda _: context_of(TLS / "sha1.pem", TLS / "key.pem"),
    "ecc256": shows(lambda: server_identity(ROOT, HOST)),
    "rsa8192": shows(lambda: server_identity(ROOT, HOST, key=rsa_of(8192))),
}
BY_ALERT: dict[str, Setup] = {"tls1.0 only": old_version, "client cert required": wants_a_certificate}
WITHOUT_TLS = {
    "http-only port": Script(OK.parts, End.CLOSE, greets=True),
    "tls-only on http port": Script((b"\x15\x03\x01\x00\x02\x02\x46",)),  # an alert
    "handshake stall": Script((), End.STALL, greets=True),
}


@contextmanager
def openssl_server(context: ssl.SSLContext) -> Iterator[int]:
    """A server that shakes hands in a thread: asyncio's gives up a failed handshake without OpenSSL's alert."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError):
                connection, _ = listening.accept()
                connection.settimeout(5)
                with connection.dup() as under:
                    with suppress(OSError), context.wrap_socket(connection, server_side=True) as tls:
                        tls.recv(1)
                    under.shutdown(socket.SHUT_WR)
                    while under.recv(65536):
                        pass

        thread = threading.Thread(target=serve)
        thread.start()
        yield int(listening.getsockname()[1])
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        thread.join()


@asynccontextmanager
async def playing(scenario: str, folder: Path) -> AsyncIterator[int]:
    """The port of the scenario's server."""
    if scenario in BY_ALERT:
        with openssl_server(BY_ALERT[scenario](folder)) as port:
            yield port
    elif scenario in SETUPS:
        async with raw_server([OK], tls=SETUPS[scenario](folder)) as server:
            yield server.port
    else:
        async with raw_server([WITHOUT_TLS[scenario]]) as server:
            yield server.port


async def fetch(kind: Kind, scenario: str, folder: Path) -> tuple[Response | FetchFailure, Response | FetchFailure, float]:
    """What comes of the scenario's host, and then of a good one; and the seconds it took."""
    good = server_context(folder, server_identity(INTERMEDIATE, "good.example"), INTERMEDIATE)
    async with playing(scenario, folder) as port, raw_server([OK], tls=good) as other:
        rules = parse_resolves([f"{HOST}=127.0.0.1:{port}", f"good.example=127.0.0.1:{other.port}"])
        transport = kind.opened(GuardedResolver(rules), client_context(ROOT.pem, (TLS / "sha1-root.pem").read_text()))
        timeout_s = 0.5 if scenario == "handshake stall" else 5
        fetcher = Fetcher(transport, timeout_s=timeout_s, max_body_bytes=1 << 20, user_agent="testkit/1.0")
        scheme = "http" if scenario == "tls-only on http port" else "https"
        started_s = time.monotonic()
        try:
            answers = await fetcher.fetch(f"{scheme}://{HOST}/"), await fetcher.fetch("https://good.example/")
            return *answers, time.monotonic() - started_s
        finally:
            await transport.aclose()
            await asyncio.sleep(0)


def may_be(answer: Response | FetchFailure, outcome: str) -> bool:
    """Whether the answer is one of those that the words of a case allow."""
    if isinstance(answer, Response):
        return answer.status in ({200} if "ok" in outcome.split() else set()) | ({400} if "400" in outcome else set())
    words = {"tls error": Reason.TLS, "protocol error": Reason.PROTOCOL, "connect timeout": Reason.TIMEOUT}
    return answer.reason in {reason for text, reason in words.items() if text in outcome}


@pytest.mark.parametrize("kind", [OURS_OVER_TLS, HTTP2_REFUSED], ids=lambda kind: kind.name)
@pytest.mark.parametrize("case", suite("tls_scenarios", leave_out=LEFT_OUT))
def test_a_set_up_has_the_outcome_it_should_and_the_next_host_is_asked(
    kind: Kind, case: dict[str, Any], tmp_path: Path
) -> None:
    answer, good, took_s = asyncio.run(fetch(kind, case["input"]["scenario"], tmp_path))
    assert took_s < 5
    assert may_be(answer, case["expected"]["outcome"]), answer
    assert isinstance(good, Response)
    assert (good.status, good.body) == (200, b"ok")
