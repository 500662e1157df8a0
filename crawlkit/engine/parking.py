"""Hosts that wait for another one: their robots.txt was redirected there, and it may not be asked just now."""

from collections.abc import Sequence

AGAIN_S = 1.0
"""When a host asks again that found no room here."""


class Parking:
    """Room for the names of so many hosts, and who they wait for. The hosts themselves may leave memory meanwhile."""

    def __init__(self, most: int) -> None:
        self.names: set[str] = set()
        self._most = most
        self._behind: dict[str, list[str]] = {}

    def park(self, name: str, other: str) -> bool:
        """Let the host `name` wait until a request to the host `other` has ended; False if there is no room for it."""
        if len(self.names) >= self._most:
            return False
        self.names.add(name)
        self._behind.setdefault(other, []).append(name)
        return True

    def leave(self, other: str) -> Sequence[str]:
        """Return the hosts that waited for `other`, which wait no longer."""
        names = self._behind.pop(other, None)
        if names is None:  # as nearly always
            return ()
        self.names.difference_update(names)
        return names
