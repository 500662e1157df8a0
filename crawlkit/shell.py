"""How a crawl directory is written in a command that people copy into a shell."""

import os
import re
import string
from pathlib import Path

# What means nothing to any shell.
_ORDINARY = frozenset(string.ascii_letters + string.digits + "_@%+=:,./-")

# What no line of text can hold as it is: control characters, and bytes that are no UTF-8 (surrogates, to Python).
_UNSPEAKABLE = "[\x00-\x1f\x7f\ud800-\udfff]"


def as_argument(directory: Path) -> str:
    """Return a directory as a shell takes it for one argument, and a command not for an option; one line, plain text."""
    text = str(directory)
    if text.startswith("-"):
        text = f"./{text}"
    if _ORDINARY.issuperset(text):
        return text
    if re.search(_UNSPEAKABLE, text) is None:
        import shlex  # noqa: PLC0415  (half a millisecond of a start, and few directories need it)

        return shlex.quote(text)
    spelt = "".join(chr(byte) if _is_plain(byte) else f"\\x{byte:02x}" for byte in os.fsencode(text))
    return f"$'{spelt}'"  # bash, zsh, ksh, and POSIX since 2024


def _is_plain(byte: int) -> bool:
    return 0x20 <= byte < 0x7F and byte not in b"'\\"
