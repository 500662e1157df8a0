"""Link headers: a page's canonical URL and its versions in other languages (RFC 8288)."""

import re
from collections.abc import Iterable, Iterator

from crawlkit.policy.language import language_tag
from crawlkit.policy.urls import resolve_location

# Compiled when the first such header is met. One value of it: the target, then all of its parameters (section 3).
_LINK = r"""<([^<>]*+)>((?:[^<"]|"[^"]*+")*+)"""
_RELATION = r"""(?i);\s*+rel\s*+=\s*+(?:"([^"]*+)"|([^\s;,"]++))"""
_LANGUAGE = r"""(?i);\s*+hreflang\s*+=\s*+(?:"([^"]*+)"|([^\s;,"]++))"""
_ANCHOR = r"(?i);\s*+anchor\s*+="


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
        for quoted, plain in re.findall(_LANGUAGE, parameters):
            language = language_tag(quoted or plain)
            target = target or (resolve_location(url, reference) if language else None)
            if language and target:
                yield language, target


def _related(values: Iterable[bytes], relation: str) -> Iterator[tuple[bytes, str]]:
    """Yield reference and parameters of the links of this relation; one with an anchor speaks of something else."""
    for value in values:
        for reference, parameters in re.findall(_LINK, value.decode("latin-1")):
            named = re.search(_RELATION, parameters)
            tokens = (named[1] or named[2] or "").lower().split() if named else ()
            if relation in tokens and not re.search(_ANCHOR, parameters):
                yield reference.encode("latin-1"), parameters
