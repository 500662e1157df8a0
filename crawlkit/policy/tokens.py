"""Tell the tags of a page from its text, comments and scripts, as the HTML Standard's tokenizer does, without a tree."""

import re

_ATTRIBUTE = rb"""
    [\t\n\f\r /]*+ (%b[^\t\n\f\r />] [^\t\n\f\r />=]*+) (?: [\t\n\f\r ]*+ = [\t\n\f\r ]*+
    (?: "(%b[^"]*+)(?:"|\Z) | '(%b[^']*+)(?:'|\Z) | (%b[^\t\n\f\r >"'] [^\t\n\f\r >]*+) )?+ )?+"""
ATTRIBUTE = _ATTRIBUTE % ((b"?:",) * 4)
"""The pattern, verbose, of one attribute and what is before it (HTML Standard section 13.2.5.33 to 39)."""
NAME_AND_VALUE = _ATTRIBUTE % ((b"",) * 4)
"""The same with four groups: its name, and its value in one of three kinds of quotes."""

TEXT_ENDS = {
    name: rb"</(?i:%b)[\t\n\f\r />]" % name
    for name in (b"script", b"style", b"title", b"textarea", b"iframe", b"xmp", b"noembed", b"noframes")
} | {b"plaintext": rb"\Z"}
"""What ends the text of an element whose content is text. Like the others a pattern that few pages need, compiled for them."""


def end_of_text(markup: bytes, at: int, name: bytes) -> int:
    """Return where the content of an element ends whose content is text."""
    closing = re.compile(TEXT_ENDS[name]).search(markup, at)
    return closing.start() if closing else len(markup)


def end_of_declaration(markup: bytes, start: int, *, in_foreign: bool = False) -> int:
    """Return where the comment or the like that starts here ends; in SVG and MathML there are sections of text, too."""
    if in_foreign and markup.startswith(b"<![CDATA[", start):
        ends = markup.find(b"]]>", start)
        return ends + 3 if ends >= 0 else len(markup)
    if not markup.startswith(b"<!--", start):
        return markup.find(b">", start) + 1 or len(markup)
    if markup.startswith((b">", b"->"), start + 4):
        return markup.index(b">", start) + 1
    ending = re.compile(rb"--!?>").search(markup, start + 4)
    return ending.end() if ending else len(markup)
