"""What is shown of a crawl in partitions: all of them as one."""

from collections.abc import Sequence
from pathlib import Path

from crawlkit.engine.explain.answer import Explanation
from crawlkit.engine.lately import Lately
from crawlkit.engine.partitions import Partitions
from crawlkit.errors import StateError
from crawlkit.shell import as_argument
from crawlkit.state.checkpoint import Summary
from crawlkit.state.directory import is_held
from crawlkit.state.partitions import is_partitioned
from crawlkit.surfaces.control.client import ask
from crawlkit.surfaces.control.explaining import explained_by_partitions
from crawlkit.surfaces.control.messages import Do, Request
from crawlkit.surfaces.control.partitioned import order_partitions
from crawlkit.surfaces.live_page.source import Source
from crawlkit.surfaces.partitioned_status import watched_partitions
from crawlkit.surfaces.status import Status


def source_of(directory: Path) -> Source:
    """Return what is shown of the crawl in a directory, in partitions or not."""
    return PartitionedSource(directory) if is_partitioned(directory) else Source(directory)


class PartitionedSource(Source):
    """What is shown of a crawl in partitions. The table is read each time: it is another one once nodes have moved."""

    def _runs(self) -> bool:
        return is_held(self._directory) or any(map(is_held, self._partitions.members))

    def _watch(self, hosts: int) -> tuple[Status, Lately | None]:
        return watched_partitions(self._partitions, hosts)

    def _summary(self) -> Summary:
        return self._partitions.summary()

    @property
    def _partitions(self) -> Partitions:
        return Partitions.read(self._directory)

    def explain(self, text: str) -> Explanation:
        """Return the verdict on a URL; StateError and its kinds."""
        return explained_by_partitions(self._partitions, text)

    def order(self, do: Do) -> str:
        """Have an order carried out by the partitions that run, and return what they say; StateError and its kinds."""
        if not self._runs():
            raise StateError(f"no crawl runs; go on with it: crawlkit resume {as_argument(self._directory)}")
        return "; ".join(order_partitions(self._partitions, Request(do=do), _asked))


def _asked(directory: Path, request: Request, _span: Sequence[str]) -> str:
    return ask(directory, request).done or ""
