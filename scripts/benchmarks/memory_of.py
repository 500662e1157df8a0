"""What a process holds in memory."""

from pathlib import Path


def anonymous_mib() -> float:
    """Return this process' anonymous memory in MiB: what no file backs, so what the kernel cannot drop at will."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Anonymous:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("the kernel does not tell")


def written_bytes() -> int:
    """Return how many bytes this process has passed to write calls."""
    for line in Path("/proc/self/io").read_text().splitlines():
        if line.startswith("wchar:"):
            return int(line.split()[1])
    raise RuntimeError("the kernel does not tell")
