"""Decide whether a URL belongs to the crawl: by the seeds' hosts, domains or paths, then by include and exclude."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, assert_never

import msgspec

from crawlkit.config import Config, ScopeMode
from crawlkit.errors import ConfigError
from crawlkit.model import Refusal, Verdict
from crawlkit.policy.urls import host_of, path_of

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

# A pattern with the verdict it gives where it decides.
_Rule = tuple[re.Pattern[str], Verdict]

# Longer names do not exist (RFC 1035 section 2.3.4); URLs can hold them, and no memo should.
_LONGEST_NAME = 255

_FEW_HOSTS = 4
"""Up to so many, four prefixes each are tried in less time than it takes to find a URL's host: 0.1 us."""

_ANYWHERE = Verdict(True, "scope=any")
_NOT_ACCEPTED = Verdict(False, "plugin: not accepted", Refusal.HOOK)
_NOT_INCLUDED = Verdict(False, "include: no pattern matches", Refusal.INCLUDE)


class Scope(msgspec.Struct, frozen=True, eq=False):
    """What the crawl is about, spanned by its seeds. Built by `Scope.of`; all URLs in normal form.

    `places` maps what is in (host names, registrable domains, or host names with a path) to the verdict that admits
    there; `reach` is the length of the longest; `hosts` are those of the seeds. `accepts` is what plugins say,
    where there are any that have a say in it.
    """

    mode: ScopeMode
    seeds: frozenset[str]
    hosts: frozenset[str]
    places: Mapping[str, Verdict]
    reach: int
    includes: tuple[_Rule, ...]
    excludes: tuple[_Rule, ...]
    accepts: Callable[[str], bool] | None = None
    prefixes: tuple[str, ...] = ("",)
    """What every URL in scope begins with, one of these; where that is told as quickly as it can be, else nothing."""

    @classmethod
    def of(cls, seeds: Sequence[str], config: Config, accepts: Callable[[str], bool] | None = None) -> "Scope":
        """Return the scope that `seeds` span under `config`; ConfigError for a pattern that cannot be compiled."""
        names = {_place_of(seed, config.scope) for seed in seeds}
        return cls(
            mode=config.scope,
            seeds=frozenset(seeds),
            hosts=frozenset(map(host_of, seeds)),
            places={name: Verdict(True, f"scope={config.scope}: {name}") for name in names},
            reach=max(map(len, names), default=0),
            includes=_rules("include", config.include, None),
            excludes=_rules("exclude", config.exclude, Refusal.EXCLUDE),
            accepts=accepts,
            prefixes=_prefixes(names) if config.scope is ScopeMode.HOST and 0 < len(names) <= _FEW_HOSTS else ("",),
        )

    def judge(self, url: str) -> Verdict:
        """Return whether `url` is in scope, and the rule that decided: about 1 us, and one search a pattern.

        The seeds' span comes first; then some include must match, where there are any, and no exclude may; then plugins
        are asked. Seeds are exempt from all but the first.
        """
        verdict = self._span(url)
        if not verdict.accepted or not (self.includes or self.excludes or self.accepts) or url in self.seeds:
            return verdict
        verdict = self._by_patterns(url, verdict)
        return verdict if not verdict.accepted or self.accepts is None or self.accepts(url) else _NOT_ACCEPTED

    def refusal(self, url: str) -> Refusal | None:
        """Return why `url` is not in scope, None if it is: what `judge` says, without its words, at a fourth of the time."""
        if not self._spans(url):
            return Refusal.SCOPE
        return self.judge(url).refusal if self.includes or self.excludes or self.accepts else None

    def _spans(self, url: str) -> bool:
        if self.prefixes[0]:
            return url.startswith(self.prefixes)
        if self.mode is ScopeMode.HOST:
            return host_of(url) in self.places
        return self._span(url).accepted

    def _by_patterns(self, url: str, verdict: Verdict) -> Verdict:
        """Return what the patterns say of a URL that its span admits with `verdict`."""
        if self.includes:
            verdict = _first_match(self.includes, url) or _NOT_INCLUDED
            if not verdict.accepted:
                return verdict
        return _first_match(self.excludes, url) or verdict

    def covers(self, host: str) -> bool:
        """Whether URLs of a host may be in scope, by what the seeds span alone."""
        match self.mode:
            case ScopeMode.ANY:
                return True
            case ScopeMode.DOMAIN:
                return registrable_domain(host) in self.places
            case ScopeMode.HOST | ScopeMode.PREFIX:
                return host in self.hosts
            case _:
                assert_never(self.mode)

    def _span(self, url: str) -> Verdict:
        if self.mode is ScopeMode.ANY:
            return _ANYWHERE
        place = _place_of(url, self.mode)
        verdict = self._above(place) if self.mode is ScopeMode.PREFIX else self.places.get(place)
        return verdict or Verdict(False, f"scope={self.mode}: no seed spans {place}", Refusal.SCOPE)

    def _above(self, place: str) -> Verdict | None:
        """Return the verdict of the shortest seed path that `place` is at or below, looked up by segments."""
        slash = place.index("/")
        while 0 <= slash <= self.reach:
            # A seed path without a slash at its end admits what is below it, one with a slash what starts with it.
            verdict = self.places.get(place[:slash]) or self.places.get(place[: slash + 1])
            if verdict:
                return verdict
            slash = place.find("/", slash + 1)
        return self.places.get(place)


def _prefixes(hosts: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{scheme}://{host}{end}" for host in sorted(hosts) for scheme in ("https", "http") for end in "/:")


def registrable_domain(host: str) -> str:
    """Return the part of `host` that was registered, by the bundled public suffix list (its private section too).

    A host without one is returned as it is: an address, a public suffix itself, a single label.
    """
    return _registrable_memo(host) if len(host) <= _LONGEST_NAME else _registrable(host)


def _registrable(host: str) -> str:
    # The URL Standard makes an IPv4 address of every host whose last label is a number; IPv6 is a single label.
    if host.rpartition(".")[2].isdigit():
        return host
    return _suffixes().privatesuffix(host) or host


# About 15 MiB for a crawl of that many hosts.
_registrable_memo = lru_cache(65_536)(_registrable)


@cache
def _suffixes() -> "PublicSuffixList":
    from publicsuffixlist import PublicSuffixList  # noqa: PLC0415  (1 ms of a start, and only --scope domain needs it)

    return PublicSuffixList()


def _place_of(url: str, mode: ScopeMode) -> str:
    """Return what decides about `url`: its host name, its registrable domain, or its host name with its path."""
    match mode:
        case ScopeMode.HOST:
            return host_of(url)
        case ScopeMode.DOMAIN:
            return registrable_domain(host_of(url))
        case ScopeMode.PREFIX:
            return host_of(url) + path_of(url).partition("?")[0]
        case ScopeMode.ANY:
            return ""
        case _:
            assert_never(mode)


def _rules(key: str, patterns: Sequence[str], refusal: Refusal | None) -> tuple[_Rule, ...]:
    rules = []
    for n, pattern in enumerate(patterns):
        try:
            compiled = re.compile(pattern)
        except re.error as error:
            where = "" if error.pos is None else f" at position {error.pos}"
            raise ConfigError(f"{key}[{n}]: {pattern!r} is not a regular expression: {error.msg}{where}") from None
        except (OverflowError, RecursionError) as error:
            raise ConfigError(f"{key}[{n}]: {pattern!r} is not a usable regular expression: {error}") from None
        rules.append((compiled, Verdict(refusal is None, f"{key}[{n}]: /{pattern}/", refusal)))
    return tuple(rules)


def _first_match(rules: Sequence[_Rule], url: str) -> Verdict | None:
    for pattern, verdict in rules:
        if pattern.search(url):
            return verdict
    return None
