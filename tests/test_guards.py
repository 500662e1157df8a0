"""The guards of `conftest.py` are seen to bite: a guard that never fails a test guards nothing."""

import asyncio
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest
import uvloop

from tests.conftest import NetworkGuard

OUTSIDE = "192.0.2.1"  # TEST-NET-1 (RFC 5737): nobody's address


def _connect(host: str) -> None:
    with socket.socket() as sock:
        sock.settimeout(0.2)
        sock.connect((host, 9))


def _connect_nonblocking(host: str) -> None:
    with socket.socket() as sock:
        sock.setblocking(False)
        sock.connect_ex((host, 9))


def _send_datagram(host: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"", (host, 9))


def _in_uvloop(call: Callable[[asyncio.AbstractEventLoop], object]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        call(runner.get_loop())


REFUSED: dict[str, Callable[[], object]] = {
    "connect": lambda: _connect(OUTSIDE),
    "connect to any address": lambda: _connect("0.0.0.0"),
    "connect without waiting": lambda: _connect_nonblocking(OUTSIDE),
    "datagram": lambda: _send_datagram(OUTSIDE),
    "getaddrinfo": lambda: socket.getaddrinfo("example.com", 80),
    "getaddrinfo of a reserved name": lambda: socket.getaddrinfo(b"example.test", 80),
    "gethostbyname": lambda: socket.gethostbyname("example.com"),
    "gethostbyaddr": lambda: socket.gethostbyaddr(OUTSIDE),
    "uvloop getaddrinfo": lambda: _in_uvloop(lambda loop: loop.getaddrinfo("example.com", 80)),
    "uvloop create_connection": lambda: _in_uvloop(lambda loop: loop.create_connection(asyncio.Protocol, host=OUTSIDE, port=9)),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED.keys())
def test_the_guard_refuses_what_leaves_the_machine(call: Callable[[], object], network_guard: NetworkGuard) -> None:
    with pytest.raises(pytest.fail.Exception, match="network guard"):
        call()
    assert len(network_guard.violations) == 1
    network_guard.violations.clear()


def test_the_guard_remembers_what_a_thread_swallowed(network_guard: NetworkGuard) -> None:
    def swallow() -> None:
        try:
            _connect(OUTSIDE)
        except BaseException:  # noqa: BLE001, RUF100
            return

    thread = threading.Thread(target=swallow)
    thread.start()
    thread.join()
    assert len(network_guard.violations) == 1
    network_guard.violations.clear()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "127.1", "localhost"])
def test_the_guard_lets_loopback_pass(host: str) -> None:
    with socket.create_server((host, 0)) as server, socket.socket() as client:
        client.connect((host, server.getsockname()[1]))
        assert socket.getaddrinfo(host, 80)


def test_the_guard_lets_unix_sockets_pass(tmp_path: Path, network_guard: NetworkGuard) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(path)
        server.listen()
        client.connect(path)
        assert client.getpeername() == path
    assert network_guard.violations == []


def test_the_guard_lets_numeric_addresses_be_parsed() -> None:
    assert socket.getaddrinfo(OUTSIDE, 80)
    assert socket.getaddrinfo(None, 80)


def test_hypothesis_judges_no_speed_and_prints_what_repeats_a_failure() -> None:
    settings = hypothesis.settings()
    assert settings.deadline is None
    assert settings.print_blob
    assert not settings.derandomize


def test_event_loops_are_in_debug_mode() -> None:
    with asyncio.Runner() as runner:
        assert runner.get_loop().get_debug()


def _run_probe(directory: Path, body: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run one test of its own under this folder's conftest; `environment` is added to ours."""
    (directory / "conftest.py").write_text((Path(__file__).parent / "conftest.py").read_text())
    (directory / "test_probe.py").write_text(body)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(directory)],
        cwd=directory, env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def test_a_swallowed_refusal_fails_the_test(tmp_path: Path) -> None:
    body = (
        "import socket\n"
        "def test_it():\n"
        "    try:\n"
        "        socket.getaddrinfo('example.com', 80)\n"
        "    except BaseException:\n"
        "        pass\n"
    )
    run = _run_probe(tmp_path, body)
    assert run.returncode == 1, run.stdout
    assert "network guard: a test tried to resolve 'example.com'" in run.stdout


def test_the_seed_is_printed_and_given_and_no_setting_leaks_in(tmp_path: Path) -> None:
    body = (
        "import os\n"
        "from hypothesis import core\n"
        "def test_it(seed):\n"
        "    assert seed == 4711\n"
        "    assert core.global_force_seed == 4711\n"
        "    assert not [name for name in os.environ if name.startswith('CRAWLKIT_')]\n"
    )
    run = _run_probe(tmp_path, body, CRAWLKIT_SEED="4711", CRAWLKIT_WORKERS="3")
    assert run.returncode == 0, run.stdout
    assert run.stdout.startswith("seed: 4711 (CRAWLKIT_SEED=4711 repeats it)")
