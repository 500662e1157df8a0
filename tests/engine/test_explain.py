"""Every code that an explanation may have, with its golden answer."""

from pathlib import Path

import pytest

from crawlkit.engine.explain.answer import Fate
from crawlkit.model import Reason, Refusal
from crawlkit.policy.url_steps import NoUrl
from tests.engine.explained import CASES, Explained, explain, explain_stopped


def test_every_code_has_a_golden_answer() -> None:
    assert set(CASES) == {*Fate, *Reason, *Refusal, *NoUrl}


@pytest.mark.parametrize("code", CASES, ids=str)
def test_golden_answer(tmp_path: Path, code: str) -> None:
    case = CASES[code]
    with Explained(tmp_path / "crawl", case.web, **case.settings) as driver:
        case.act(driver)
        look = explain if code == Fate.IN_FLIGHT else explain_stopped
        said = look(driver, case.url, case.most_searched)
    remedy = None if case.remedy is None else case.remedy.replace("DIR", str(driver.directory))
    assert (said.code, said.standing, said.summary, said.remedy) == (code, case.standing, case.summary, remedy)
    assert said.typed == case.url
