"""The command line in this process."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from crawlkit.model import OrderReason, Record
from crawlkit.surfaces.cli import run_cli
from tests.surfaces.made_crawls import RECORDS, Make, make_crawl


@dataclass(frozen=True, slots=True)
class Said:
    """What a command came to: its exit status and what it wrote."""

    status: int
    out: str
    err: str


Cli = Callable[..., Said]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Cli:
    """Run commands in an empty working directory."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Said:
        capfd.readouterr()
        status = run_cli([str(argument) for argument in arguments])
        said = capfd.readouterr()
        assert "Traceback" not in said.err
        return Said(status, said.out, said.err)

    return run


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Make `x.crawl`, or another, in the working directory of `cli`, without a network."""

    def make(records: Iterable[Record] = RECORDS, name: str = "x.crawl", reasons: Iterable[OrderReason] = ()) -> Path:
        return make_crawl(tmp_path / name, records, reasons)

    return make
