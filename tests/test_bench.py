"""The benchmarks run, and say what they measured in lines of JSON."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"
BENCHES = {"fetch", "frontier", "seen", "resume", "memory", "checkpoint", "durability", "search", "scaling"}


@pytest.mark.slow
def test_each_bench_prints_its_figures_as_lines_of_json(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--smoke", "--cache", str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SCRIPTS)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    figures = [json.loads(line) for line in done.stdout.splitlines()]
    assert {"bench", "what", "value", "unit"} <= set.intersection(*map(set, figures))
    assert all(isinstance(figure["value"], int | float) for figure in figures)
    assert {figure["bench"] for figure in figures} - {"machine"} == BENCHES
    crawled = [figure for figure in figures if figure["what"] == "pages crawled" and figure["peer"] == "crawlkit"]
    assert [figure["value"] for figure in crawled] == [60]
