"""One partition of the scaling bench: as `crawlkit.surfaces.partition`, over the page mix instead of a network.

python -m benchmarks.scaling_member HOSTS DESCRIPTOR
"""

import os
import sys

from benchmarks.live_part import MixTransport
from benchmarks.page_mix import PageMix
from crawlkit.clock import SystemClock
from crawlkit.cluster.member import LineEnded, serve
from crawlkit.cluster.processes import open_line
from crawlkit.engine.runner import run_async
from crawlkit.engine.session import Hooks, Surroundings

PAGES_A_HOST = 100


class ManyDomains(PageMix):
    """The page mix with a registrable domain for each host."""

    @staticmethod
    def host(number: int) -> str:
        """Return a host's name."""
        return f"www.site-{number}.test"


async def _serve(hosts: int, descriptor: int) -> None:
    transport = MixTransport(ManyDomains(hosts * PAGES_A_HOST, hosts))
    await serve(await open_line(descriptor), lambda _: Hooks(), Surroundings(transport, SystemClock()))


def main() -> None:
    """Be a partition until its run ends."""
    try:
        run_async(_serve(int(sys.argv[1]), int(sys.argv[2])))
    except LineEnded:
        os._exit(1)


if __name__ == "__main__":
    main()
