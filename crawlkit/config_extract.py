"""The items of `extract`: `NAME=CSS[@ATTR]`, and `NAME[]=CSS[@ATTR]` for all that match.

A selector is run on whatever pages there are, so what it may cost is bounded before. lexbor looks for `a b c d` by trying each
ancestor for each word, which on a page of nested elements is a power of their depth (16 s for 500 levels): hence `chains_of`
takes such a selector apart, and `policy.extract` goes from step to step. What it cannot take apart is refused in numbers.
"""

import re
from typing import Final, NamedTuple

MOST_RULES: Final = 100
MOST_SELECTOR: Final = 500
"""Characters of a selector."""

# All are compiled when an item is read: most crawls have none.
# An attribute's name is the last that may stand in an item: no selector ends in one, but within brackets or quotes.
_ITEM: Final = r"(?sa)\s*([A-Za-z_][A-Za-z0-9_-]{0,63})(\[\])?\s*=\s*(.*?)\s*(?:@([A-Za-z_:][\w:.-]*)\s*)?"
_PARSEL: Final = r"::(text|attr)\b"
# A text in quotes, an escape, a comment, a combinator with the white space around it, white space, or one character.
_TOKEN: Final = r"""(?xs) "(?:[^"\\]|\\.)*+" | '(?:[^'\\]|\\.)*+' | \\. | /\*.*?\*/ | \s*+[>+~,]\s*+ | \s++ | . """


_OF: Final = r"\s+of\s+"  # in :nth-child(2 of a)


class Step(NamedTuple):
    """A selector without a step to a descendant; `levels` is how far above what it matches its first element stands."""

    selector: str
    levels: int


Chain = tuple[Step, ...]
"""Steps from an ancestor to a descendant."""


class ExtractRule(NamedTuple):
    """One field: the text, or the attribute, of the first element that `selector` matches, or of all if `many`."""

    name: str
    many: bool
    selector: str
    attribute: str | None


def parse_extract(item: str) -> ExtractRule:
    """Return the rule of an item; ValueError if it is not of the shape."""
    match = re.fullmatch(_ITEM, item)
    if match is None or not match[3]:
        raise ValueError("NAME=CSS or NAME=CSS@ATTR, NAME[]= for a list, as in price=span.price or images[]=img@src")
    return ExtractRule(match[1], match[2] is not None, match[3], match[4])


def check_extract(item: str) -> str:
    """Check a `NAME=CSS[@ATTR]`: the selector is compiled."""
    rule = parse_extract(item)
    if re.search(_PARSEL, rule.selector):
        raise ValueError(
            "a selector without ::text or ::attr(): text is what is taken, an attribute follows an @, as in a@href"
        )
    if len(rule.selector) > MOST_SELECTOR:
        raise ValueError(f"a selector of at most {MOST_SELECTOR} characters")
    if any(_searches(step.selector) > 1 for chain in chains_of(rule.selector) for step in chain):
        raise ValueError("a selector with ~, :has() or a space in parentheses once at most: more could take minutes a page")
    if not _compiles(rule.selector):
        raise ValueError("a CSS selector after the =; this one cannot be read")
    list_mark, attribute = "[]" if rule.many else "", f"@{rule.attribute}" if rule.attribute else ""
    return f"{rule.name}{list_mark}={rule.selector}{attribute}"


def check_names(items: tuple[str, ...]) -> None:
    """Check that no two rules, all of them checked, have one name; ValueError otherwise."""
    names = [parse_extract(item).name for item in items]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two fields are named {name}")
    if len(names) > MOST_RULES:
        raise ValueError(f"{len(names)} fields are more than {MOST_RULES}")


def chains_of(selector: str) -> tuple[Chain, ...]:
    """Return the alternatives of a selector, which commas part, each in its steps."""
    chains: list[list[Step]] = [[]]
    text, levels, depth = "", 0, 0
    for match in re.finditer(_TOKEN, selector.strip()):
        token = match[0]
        kind = token.strip() or " "
        if depth == 0 and kind in (",", " "):
            chains[-1].append(Step(text, levels))
            text, levels = "", 0
            if kind == ",":
                chains.append([])
            continue
        depth += (kind in ("(", "[")) - (kind in (")", "]"))
        levels += depth == 0 and kind == ">"
        text += "" if token.startswith("/*") else token
    chains[-1].append(Step(text, levels))
    return tuple(tuple(chain) for chain in chains)


def _searches(step: str) -> int:
    """Return how often matching one element looks through others: siblings, descendants, ancestors."""
    searches = step.count(":has(")
    brackets = 0
    for match in re.finditer(_TOKEN, re.sub(_OF, "+", step)):
        kind = match[0].strip() or " "
        brackets += (kind == "[") - (kind == "]")
        searches += brackets == 0 and kind in ("~", " ")
    return searches


def _compiles(selector: str) -> bool:
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError  # noqa: PLC0415  (takes longer to load than most commands)

    try:
        LexborHTMLParser("").css(selector)
    except (SelectolaxError, UnicodeError):
        return False
    return True
