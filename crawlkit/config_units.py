"""Durations and sizes as people write them: `500ms`, `10s`, `2h`; `512KiB`, `10MiB`."""

import re
from decimal import Decimal

KIB = 1024

_UNITS_S = {
    "ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60), "min": Decimal(60), "h": Decimal(3600),
    "d": Decimal(86400),
}  # fmt: skip
_UNITS_BYTES = {
    "": 1, "b": 1, "k": KIB, "kib": KIB, "kb": 1000, "m": KIB**2, "mib": KIB**2, "mb": 1000**2,
    "g": KIB**3, "gib": KIB**3, "gb": 1000**3,
}  # fmt: skip


def parse_duration(text: str) -> float:
    """Return seconds for `500ms`, `10s`, `2h`, `1d` or a plain number of seconds; ValueError otherwise."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text.lower(), re.ASCII)
    if match is None or (match[2] or "s") not in _UNITS_S:
        raise ValueError("expected a duration like 500ms, 10s, 5m or 2h")
    return float(Decimal(match[1]) * _UNITS_S[match[2] or "s"])


def parse_size(text: str) -> int:
    """Return bytes for `10MiB`, `512k` or a plain number, parts of a byte cut off; ValueError otherwise."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text.lower(), re.ASCII)
    if match is None or match[2] not in _UNITS_BYTES:
        raise ValueError("expected a size like 512KiB, 10MiB or 1GiB")
    return int(Decimal(match[1]) * _UNITS_BYTES[match[2]])


def format_duration(value_s: float) -> str:
    """Return text that `parse_duration` reads back as the same seconds, in the largest unit that gives a whole number."""
    for unit in ("d", "h", "m", "s", "ms"):
        count = round(Decimal(repr(value_s)) / _UNITS_S[unit])
        if count and parse_duration(f"{count}{unit}") == value_s:
            return f"{count}{unit}"
    return f"{Decimal(repr(value_s)):f}s" if value_s else "0s"


def format_size(value_bytes: float) -> str:
    """Return text that `parse_size` reads back as the same bytes, in the largest unit that gives a whole number."""
    count = int(value_bytes)
    for unit, factor in (("GiB", KIB**3), ("MiB", KIB**2), ("KiB", KIB)):
        if count and count % factor == 0:
            return f"{count // factor}{unit}"
    return f"{count}B"
