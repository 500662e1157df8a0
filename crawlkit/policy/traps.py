"""Recognise a trap by the URL alone: the rules that keep a report independent of order.

Seeds are exempt: whoever writes one means it. A refused URL has no record; it is counted by its code. What each rule stops,
and which honest URLs it costs:

    trap.length         More than `max_url_length` characters (2,048, which the sitemap protocol allows less than). Stops
                        whatever grows on each page. Costs long search forms and data in queries.
    trap.path_repeat    A segment, or a run of them, more than `max_path_repeats` (3) times in a row, or a segment more than
                        twice that often anywhere. Stops relative links that lack their slash. Costs paths like /0/0/0/0/.
    trap.host_in_path   The host's own name, or that with www, as more than one segment. Stops links that lack their scheme.
                        Costs next to nothing.
    trap.param_repeat   A parameter with the same value more than `max_param_repeats` (3) times, or a name more than three times
                        that often. Stops links that append to the query. Costs forms with ten boxes of one name ticked.
    trap.param_count    More than `max_params` (32) parameters. Stops queries that gain names. Costs large forms sent as links.
    trap.escape         Escaped four times over (%25252520), an ampersand escaped twice (amp;amp;), or four backslashes. Stops
                        links that are escaped again on each page. Costs addresses within addresses, four deep.

The rule that depends on what was fetched before is `novelty` (`trap.template`).
"""

import re
from collections import Counter
from typing import Self

import msgspec

from crawlkit.config import Config
from crawlkit.model import Refusal
from crawlkit.policy.urls import host_of

# A percent sign that was escaped three times; an ampersand that was twice made an entity, whatever was escaped after
# that; backslashes, which double when a string is quoted again.
_ESCAPED_AGAIN = re.compile(r"%252525|(?:amp(?:;|%(?:25)*3b)){2}|(?:\\|%(?:25)*5c){4}", re.I)

_ANYWHERE = 2
"""How many times `max_path_repeats` a segment may stand in a path, not in a row. So whatever repeats in a row holds a
segment that stands there no oftener than that (else it was refused already), which keeps the search for it short."""

_ANY_VALUE = 3
"""How many times `max_param_repeats` a name may stand in a query, with any value."""


class Traps(msgspec.Struct, frozen=True):
    """The rules on URLs, with their limits."""

    max_url_length: int
    max_path_repeats: int
    max_param_repeats: int
    max_params: int

    @classmethod
    def of(cls, config: Config) -> Self:
        """Return the rules under `config`."""
        return cls(config.max_url_length, config.max_path_repeats, config.max_param_repeats, config.max_params)

    def judge(self, url: str) -> Refusal | None:
        """Return why `url`, a normal form, looks like a trap; None if it does not. 1 to 3 us for a usual one."""
        if len(url) > self.max_url_length:
            return Refusal.TRAP_LENGTH
        if ("%" in url or "amp" in url or "\\" in url) and _ESCAPED_AGAIN.search(url):
            return Refusal.TRAP_ESCAPE
        path, _, query = url[url.index("/", 8) + 1 :].partition("?")
        return self._judge_path(url, path) or (self._judge_query(query) if query else None)

    def _judge_path(self, url: str, path: str) -> Refusal | None:
        segments = path.split("/")
        if len(segments) <= 1 or len(set(segments)) == len(segments):  # the usual case
            return None
        if _own_name_again(host_of(url), segments):
            return Refusal.TRAP_HOST_IN_PATH
        return Refusal.TRAP_PATH_REPEAT if self._repeats(segments) else None

    def _repeats(self, segments: list[str]) -> bool:
        most = self.max_path_repeats
        often = [(segment, count) for segment, count in Counter(segments).items() if count > most]
        return any(count > _ANYWHERE * most or _in_a_row(segments, segment, most + 1) for segment, count in often)

    def _judge_query(self, query: str) -> Refusal | None:
        count = query.count("&") + 1
        if count > self.max_params:
            return Refusal.TRAP_PARAM_COUNT
        if count <= self.max_param_repeats:
            return None
        pairs = query.split("&")
        names = [pair.partition("=")[0] for pair in pairs]
        if count - len(set(names)) < self.max_param_repeats:  # the usual case: no name stands often
            return None
        same_pair, same_name = max(Counter(pairs).values()), max(Counter(names).values())
        if same_pair > self.max_param_repeats or same_name > _ANY_VALUE * self.max_param_repeats:
            return Refusal.TRAP_PARAM_REPEAT
        return None


def _own_name_again(host: str, segments: list[str]) -> bool:
    bare = host.removeprefix("www.")
    return segments.count(bare) > 1 or segments.count(f"www.{bare}") > 1


def _in_a_row(segments: list[str], first: str, times: int) -> bool:
    """Whether a run of segments that begins with `first`, and holds it once, stands `times` times in a row."""
    places = [place for place, segment in enumerate(segments) if segment == first]
    for start, second, last in zip(places, places[1:], places[times - 1 :], strict=False):
        length = second - start
        if last - start == length * (times - 1) and _is_periodic(segments[start : start + length * times], length):
            return True
    return False


def _is_periodic(segments: list[str], length: int) -> bool:
    return len(segments) % length == 0 and segments[length:] == segments[:-length]
