"""The shared cases: real-world inputs with right answers, read from where they lie beside the checkout.

`bugs.json` has a copy in `tests/data`; the suites are large and read from `../shared/cases/suites`. Where they are missing
the tests skip and say so, except in CI (`CI=true`), where a missing suite is a failure.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
SUITES = ROOT.parent / "shared" / "cases" / "suites"


def bugs(kind: str, *, leave_out: frozenset[str] = frozenset()) -> list[Any]:
    """Return the cases of one kind as pytest params; `leave_out` names ids, each with its reason beside the call."""
    data = json.loads((ROOT / "tests" / "data" / "bugs.json").read_text())
    return [pytest.param(c, id=c["id"]) for c in data["cases"] if c["kind"] == kind and c["id"] not in leave_out]


def suite(name: str, *, leave_out: frozenset[str] = frozenset()) -> list[Any]:
    """Return a suite's cases as pytest params (`{id, input, expected, ...}`; a suite's `texts` under `"texts"`)."""
    path = SUITES / f"{name}.json"
    if not path.exists():
        if os.environ.get("CI"):
            raise FileNotFoundError(f"{path} is missing, and CI must run it")
        return [pytest.param(None, id=name, marks=pytest.mark.skip(reason=f"{path} is not here"))]
    data = json.loads(path.read_text())
    texts = data.get("texts", {})
    return [pytest.param({**c, "texts": texts} if texts else c, id=c["id"]) for c in data["cases"] if c["id"] not in leave_out]
