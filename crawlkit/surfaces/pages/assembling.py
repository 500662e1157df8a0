"""A page's style, script and policy."""

import base64
import hashlib
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Assets:
    """What a page is made of: markup with places for the rest, style, script."""

    markup: str
    style: str
    script: str

    def policy(self, *more: str) -> str:
        """Return the page's content security policy: its own style and script, by their digests, `more`, and nothing else."""
        own = (f"style-src {_source(self.style)}", f"script-src {_source(self.script)}")
        return "; ".join(("default-src 'none'", *own, *more, "base-uri 'none'", "form-action 'none'"))


def assets_of(package: str) -> Assets:
    """Return what the page in `package` is made of, after what all pages share."""
    return Assets(
        _asset(package, "page.html"),
        _asset(__package__, "base.css") + _asset(package, "page.css"),
        _asset(__package__, "base.js") + _asset(package, "page.js"),
    )


def _asset(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8")


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def without_markup(encoded: bytes) -> bytes:
    """Return JSON without any `<`, which could end the element that it stands in (HTML Standard section 4.12.1.3)."""
    return encoded.replace(b"<", rb"\u003c")
