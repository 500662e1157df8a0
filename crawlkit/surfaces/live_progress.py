"""Progress on a terminal: a table of one row that is drawn over itself."""

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.table import Table

from crawlkit.surfaces.progress import Figures, Progress, as_texts

LIVE_EVERY_S = 0.2


class LiveProgress(Progress):
    """A table of one row that is drawn over itself."""

    def __init__(self, live: Live) -> None:
        super().__init__(LIVE_EVERY_S)
        self._live = live

    def draw(self, figures: Figures) -> None:
        """Draw the table anew."""
        table = Table(box=None, pad_edge=False)
        for name in figures:
            table.add_column(name, justify="right", style="bold" if name == "pages" else "")
        table.add_row(*as_texts(figures).values())
        self._live.update(table, refresh=True)


@contextmanager
def open_live() -> Iterator[LiveProgress]:
    """Give the progress on standard error, which is cleared in the end."""
    live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
    live.start()
    try:
        yield LiveProgress(live)
    finally:
        with contextlib.suppress(OSError):
            live.stop()
