"""What holds for every test: no network beyond loopback, a printed seed, Hypothesis profiles, asyncio in debug mode.

The guard lives in this process and its forks; a child started afresh (the CLI, killed and resumed) is outside of it. A
name given straight to `socket.connect` is refused only once the C library has resolved it; asyncio resolves first.
"""

import functools
import ipaddress
import os
import secrets
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
import pytest
import uvloop

SEED = pytest.StashKey[int]()
IN_CI = bool(os.environ.get("CI"))


class NetworkGuard:
    """Fails whatever leaves the machine or asks a name server, and remembers it.

    The failure is no `Exception`, so that code which turns errors into values cannot hide it; where it is swallowed all
    the same, the test fails at its end by what is remembered.
    """

    def __init__(self) -> None:
        self.violations: list[str] = []
        self._checks: dict[str, Callable[..., None]] = {
            "socket.connect": self._check_peer,
            "socket.sendto": self._check_peer,
            "socket.sendmsg": self._check_peer,
            "socket.getaddrinfo": self.check_lookup,
            "socket.gethostbyname": self.check_lookup,
            "socket.gethostbyaddr": self._check_reverse,
            "socket.getnameinfo": lambda address: self._check_reverse(address[0]),
        }

    def audit(self, event: str, args: tuple[Any, ...]) -> None:
        """Be a hook of `sys.addaudithook`."""
        check = self._checks.get(event)
        if check is not None:
            check(*args)

    def _check_peer(self, sock: socket.socket, address: Any) -> None:
        if sock.family in (socket.AF_INET, socket.AF_INET6) and address is not None:
            self.check_host(address[0])

    def check_host(self, host: str | bytes, *_: object) -> None:
        """Fail unless a connection to `host` stays on loopback."""
        if not _is_loopback(_text(host)):
            self._refuse(f"connect to {host!r}")

    def check_lookup(self, host: str | bytes | None, *_: object) -> None:
        """Fail if looking `host` up may ask a name server: addresses and localhost do not."""
        if host and _parse(_text(host)) is None and _text(host) != "localhost":
            self._refuse(f"resolve {host!r}")

    def _check_reverse(self, host: str) -> None:
        if not _is_loopback(_text(host)):
            self._refuse(f"look up the name of {host!r}")

    def _refuse(self, what: str) -> None:
        violation = f"network guard: a test tried to {what}; tests stay on 127.0.0.0/8, ::1, localhost and unix sockets"
        self.violations.append(violation)
        pytest.fail(violation)


def _text(host: str | bytes) -> str:
    return (host if isinstance(host, str) else bytes(host).decode("latin-1")).lower()


def _parse(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host))  # the short forms: 127.1
        except OSError:
            return None
    return getattr(address, "ipv4_mapped", None) or address


def _is_loopback(host: str) -> bool:
    address = _parse(host)
    return host == "localhost" if address is None else address.is_loopback


def _guard_uvloop(guard: NetworkGuard) -> None:
    """Check what uvloop resolves and connects inside libuv, which raises no audit event."""

    def checked(method: Callable[..., Any], check: Callable[..., None], position: int) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            host = args[position] if len(args) > position else kwargs.get("host")
            if host is not None:
                check(host)
            return method(*args, **kwargs)

        return call

    for name, check, position in (
        ("getaddrinfo", guard.check_lookup, 1),
        ("create_connection", guard.check_host, 2),
    ):
        setattr(uvloop.Loop, name, checked(getattr(uvloop.Loop, name), check, position))


def _session_seed() -> int:
    text = os.environ.get("CRAWLKIT_SEED") or str(secrets.randbits(32))
    if not text.isdecimal():
        raise pytest.UsageError(f"CRAWLKIT_SEED={text!r} is not a whole number")
    return int(text)


def _register_profiles() -> None:
    """No profile judges speed (the machine may be busy) and each failure prints the line that repeats it."""
    common = hypothesis.settings(
        deadline=None,
        print_blob=True,
        derandomize=False,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    hypothesis.settings.register_profile("dev", common)
    hypothesis.settings.register_profile("ci", common, database=None)
    hypothesis.settings.load_profile("ci" if IN_CI else "dev")


GUARD = NetworkGuard()
sys.addaudithook(GUARD.audit)
_guard_uvloop(GUARD)
_register_profiles()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand the seed to a process that shares the tests."""
    node.workerinput["crawlkit_seed"] = node.config.stash[SEED]


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Set the seed (Hypothesis takes it too, in CI or when it was asked for) and clear the caller's settings."""
    # A process that was started to share the tests (pytest-xdist) has the seed of the one that started it.
    given = getattr(config, "workerinput", {}).get("crawlkit_seed")
    config.stash[SEED] = _session_seed() if given is None else given
    # A forced seed switches off Hypothesis' store of failing examples, which is worth more while developing.
    if (IN_CI or "CRAWLKIT_SEED" in os.environ) and config.getoption("hypothesis_seed") is None:
        config.option.hypothesis_seed = str(config.stash[SEED])
    for name in [name for name in os.environ if name.startswith("CRAWLKIT_")]:
        del os.environ[name]  # they are settings of crawlkit: no test may depend on them
    os.environ["PYTHONASYNCIODEBUG"] = "1"


def pytest_sessionstart(session: pytest.Session) -> None:
    """Print the seed first of all, so that it is known even if the run is killed."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        seed = session.config.stash[SEED]
        reporter.write_line(f"seed: {seed} (CRAWLKIT_SEED={seed} repeats it)")


@pytest.fixture(scope="session")
def seed(pytestconfig: pytest.Config) -> int:
    """The session's seed: printed at the start, set by CRAWLKIT_SEED, else random."""
    return pytestconfig.stash[SEED]


@pytest.fixture(autouse=True)
def network_guard() -> Iterator[NetworkGuard]:
    """The guard; fails a test that swallowed a refusal."""
    yield GUARD
    violations, GUARD.violations = GUARD.violations, []
    if violations:
        pytest.fail("\n".join(violations))
