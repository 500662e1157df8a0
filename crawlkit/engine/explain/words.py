"""An explanation in words: what became of the URL, and how to have it otherwise."""

from pathlib import Path
from typing import assert_never

from crawlkit.engine.explain.answer import Attempts, Code, Explanation, Fate
from crawlkit.model import Kind, Reason, Refusal
from crawlkit.policy.url_steps import NoUrl
from crawlkit.sentences import SENTENCES
from crawlkit.shell import as_argument

_AGAIN = "start another crawl with"


def summary_of(code: Code, said: Explanation) -> str:
    """Return the verdict as one sentence, without a full stop."""
    match code:
        case NoUrl.INVALID:
            return "not a URL: it has to be absolute, like https://example.com/"
        case NoUrl.SCHEME:
            return "not an http or https URL, and no others are crawled"
        case Refusal():
            return f"not admitted: {_refusal_words(code, said)}"
        case Reason():
            return _reason_words(code, said)
        case Fate():
            return _fate_words(code, said)
        case _:
            assert_never(code)


def _refusal_words(code: Refusal, said: Explanation) -> str:
    if code is Refusal.NOFOLLOW:
        return "it is linked with nofollow only"
    if code is Refusal.HOOK:
        return "a plugin does not accept it"
    if code is Refusal.TRAP_TEMPLATE:
        return "the template budget refused it: too many URLs of its shape were met without news"
    if code is Refusal.TRAP_SITEMAP:
        return "a sitemap names it, which is nested too deep or names more than is taken"
    ruling = next(ruling for ruling in said.rules if ruling.code == code)
    return f"{ruling.detail} ({code})"


def _reason_words(code: Reason, said: Explanation) -> str:
    if said.record is None:
        return "not admitted: what redirects to it was itself reached by ten redirects"
    message = said.record.message
    if code is Reason.ROBOTS_DISALLOW and message:
        return f"excluded by robots.txt {message}"
    how = "excluded" if said.record.kind is Kind.EXCLUDED else "failed"
    return f"{how}: {SENTENCES[code].rstrip('.')}{f' ({message})' if message else ''}"


_FATES = {
    Fate.ROBOTS_FILE: "not a page: it was asked for as a robots.txt",
    Fate.SITEMAP: "not a page: it was met as a sitemap",
    Fate.IN_FLIGHT: "in flight: it was asked for, and the answer is not here yet",
    Fate.LINKS: "not admitted yet: a page that links to it has links that are still to be walked",
    Fate.NEVER_LINKED: "never met: no page of this crawl links to it",
    Fate.UNEXPLAINED: "not admitted, though a page links to it and no rule forbids it",
}


def _fate_words(code: Fate, said: Explanation) -> str:
    match code:
        case Fate.PAGE | Fate.REDIRECT:
            return _done_words(said)
        case Fate.QUEUED:
            return f"queued: {_queued_words(said)}"
        case Fate.RETRY:
            return f"waiting to be tried again, {_tries_words(said.attempts)}"
        case Fate.NOT_FOUND:
            searched = said.linked_from.searched if said.linked_from else 0
            return f"never admitted, and none of the {searched:,} records searched links to it"
        case _:
            return _FATES[code]


def _tries_words(attempts: Attempts | None) -> str:
    failed = attempts.failed if attempts else 0
    reason = f", the last one for {attempts.last_reason}" if attempts and attempts.last_reason else ""
    return f"after {failed} failed {'try' if failed == 1 else 'tries'}{reason}"


def _done_words(said: Explanation) -> str:
    record = said.record
    if record is None:
        return "fetched"
    told = f"fetched: status {record.status}{', cut off' if record.truncated else ''}"
    if record.redirect_to is not None:
        return f"{told}, redirects to {record.redirect_to}"
    return f"{told}, the same bytes as {record.duplicate_of}" if record.duplicate_of else told


def _queued_words(said: Explanation) -> str:
    if said.host is not None and said.host.dropped:
        return "its host is dropped, so it ends as host.dropped when its turn comes"
    if said.host is not None and said.host.held:
        return "its host is held until it is released (crawlkit hosts DIR release HOST)"
    if said.host is not None and said.host.breaker == "given_up":
        return "its host is given up, so it ends as host.given_up when its turn comes"
    limit = next((ruling for ruling in said.rules if ruling.code in ("limit.pages", "limit.host")), None)
    return f"{limit.code} is reached ({limit.detail})" if limit else "it waits for its turn"


def remedy_of(code: Code, said: Explanation, directory: Path, *, running: bool) -> str | None:
    """Return how to have it otherwise, None where there is nothing to change."""
    match code:
        case NoUrl():
            return None
        case Refusal():
            return _refusal_remedy(code, said, as_argument(directory))
        case Reason():
            return _reason_remedy(code, said, as_argument(directory))
        case Fate():
            return _fate_remedy(code, said, as_argument(directory), running=running)
        case _:
            assert_never(code)


_REFUSAL_REMEDIES = {
    Refusal.SCOPE: "start another crawl with it as a seed, or with a wider --scope",
    Refusal.INCLUDE: "start another crawl with it as a seed, or with an --include that matches it",
    Refusal.EXCLUDE: "start another crawl with it as a seed, or without that --exclude",
    Refusal.HOOK: "start another crawl with it as a seed, or with another --plugin",
    Refusal.DEPTH: "crawlkit resume {directory} --set max_depth={depth}",
    Refusal.NOFOLLOW: "start another crawl with it as a seed",
    Refusal.TRAP_LENGTH: "start another crawl with it as a seed, or with --max-url-length {length}",
    Refusal.TRAP_PATH_REPEAT: "start another crawl with it as a seed, or with a greater --max-path-repeats",
    Refusal.TRAP_HOST_IN_PATH: "start another crawl with it as a seed",
    Refusal.TRAP_PARAM_REPEAT: "start another crawl with it as a seed, or with a greater --max-param-repeats",
    Refusal.TRAP_PARAM_COUNT: "start another crawl with it as a seed, or with a greater --max-params",
    Refusal.TRAP_ESCAPE: "start another crawl with it as a seed",
    Refusal.TRAP_TEMPLATE: "start another crawl with it as a seed, or with a greater --template-budget",
    Refusal.TRAP_SITEMAP: "start another crawl with it as a seed, or with a greater --max-sitemap-urls",
}


def _refusal_remedy(code: Refusal, said: Explanation, directory: str) -> str:
    remedy = _REFUSAL_REMEDIES[code].format(directory=directory, depth=said.depth, length=len(said.url or ""))
    return f"to crawl it: {remedy}"


def _reason_remedy(code: Reason, said: Explanation, directory: str) -> str:  # noqa: PLR0911  (one return a code)
    again = f"to try it again: crawlkit resume {directory} --retry-failed={code}"
    match code:
        case Reason.ROBOTS_DISALLOW | Reason.ROBOTS_UNREACHABLE:
            return f"to fetch it anyway, {_AGAIN} --no-robots"
        case Reason.ROBOTS_DELAY:
            asked = said.robots.crawl_delay_s if said.robots else None
            return f"to fetch it, {_AGAIN} --max-crawl-delay {'DURATION' if asked is None else f'{asked:g}s'}"
        case Reason.ADDRESS:
            return f"to fetch it, {_AGAIN} --allow-private for its network"
        case Reason.TOO_MANY_REDIRECTS:
            return f"to follow it, {_AGAIN} what it redirects to as a seed"
        case Reason.TLS:
            return f"{again}, when the server is mended; to fetch it as it is, {_AGAIN} --insecure"
        case Reason.TIMEOUT:
            return f"{again} --set timeout=DURATION"
        case Reason.HOOK_FAILED:
            return f"{again} --set plugin=FILE, when the plugin is mended"
        case Reason.PROXY:
            return f"{again} (--set proxy=URL names another)"
        case (
            Reason.DNS | Reason.NAME_NOT_FOUND | Reason.CONNECT | Reason.RESET | Reason.PROTOCOL | Reason.CLIENT_ERROR
            | Reason.TOO_MANY_REQUESTS | Reason.SERVER_ERROR | Reason.OTHER_STATUS | Reason.NO_LOCATION
            | Reason.HOST_UNREACHABLE | Reason.HOST_GIVEN_UP | Reason.HOST_DROPPED
        ):  # fmt: skip
            return again
        case _:
            assert_never(code)


def _fate_remedy(code: Fate, said: Explanation, directory: str, *, running: bool) -> str | None:
    resume = None if running else f"to go on: crawlkit resume {directory}"
    match code:
        case Fate.PAGE | Fate.REDIRECT | Fate.IN_FLIGHT:
            return None
        case Fate.ROBOTS_FILE | Fate.SITEMAP:
            return f"to crawl it as a page too: {_AGAIN} it as a seed"
        case Fate.QUEUED:
            limit = next((ruling.rule for ruling in said.rules if ruling.code in ("limit.pages", "limit.host")), None)
            return f"to go on: crawlkit resume {directory} --set {limit}=N" if limit else resume
        case Fate.RETRY | Fate.LINKS:
            return resume
        case Fate.NEVER_LINKED | Fate.NOT_FOUND:
            return f"to crawl it: {_AGAIN} it as a seed"
        case Fate.UNEXPLAINED:
            return f"to see whether the state is sound: crawlkit verify {directory}"
        case _:
            assert_never(code)
