"""What is told of one URL: values only, their codes stable. `explain --json` prints an `Explanation` as it is."""

from enum import StrEnum

import msgspec

from crawlkit.model import Kind, Reason, Refusal
from crawlkit.policy.url_steps import NoUrl, Step


class Fate(StrEnum):
    """What became of a URL, where no `Reason` and no `Refusal` says it."""

    PAGE = "done.page"
    REDIRECT = "done.redirect"
    ROBOTS_FILE = "done.robots"  # asked for as a robots.txt, and not as a page
    SITEMAP = "done.sitemap"  # met as a sitemap, and not as a page
    QUEUED = "pending.queued"
    IN_FLIGHT = "pending.in_flight"
    RETRY = "pending.retry"  # a fetch failed, and another one waits for its time
    LINKS = "pending.links"  # a page that links to it has links that are still to be walked
    NEVER_LINKED = "never.linked"
    NOT_FOUND = "never.found"  # no link to it among the records that were searched
    UNEXPLAINED = "unexplained"  # a page links to it, and nothing tells why it was not admitted


Code = Fate | Reason | Refusal | NoUrl


def code_of(text: str) -> Code:
    """Return the code that an explanation names; ValueError if there is none like it."""
    kinds: tuple[type[Fate] | type[Reason] | type[Refusal] | type[NoUrl], ...] = (Fate, Reason, Refusal, NoUrl)
    known: dict[str, Code] = {code.value: code for kind in kinds for code in kind}
    if text not in known:
        raise ValueError(text)
    return known[text]


class Standing(StrEnum):
    """Where a URL stands."""

    NO_URL = "no_url"
    UNSEEN = "unseen"
    REFUSED = "refused"
    QUEUED = "queued"
    IN_FLIGHT = "in_flight"
    WAITING = "waiting"
    SETTLED = "settled"


class Ruling(msgspec.Struct, frozen=True):
    """What one rule says of the URL, by the settings in force.

    `rule` is `scope`, `trap`, `depth`, `robots`, `budget`, `max_pages` or `max_pages_per_host`; `code` what it comes to (a code
    of `Refusal` or `Reason` where it keeps the URL out, `ok` or `unknown` else); `detail` the line, pattern or number that
    decided; `setting` the line of `config.toml` that it rests on, None where there is none.
    """

    rule: str
    passed: bool
    code: str
    detail: str
    setting: str | None = None


class PathStep(msgspec.Struct, frozen=True):
    """A URL on the way; `how` it is reached from the one before: `seed`, `sitemap`, `link`, `canonical` or `redirect`.

    The last step to a URL that was not admitted may be `nofollow` too.
    """

    url: str
    how: str


class Path(msgspec.Struct, frozen=True):
    """A way from a seed to the URL, admitted or not. `shortest`: none is shorter; `complete`: it begins at a seed."""

    steps: tuple[PathStep, ...]
    shortest: bool
    complete: bool


class Linker(msgspec.Struct, frozen=True):
    """A record that leads to the URL: `how` as in `PathStep`; `depth` is its own."""

    url: str
    how: str
    depth: int


class Linkers(msgspec.Struct, frozen=True):
    """The first records that lead to the URL, among so many that were searched; `complete` if those were all."""

    found: tuple[Linker, ...]
    searched: int
    complete: bool


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What the URL's record says; the fields are those of the report."""

    kind: Kind
    status: int | None
    reason: Reason | None
    detail: str | None
    message: str | None
    redirect_to: str | None
    canonical: str | None
    content_type: str | None
    bytes: int | None
    truncated: bool | None
    digest: str | None
    duplicate_of: str | None
    near_duplicate_of: str | None
    fetched_at: float | None
    elapsed_ms: int | None


class Attempts(msgspec.Struct, frozen=True):
    """How often it was fetched (`failed` of these without success), when it is due again, and the last reason known.

    Reasons of tries before the last one are kept by an archive only.
    """

    made: int
    failed: int
    due_at: float | None
    last_reason: Reason | None


class RobotsStanding(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the origin's robots.txt.

    `state` is `ignored` (by the settings), `unknown`, `rules`, `allow` (there is none), `unreachable`, `no_host`, `refused` or
    `no_proxy`. `line` and `rule` are what decided, None if no rule matches; `group` is what the group is named by.
    """

    origin: str
    state: str
    allowed: bool | None
    line: int | None
    rule: str | None
    group: str | None
    crawl_delay_s: float | None
    digest: str | None
    expires_at: float | None


class HostStanding(msgspec.Struct, frozen=True, kw_only=True):
    """How the URL's host stands.

    `next_start` is when it may be asked next (seconds since the epoch). `breaker` is `closed`, `open` (until `hold_until`),
    `half_open` or `given_up`; `slowdown` the factor by which its gap is stretched since it complained. People have it
    `held` until they release it, or `dropped`.
    """

    name: str
    queued: int
    waiting: int
    in_flight: int
    pages: int
    gap_s: float
    crawl_delay_s: float
    next_start: float | None
    hold_until: float | None
    breaker: str
    strikes: int
    slowdown: float
    held: bool
    dropped: bool


class BudgetStanding(msgspec.Struct, frozen=True, kw_only=True):
    """How the template budget stands for URLs of this shape: credit, what was drawn of the host's, what that can spare.

    `held` counts pages of the host whose links wait. `pays` says whether one more URL would be paid.
    """

    template: str
    limit: int
    credit: int
    drawn: int
    pages: int
    spare: int
    held: int
    pays: bool


class ArchivePlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where an exchange lies: `length` is that of its response (or revisit) record; `role` as in the archive."""

    file: str
    offset: int
    length: int
    role: str
    status: int
    fetched_at: float


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on one URL. Times are seconds since the epoch.

    `code` is the one answer: a code of `Fate`, `Reason`, `Refusal` or `NoUrl`. `summary` says it in a sentence, `remedy` how to
    have it otherwise, None where there is nothing to change. What is not known, or does not apply, is None or empty.
    """

    typed: str
    url: str | None
    code: str
    standing: Standing
    summary: str
    remedy: str | None
    steps: tuple[Step, ...] = ()
    depth: int | None = None
    hops: int | None = None
    sources: tuple[str, ...] = ()
    rules: tuple[Ruling, ...] = ()
    path: Path | None = None
    linked_from: Linkers | None = None
    record: Outcome | None = None
    attempts: Attempts | None = None
    robots: RobotsStanding | None = None
    host: HostStanding | None = None
    budget: BudgetStanding | None = None
    archive: tuple[ArchivePlace, ...] = ()
