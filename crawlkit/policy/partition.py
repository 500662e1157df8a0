"""Which partition a URL belongs to: by its registrable domain to a virtual node, and by a table from there to a partition.

By domain, so that all hosts of one keep to one owner: a host's manners are then a matter of one partition, and a farm of
subdomains is not everybody's. The virtual nodes are what moves when the number of partitions changes.
"""

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import msgspec

from crawlkit.policy.scope import registrable_domain

VIRTUAL_NODES = 1_024


def node_of(host: str) -> int:
    """Return the virtual node of a host name (an address is its own domain)."""
    return _node_of_domain(registrable_domain(host))


@lru_cache(65_536)
def _node_of_domain(domain: str) -> int:
    digest = blake2b(domain.encode(), digest_size=8, person=b"crawlkit.node").digest()
    return int.from_bytes(digest, "big") % VIRTUAL_NODES


class Owners(msgspec.Struct, frozen=True):
    """Which partition owns each virtual node: `table[node]` is its number."""

    table: tuple[int, ...]

    @classmethod
    def even(cls, partitions: int) -> "Owners":
        """Return the table of a new crawl: nodes dealt out one after the other."""
        return cls(tuple(node % partitions for node in range(VIRTUAL_NODES)))

    @property
    def partitions(self) -> tuple[int, ...]:
        """The numbers of the partitions that own anything."""
        return tuple(sorted(set(self.table)))

    def of(self, host: str) -> int:
        """Return the partition that owns a host name."""
        return self.table[node_of(host)]

    def nodes(self, partition: int) -> list[int]:
        """Return the virtual nodes of a partition."""
        return [node for node, owner in enumerate(self.table) if owner == partition]

    def spread(self, partitions: Sequence[int]) -> "Owners":
        """Return the table over other partitions that moves the fewest nodes: each has its share, one more at most."""
        share, more = divmod(VIRTUAL_NODES, len(partitions))
        room = {partition: share + (place < more) for place, partition in enumerate(partitions)}
        table: list[int | None] = []
        for owner in self.table:
            stays = room.get(owner, 0) > 0
            table.append(owner if stays else None)
            if stays:
                room[owner] -= 1
        free = [partition for partition, left in room.items() for _ in range(left)]
        return Owners(tuple(free.pop() if owner is None else owner for owner in table))
