"""Where a browser that can be steered is installed, and whether what steers it is."""

import importlib.util
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from crawlkit.errors import ConfigError

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
"""What Chromium and its kin are called on a PATH, the first that is there."""

_ELSEWHERE = ("/usr/bin/chromium", "/Applications/Chromium.app/Contents/MacOS/Chromium")
_OWN_PLACES = (".cache/ms-playwright", "Library/Caches/ms-playwright")
_OWN_PROGRAMS = ("chromium-*/chrome-*/chrome", "chromium-*/chrome-*/*.app/Contents/MacOS/*")

_GET_ONE = "apt-get install chromium, or playwright install chromium"


def need_browser(environ: Mapping[str, str]) -> str:
    """Return the path of a browser; ConfigError, with the way out, if there is none or what steers one is not installed."""
    if importlib.util.find_spec("playwright") is None:
        raise ConfigError(f"render: the package playwright is not installed; pip install 'crawlkit[render]' (and {_GET_ONE})")
    found = find_browser(environ)
    if found is None:
        raise ConfigError(f"render: there is no Chromium on the PATH; get one by {_GET_ONE}")
    return found


def find_browser(environ: Mapping[str, str]) -> str | None:
    """Return the path of Chromium or its kin: on the PATH, in its usual place, or the one that Playwright installed."""
    for name in (*NAMES, *_ELSEWHERE):
        found = shutil.which(name, path=environ.get("PATH", ""))
        if found is not None:
            return found
    return next(_installed_by_playwright(environ), None)


def _installed_by_playwright(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield browsers of Playwright's own, the latest first."""
    named = environ.get("PLAYWRIGHT_BROWSERS_PATH")
    homes = [Path(named)] if named else [Path(environ.get("HOME", "/")) / place for place in _OWN_PLACES]
    for home in homes:
        for pattern in _OWN_PROGRAMS:
            yield from sorted(map(str, home.glob(pattern)), reverse=True)
