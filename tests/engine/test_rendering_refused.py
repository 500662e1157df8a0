"""A crawl that is to render where there is nothing to do it with: said before there is a directory."""

import sys
from pathlib import Path

import pytest

from tests.processes import run

WITHOUT = "import sys; {}; from crawlkit.surfaces.cli import run_cli; sys.exit(run_cli(sys.argv[1:]))"
NO_PACKAGE = "sys.modules['playwright'] = None"
NO_BROWSER = (
    "import importlib.util, crawlkit.render.finding as finding; finding._ELSEWHERE = (); "
    "find = importlib.util.find_spec; importlib.util.find_spec = lambda name: finding if name == 'playwright' else find(name)"
)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (NO_PACKAGE, "render: the package playwright is not installed; pip install 'crawlkit[render]'"),
        (NO_BROWSER, "render: there is no Chromium on the PATH; get one by apt-get install chromium"),
    ],
)
def test_it_is_refused_with_the_way_out(tmp_path: Path, code: str, said: str) -> None:
    arguments = [sys.executable, "-c", WITHOUT.format(code), "run", "http://127.0.0.1:9/", "-d", "x.crawl", "--render"]
    refused = run(arguments, cwd=tmp_path, env={"PATH": str(tmp_path), "HOME": str(tmp_path)})
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert said in refused.err
    assert list(tmp_path.iterdir()) == []


def test_a_browser_that_does_not_start_is_refused_with_its_own_words(tmp_path: Path) -> None:
    pytest.importorskip("playwright", reason="there is no playwright")
    program = tmp_path / "bin" / "chromium"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho no screen here >&2\nexit 1\n")
    program.chmod(0o755)
    arguments = [sys.executable, "-m", "crawlkit", "run", "http://127.0.0.1:9/", "-d", "x.crawl", "--render"]
    refused = run(arguments, cwd=tmp_path, env={"PATH": f"{program.parent}:/usr/bin:/bin"})
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert f"render: the browser {program} does not start: no screen here" in refused.err
    assert not (tmp_path / "x.crawl").exists()


def test_a_crawl_that_does_not_render_loads_nothing_for_it(tmp_path: Path) -> None:
    code = (
        "import sys; from crawlkit.surfaces.cli import run_cli; run_cli(sys.argv[1:]); sys.stdout.write(' '.join(sys.modules))"
    )
    arguments = [sys.executable, "-c", code, "run", "http://127.0.0.1:9/", "-d", "x.crawl", "-q", "--retries=0", "--no-robots"]
    loaded = run(arguments, cwd=tmp_path).out.decode().split()
    assert "crawlkit.engine.rendering.opening" in loaded
    assert {"playwright", "crawlkit.render.browser", "crawlkit.engine.rendering.pages"}.isdisjoint(loaded)
