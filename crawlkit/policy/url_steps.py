"""The way from text to normal form, step by step: what was dropped, what was spelt otherwise, or why it is no URL of a crawl.

`policy.urls` decides what the normal form is, by a parser that takes all steps at once; here they are told apart afterwards, by
comparing what was written with what came of it. Nothing depends on them.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from crawlkit.policy.urls import host_of, normalise, path_of


class UrlStep(StrEnum):
    """What happened to a text on its way to a normal form. Stable."""

    SPACE = "url.space"  # spaces and controls around it, tabs and line ends within
    SLASHES = "url.slashes"  # backslashes, too few or too many slashes before the host
    SCHEME = "url.scheme_case"
    USER_INFO = "url.user_info"  # user name and password are dropped
    HOST_CASE = "url.host_case"
    HOST_IDN = "url.host_idn"  # a name beyond ASCII becomes punycode
    HOST_FORM = "url.host_form"  # an address, or an escaped name, gets its usual form
    PORT = "url.port"  # the scheme's own port is dropped, another loses its leading zeros
    ROOT = "url.root"  # an empty path becomes a slash
    DOTS = "url.dots"  # dot segments are resolved
    ENCODED = "url.encoded"  # what may not stand in a URL is percent-encoded
    FRAGMENT = "url.fragment"


class NoUrl(StrEnum):
    """Why a text is no URL that can be crawled. Stable."""

    INVALID = "url.invalid"
    SCHEME = "url.scheme"  # neither http nor https


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what stood there, and what stands there now (empty where it was dropped)."""

    step: UrlStep
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Reading:
    """A normal form and the steps to it, in the order in which their places stand in a URL; or why there is none."""

    url: str | None
    steps: tuple[Step, ...] = ()
    problem: NoUrl | None = None


_SPACE = "".join(map(chr, range(0x21)))
_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):([\\/]*)([^\\/?#]*)([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):(?![0-9]+(?:[/?#]|$))")
_DOT_SEGMENT = re.compile(r"(?:\.|%2e){1,2}", re.IGNORECASE)


def read_url(text: str) -> Reading:
    """Return the normal form of `text` and the steps to it. Any text will do; never raises."""
    url = normalise(text)
    if url is None:
        scheme = _SCHEME.match(text.strip(_SPACE))
        is_other = scheme is not None and scheme[1].lower() not in ("http", "https")
        return Reading(None, problem=NoUrl.SCHEME if is_other else NoUrl.INVALID)
    return Reading(url, tuple(_steps(text, url)))


def _steps(text: str, url: str) -> list[Step]:
    bare = re.sub(r"[\t\n\r]", "", text.strip(_SPACE))
    steps = [Step(UrlStep.SPACE, text, bare)] if bare != text else []
    parts = _PARTS.fullmatch(bare)
    if parts is None:  # a parser that takes what the pattern does not: nothing is told apart
        return steps
    scheme, slashes, authority, path, query, fragment = (part or "" for part in parts.groups())
    own = url.partition(":")[0]
    if scheme != own:
        steps.append(Step(UrlStep.SCHEME, scheme, own))
    if slashes != "//" or "\\" in path:
        steps.append(Step(UrlStep.SLASHES, slashes + path, "//" + path.replace("\\", "/")))
    steps += _authority_steps(authority, url)
    steps += _path_steps(path.replace("\\", "/"), query, path_of(url))
    if fragment:
        steps.append(Step(UrlStep.FRAGMENT, fragment, ""))
    return steps


def _authority_steps(authority: str, url: str) -> list[Step]:
    steps = []
    _, at, place = authority.rpartition("@")
    if at:
        steps.append(Step(UrlStep.USER_INFO, "***@", ""))  # what is shown may be passed on: no password
    host = place[: place.index("]") + 1] if "]" in place else place.partition(":")[0]
    own_host = host_of(url)
    own_port = url.split("/", 3)[2].removeprefix(own_host)
    if host != own_host:
        steps.append(Step(_host_step(host, own_host), host, own_host))
    if (written := place.removeprefix(host)) != own_port:
        steps.append(Step(UrlStep.PORT, written, own_port))
    return steps


def _host_step(written: str, own: str) -> UrlStep:
    if written.isascii():
        return UrlStep.HOST_CASE if written.lower() == own else UrlStep.HOST_FORM
    return UrlStep.HOST_IDN


def _path_steps(path: str, query: str, own: str) -> list[Step]:
    steps = []
    if not path:
        path = "/"
        steps.append(Step(UrlStep.ROOT, "", "/"))
    resolved = _without_dots(path)
    if resolved != path:
        steps.append(Step(UrlStep.DOTS, path, resolved))
    if resolved + query != own:
        steps.append(Step(UrlStep.ENCODED, resolved + query, own))
    return steps


def _without_dots(path: str) -> str:
    """Return a path with its dot segments resolved (URL Standard section 4.4, path state)."""
    kept: list[str] = []
    segments = path[1:].split("/")
    for place, segment in enumerate(segments):
        is_last = place == len(segments) - 1
        if not _DOT_SEGMENT.fullmatch(segment):
            kept.append(segment)
            continue
        if len(segment.lower().replace("%2e", ".")) == 2 and kept:
            kept.pop()
        if is_last:
            kept.append("")
    return "/" + "/".join(kept)
