"""Language tags: what `lang`, `hreflang` and Content-Language hold, in one spelling."""

import re
from functools import lru_cache

_TAG = re.compile(r"[A-Za-z]{1,8}(?:[-_][A-Za-z0-9]{1,8}){0,7}")

# The pages of a site are in few languages; what is longer is not kept in memory.
_MEMO_ENTRIES = 256
_MEMO_CHARS = 32


def language_tag(text: str | None) -> str | None:
    """Return a language tag as RFC 5646 section 2.1.1 spells it (`en-GB`, `zh-Hant`, `x-default`), None if it is none.

    An underscore, as locales have it, counts as a hyphen. That a language of this name exists is not checked.
    """
    if not text:
        return None
    return _remembered(text) if len(text) <= _MEMO_CHARS else _spelt(text)


def _spelt(text: str) -> str | None:
    tag = text.strip()
    if _TAG.fullmatch(tag) is None:
        return None
    first, *rest = tag.lower().replace("_", "-").split("-")
    spelt = [first]
    is_extension = len(first) == 1
    for subtag in rest:
        is_extension = is_extension or len(subtag) == 1
        if not is_extension and subtag.isalpha() and len(subtag) in (2, 4):
            spelt.append(subtag.upper() if len(subtag) == 2 else subtag.title())
        else:
            spelt.append(subtag)
    return "-".join(spelt)


_remembered = lru_cache(_MEMO_ENTRIES)(_spelt)
