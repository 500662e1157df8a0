"""The rules judged again, by the settings in force: scope, traps, depth, robots.txt, the template budget, limits on pages.

Each function is one rule. What the crawl decided at its time is told by its rows; a rule tells what it says now.
"""

import hashlib
from collections.abc import Iterator
from functools import cached_property

from crawlkit.config import Config, to_toml
from crawlkit.engine.explain.answer import BudgetStanding, RobotsStanding, Ruling
from crawlkit.engine.robots import rules_of
from crawlkit.model import Reason, Refusal
from crawlkit.policy import politeness
from crawlkit.policy.scope import Scope
from crawlkit.policy.traps import Traps
from crawlkit.policy.urls import origin_of
from crawlkit.state.hosts import HostRecord
from crawlkit.state.looking import Looking
from crawlkit.state.origins import OriginRecord, RobotsState

OK = "ok"
UNKNOWN = "unknown"

_TRAP_SETTINGS = {
    Refusal.TRAP_LENGTH: "max_url_length",
    Refusal.TRAP_PATH_REPEAT: "max_path_repeats",
    Refusal.TRAP_PARAM_REPEAT: "max_param_repeats",
    Refusal.TRAP_PARAM_COUNT: "max_params",
}

_TRAPS = {
    Refusal.TRAP_LENGTH: "the URL is longer than accepted",
    Refusal.TRAP_PATH_REPEAT: "the path repeats a segment, or a run of them, too often",
    Refusal.TRAP_HOST_IN_PATH: "the path holds the host's own name more than once",
    Refusal.TRAP_PARAM_REPEAT: "the query repeats a parameter too often",
    Refusal.TRAP_PARAM_COUNT: "the query has too many parameters",
    Refusal.TRAP_ESCAPE: "the URL is escaped again and again",
}


class Settings:
    """The settings in force, and the lines of `config.toml` that they stand on."""

    def __init__(self, config: Config) -> None:
        self.config = config

    @cached_property
    def _lines(self) -> dict[str, str]:
        lines = {}
        for number, line in enumerate(to_toml(self.config).splitlines(), 1):
            key, equals, _ = line.partition(" = ")
            if equals and not line.startswith("#"):
                lines[key] = f"config.toml line {number}: {line}"
        return lines

    def line(self, key: str) -> str | None:
        """Return where a setting stands, and as what."""
        return self._lines.get(key)


ADDED = Ruling("scope", True, OK, "added as a seed")


def scope_ruling(url: str, scope: Scope, settings: Settings) -> Ruling:
    """Judge by the seeds' span, then by include and exclude."""
    verdict = scope.judge(url)
    key = verdict.rule.partition("=")[0].partition("[")[0].partition(":")[0]
    return Ruling("scope", verdict.accepted, verdict.refusal or OK, verdict.rule, settings.line(key))


def trap_ruling(url: str, is_seed: bool, settings: Settings) -> Ruling:
    """Judge by the rules against traps that a URL alone tells."""
    if is_seed:
        return Ruling("trap", True, OK, "seeds are exempt")
    refusal = Traps.of(settings.config).judge(url)
    if refusal is None:
        return Ruling("trap", True, OK, "no rule matches")
    key = _TRAP_SETTINGS.get(refusal, "")
    return Ruling("trap", False, refusal, _TRAPS[refusal], settings.line(key))


def depth_ruling(depth: int | None, settings: Settings) -> Ruling:
    """Judge by the distance from the seeds, None if no way is known."""
    most = settings.config.max_depth
    line = settings.line("max_depth")
    if most is None:
        return Ruling("depth", True, OK, "no limit" if depth is None else f"depth {depth}, no limit", line)
    if depth is None:
        return Ruling("depth", True, UNKNOWN, f"no way to it is known; at most {most}", line)
    passed = depth <= most
    return Ruling("depth", passed, OK if passed else Refusal.DEPTH, f"depth {depth}, at most {most}", line)


def robots_standing(url: str, looking: Looking, config: Config) -> RobotsStanding:
    """Judge by the robots.txt that is stored for the URL's origin."""
    origin = origin_of(url)
    record = looking.origin(origin)
    if not config.robots:
        record = OriginRecord(origin)
    rules = rules_of(record, config.product_token())
    verdict = rules.judge(url) if record.state is RobotsState.RULES else None
    is_kept_away = politeness.is_too_long(rules.crawl_delay_s, config.max_crawl_delay)
    is_known = record.state is not RobotsState.UNKNOWN
    allowed = verdict.allowed and not is_kept_away if verdict else record.state is RobotsState.ALLOW
    return RobotsStanding(
        origin=origin,
        state=record.state.name.lower() if config.robots else "ignored",
        allowed=True if not config.robots else allowed if is_known else None,
        line=None if verdict is None else verdict.line,
        rule=None if verdict is None else verdict.text,
        group=rules.group,
        crawl_delay_s=rules.crawl_delay_s,
        digest=f"sha256:{hashlib.sha256(record.body).hexdigest()}" if verdict is not None else None,
        expires_at=record.expires_s if is_known else None,
    )


def robots_ruling(robots: RobotsStanding, settings: Settings) -> Ruling:
    """Say what robots.txt comes to."""
    line = settings.line("robots")
    if robots.state == "ignored":
        return Ruling("robots", True, OK, "robots.txt is not asked", line)
    if robots.allowed is None:
        return Ruling("robots", True, UNKNOWN, "robots.txt was not fetched yet", line)
    matched = "no rule matches" if robots.line is None else f"line {robots.line}: {robots.rule}"
    if politeness.is_too_long(robots.crawl_delay_s, settings.config.max_crawl_delay):
        asked = f"Crawl-delay: {robots.crawl_delay_s:g}"
        return Ruling("robots", False, Reason.ROBOTS_DELAY, asked, settings.line("max_crawl_delay"))
    if robots.allowed:
        return Ruling("robots", True, OK, "there is no robots.txt" if robots.state == "allow" else matched, line)
    reasons = {
        "rules": Reason.ROBOTS_DISALLOW,
        "unreachable": Reason.ROBOTS_UNREACHABLE,
        "no_host": Reason.HOST_UNREACHABLE,
        "refused": Reason.ADDRESS,
        "no_proxy": Reason.PROXY,
    }
    told = matched if robots.state == "rules" else "robots.txt could not be had"
    return Ruling("robots", False, reasons[robots.state], told, line)


def budget_ruling(budget: BudgetStanding, is_known: bool, settings: Settings) -> Ruling:
    """Say whether one more URL of this shape would be paid."""
    line = settings.line("template_budget")
    if not budget.limit:
        return Ruling("budget", True, OK, "no limit", line)
    told = (
        f"{budget.template}: credit {budget.credit}, drawn {budget.drawn} of {budget.limit}; the host can spare {budget.spare}"
    )
    passed = budget.pays or is_known
    return Ruling("budget", passed, OK if passed else Refusal.TRAP_TEMPLATE, told, line)


def limit_rulings(host: HostRecord | None, looking: Looking, settings: Settings) -> Iterator[Ruling]:
    """Judge by the limits on pages, where there are any: they end a crawl, or leave a host's URLs queued."""
    config = settings.config
    if config.max_pages is not None:
        yield pages_ruling(looking.counters.pages, config.max_pages, settings)
    if config.max_pages_per_host is not None:
        pages = 0 if host is None else host.pages
        yield _limit("max_pages_per_host", pages, config.max_pages_per_host, "limit.host", settings)


def pages_ruling(pages: int, most: int, settings: Settings) -> Ruling:
    """Judge by the limit on the pages of the whole crawl, which has so many."""
    return _limit("max_pages", pages, most, "limit.pages", settings)


def _limit(key: str, pages: int, most: int, code: str, settings: Settings) -> Ruling:
    passed = pages < most
    return Ruling(key, passed, OK if passed else code, f"{pages} pages of {most}", settings.line(key))
