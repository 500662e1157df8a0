"""Names that lead to one address each, for as long as it is theirs: what gaps per address rest on."""

from collections import OrderedDict
from typing import Any, Final

from crawlkit.net.resolver import GuardedResolver

_CHOSEN_HOSTS: Final = 16_384


class SteadyResolver(GuardedResolver):
    """A `GuardedResolver` that gives of a host's addresses one, the same until it is no longer among them or has failed.

    A connection that is kept open may lead to the one before for some seconds after a name has moved.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._chosen: OrderedDict[str, str] = OrderedDict()
        self._failed: set[str] = set()

    async def addresses(self, host: str, port: int) -> list[tuple[str, int]]:
        """Return the one address and port to connect to; raises as `GuardedResolver` does."""
        found = await super().addresses(host, port)
        known = [address for address, _ in found]
        before = self._chosen.get(host)
        at = known.index(before) if before in known else 0
        if host in self._failed:
            self._failed.discard(host)
            at = (at + 1) % len(found)
        self._chosen[host] = known[at]
        self._chosen.move_to_end(host)
        if len(self._chosen) > _CHOSEN_HOSTS:
            self._failed.discard(self._chosen.popitem(last=False)[0])
        return [found[at]]

    def note_failure(self, host: str) -> None:
        """Take in that the address of a host could not be connected to: another one is next, where there are more."""
        if host in self._chosen:
            self._failed.add(host)
