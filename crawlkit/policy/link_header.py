"""Link headers: a page's canonical URL and its versions in other languages (RFC 8288)."""

import re
from collections.abc import Iterable, Iterator

from crawlkit.policy.language import language_tag
from crawlkit.policy.urls import resolve_location

# One value of a Link header: the target, then all of its parameters (section 3).
_LINK = re.compile(r"""<([^<>]*+)>((?:[^<"]|"[^"]*+")*+)""")
_RELATION = re.compile(r""";\s*+rel\s*+=\s*+(?:"([^"]*+)"|([^\s;,"]++))""", re.I)
_LANGUAGE = re.compile(r""";\s*+hreflang\s*+=\s*+(?:"([^"]*+)"|([^\s;,"]++))""", re.I)
_ANCHOR = re.compile(r";\s*+anchor\s*+=", re.I)


def linked_canonical(url: str, values: Iterable[bytes]) -> str | None:
    """Return the first usable target of rel=canonical in the Link headers of `url`."""
    for reference, _ in _related(values, "canonical"):
        if target := resolve_location(url, reference):
            return target
    return None


def linked_alternates(url: str, values: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    """Yield language and target of each rel=alternate with a language in the Link headers of `url`."""
    for reference, parameters in _related(values, "alternate"):
        target = None
        for quoted, plain in _LANGUAGE.findall(parameters):
            language = language_tag(quoted or plain)
            target = target or (resolve_location(url, reference) if language else None)
            if language and target:
                yield language, target


def _related(values: Iterable[bytes], relation: str) -> Iterator[tuple[bytes, str]]:
    """Yield reference and parameters of the links of this relation; one with an anchor speaks of something else."""
    for value in values:
        for reference, parameters in _LINK.findall(value.decode("latin-1")):
            named = _RELATION.search(parameters)
            tokens = (named[1] or named[2] or "").lower().split() if named else ()
            if relation in tokens and not _ANCHOR.search(parameters):
                yield reference.encode("latin-1"), parameters
