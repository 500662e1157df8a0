"""The static site's server: nginx where it is installed, else `static_server`."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.processes import ROOT, BenchError, python_environment

_NGINX_CONFIG = """\
{user}daemon off;
worker_processes 1;
pid {work}/nginx.pid;
error_log {work}/error.log;
events {{ worker_connections 1024; }}
http {{
    types {{ text/html html; text/plain txt; text/css css; }}
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 100000000;
    open_file_cache max=20000 inactive=600s;
    client_body_temp_path {work}/body;
    proxy_temp_path {work}/proxy;
    fastcgi_temp_path {work}/fastcgi;
    uwsgi_temp_path {work}/uwsgi;
    scgi_temp_path {work}/scgi;
    server {{ listen 127.0.0.1:{port} backlog=1024; root {site}; }}
}}
"""


def find_nginx() -> str | None:
    """Return the path of nginx, None if it is not installed."""
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


@contextmanager
def serving(site: Path, work: Path) -> Iterator[tuple[str, str]]:
    """Serve the files below `site` while the context is open; give the server's name and the site's URL."""
    nginx = find_nginx()
    with _nginx(nginx, site, work) if nginx else _own(site) as port:
        yield "nginx" if nginx else "static_server", f"http://127.0.0.1:{port}/"


@contextmanager
def _nginx(nginx: str, site: Path, work: Path) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    config = work / "nginx.conf"
    user = "user root;\n" if os.geteuid() == 0 else ""  # so that the worker may read a private folder
    config.write_text(_NGINX_CONFIG.format(user=user, work=work, site=site, port=port))
    process = subprocess.Popen([nginx, "-e", f"{work}/error.log", "-c", str(config)], stdin=subprocess.DEVNULL)
    try:
        _wait_for(port, process)
        yield port
    finally:
        process.terminate()
        process.wait(10)


def _wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    for _ in range(500):
        if process.poll() is not None:
            break
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.01)
        else:
            return
    raise BenchError("nginx does not answer")


@contextmanager
def _own(site: Path) -> Iterator[int]:
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.static_server", str(site)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **python_environment()},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        try:
            yield int(process.stdout.readline())
        finally:
            process.stdin.close()
