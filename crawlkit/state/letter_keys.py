"""Keys of letters between partitions: by virtual node and number, so that the letters to a node are a range in order."""

import struct

from crawlkit.state import keys

_NODE = struct.Struct(">cH")
_LETTER = struct.Struct(">cHQ")
_INBOX = struct.Struct(">cHH")


def letters_range(node: int) -> bytes:
    """Return the prefix of the letters that wait to be sent to a virtual node."""
    return _NODE.pack(keys.LETTER, node)


def letter_key(node: int, number: int) -> bytes:
    """Return the key of the `number`-th letter to a virtual node."""
    return _LETTER.pack(keys.LETTER, node, number)


def letter_of(key: bytes) -> tuple[int, int]:
    """Return virtual node and number of a letter's key."""
    _, node, number = _LETTER.unpack(key)
    return node, number


def next_letter_key(node: int) -> bytes:
    """Return the key of the number of the last letter to a virtual node."""
    return _NODE.pack(keys.NEXT_LETTER, node)


def high_water_key(node: int, sender: int) -> bytes:
    """Return the key of the number of the last letter of a partition to a virtual node that was taken in."""
    return _INBOX.pack(keys.HIGH_WATER, node, sender)


def inbox_of(key: bytes) -> tuple[int, int]:
    """Return virtual node and sender of a high-water mark's key."""
    _, node, sender = _INBOX.unpack(key)
    return node, sender
