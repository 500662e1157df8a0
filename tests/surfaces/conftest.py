"""The command line in this process."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from crawlkit.surfaces.cli import run_cli


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
