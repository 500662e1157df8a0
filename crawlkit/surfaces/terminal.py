"""Text of a site on a terminal."""

import re

# Control characters, some of which a terminal obeys; line ends of Unicode; what turns the direction of text around.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Return a text with a replacement character for each one that may do more than be seen."""
    return _UNSAFE.sub("\ufffd", text)
