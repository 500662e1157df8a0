"""`resume`: from starting `crawlkit resume` to its first request at a loopback socket, as a user would wait for it.

The hosts of the prepared crawl resolve to that socket. `killed` crawls ended by SIGKILL after their last checkpoint; after an
unclean end each host waits one full gap by design, so they are also measured at the default delay of a second.
"""

import os
import socket
import subprocess
import sys
import time
from dataclasses import replace

from benchmarks.crawl_state import Prepared, Shape
from benchmarks.figures import Unit, emit_medians
from benchmarks.processes import ROOT, BenchError, python_environment

UNITS = {"first_request_s": Unit("time to the first request", "s")}


def bench_resume(prepared: Prepared, sizes: list[tuple[int, int]], repeat: int) -> None:
    """Print the time for each (URLs, hosts): after a stop, after a kill, and after a kill at the default delay."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        for urls, hosts in sizes:
            stopped = Shape(urls, hosts, port=server.getsockname()[1])
            for shape, delay in ((stopped, "0s"), (replace(stopped, killed=True), "0s"), (replace(stopped, killed=True), "1s")):
                runs = [{"first_request_s": _resume(prepared, shape, delay, server)} for _ in range(repeat)]
                emit_medians(
                    "resume", UNITS, runs, urls=urls, hosts=hosts, after="kill" if shape.killed else "stop", delay=delay
                )


def _resume(prepared: Prepared, shape: Shape, delay: str, server: socket.socket) -> float:
    with prepared.copy(shape) as directory:
        argv = [sys.executable, "-m", "crawlkit", "resume", str(directory), "--quiet", "--set", f"delay={delay}"]
        began_s = time.monotonic()
        process = subprocess.Popen(argv, cwd=ROOT, env={**os.environ, **python_environment()})
        try:
            return _first_request(server) - began_s
        finally:
            process.kill()
            process.wait()
            _drain(server)


def _first_request(server: socket.socket) -> float:
    """Return when the first bytes of a request have arrived."""
    server.settimeout(300)
    try:
        client, _ = server.accept()
        with client:
            client.settimeout(10)
            client.recv(1)
            return time.monotonic()
    except TimeoutError as error:
        raise BenchError("the resumed crawl asks for nothing") from error


def _drain(server: socket.socket) -> None:
    """Forget the connections of a process that has ended."""
    server.settimeout(0.05)
    while True:
        try:
            server.accept()[0].close()
        except TimeoutError:
            return
