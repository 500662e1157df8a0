"""Waits for what a process does: they end with it, and say what it wrote."""

import sys
from pathlib import Path

import pytest

from tests.processes import started, wait_while_running


def test_a_wait_for_what_a_process_that_has_ended_never_did_fails_at_once_with_what_it_wrote(tmp_path: Path) -> None:
    out_of_pages = [sys.executable, "-c", "import sys; sys.exit('out of pages')"]
    with started(out_of_pages, tmp_path) as process, pytest.raises(AssertionError, match="ended in vain") as failure:
        wait_while_running(process, lambda: False)
    assert failure.value.__notes__ == ["status 1\nout of pages\n"]


def test_what_a_process_did_last_counts(tmp_path: Path) -> None:
    made = tmp_path / "made"
    with started([sys.executable, "-c", "open('made', 'x').close()"], tmp_path) as process:
        process.wait()
        wait_while_running(process, made.exists)
