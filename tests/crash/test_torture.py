"""`scripts/crash` keeps every promise for a round, and can tell when one is broken."""

import dataclasses
import itertools
import json
from pathlib import Path

import pytest

from crawlkit.testing.forks import Nursery
from crawlkit.testing.graph import Graph
from crawlkit.testing.site import Reply, Site, page
from crawlkit.testing.torture import Figures, Plan, Round, Violation, main

FIGURES = {
    "crawls", "kills", "kills_in_the_making", "kills_per_minute", "minutes", "refetches", "refetches_per_kill", "simulated",
}  # fmt: skip


class Restless(Graph):
    """A graph whose pages are never the same twice."""

    def site(self, *, page_bytes: int = 0, delay_s: float = 0.0) -> Site:
        turns = itertools.count()

        def answer(host: str, target: str) -> Reply:
            return page(f"{next(turns)}", ["/a", "/b"], text="x" * page_bytes) if target != "/robots.txt" else Reply(404)

        return Site({}, otherwise=answer)


def test_a_round_is_survived_and_told_of(seed: int, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--minutes", "0", "--seed", str(seed % 100_000)]) == 0
    round_, summary = (json.loads(line) for line in capfd.readouterr().out.splitlines())
    assert round_["seed"] == seed % 100_000
    assert set(summary) == FIGURES
    assert summary["crawls"] == 2


def test_a_report_that_differs_is_a_violation(tmp_path: Path) -> None:
    plan = dataclasses.replace(Plan.of(1), graph=Restless({}), delay_s=0.0)
    with Nursery() as nursery, pytest.raises(Violation, match="the report differs"):
        Round(plan, tmp_path, nursery, Figures()).run()


def test_a_plan_is_the_same_for_the_same_seed() -> None:
    assert Plan.of(7) == Plan.of(7) != Plan.of(8)
    assert {Plan.of(seed).workers for seed in range(50)} == {1, 8, 64}
    assert any(Plan.of(seed).delay_s for seed in range(50))
