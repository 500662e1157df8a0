"""Unix sockets in a directory, also where the path of that is too long for one."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

Socket = socket.socket

LONGEST_PATH = 100
"""Bytes of a path that every system takes in a socket's address: 108 with the null on Linux, 104 elsewhere."""


def listen(directory: Path, name: str) -> socket.socket:
    """Return a socket that listens as `name` in `directory`, for its owner only (0600), in the place of one that was left.

    It does not block. OSError if it cannot be made.
    """
    (directory / name).unlink(missing_ok=True)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _address(directory, name) as address:
            made.bind(address)
        (directory / name).chmod(0o600)  # before it listens: until then nobody can connect
        made.listen()
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made


def connect(directory: Path, name: str, timeout_s: float) -> socket.socket:
    """Return a connection to what listens as `name` in `directory`; reading and writing end after `timeout_s` in OSError."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.settimeout(timeout_s)
    try:
        with _address(directory, name) as address:
            made.connect(address)
    except OSError:
        made.close()
        raise
    return made


@contextmanager
def _address(directory: Path, name: str) -> Iterator[bytes]:
    """Give an address for `name` in `directory` that is short enough: by way of a file descriptor where the path is not."""
    path = os.fsencode(directory / name)
    if len(path) <= LONGEST_PATH:
        yield path
        return
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{opened}/{name}".encode()
    finally:
        os.close(opened)
