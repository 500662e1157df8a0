"""What else is known of a URL: its record, its tries, its host, its template's budget, its place in the archive."""

from crawlkit.archive.files import FOLDER, file_name
from crawlkit.config import Config
from crawlkit.engine.budget import may_draw, spare_at_first
from crawlkit.engine.explain.answer import ArchivePlace, Attempts, BudgetStanding, HostStanding, Outcome
from crawlkit.engine.turns import earliest_start_s, gap_in_force_s
from crawlkit.model import Record, Source
from crawlkit.policy.novelty import template_of
from crawlkit.sentences import detail_of
from crawlkit.state.hosts import HostRecord
from crawlkit.state.looking import Looking, WaitingRow
from crawlkit.state.templates import AccountRecord


def sources_of(bits: int) -> tuple[str, ...]:
    """Return the names of sources."""
    return tuple(str(source.name).lower() for source in (Source.SEED, Source.SITEMAP, Source.LINK) if bits & source)


def outcome_of(record: Record) -> Outcome:
    """Return what is told of a record as reported."""
    return Outcome(
        kind=record.kind,
        status=record.status,
        reason=record.reason,
        detail=detail_of(record.reason, record.rendering),
        message=record.message,
        redirect_to=record.redirect_to,
        canonical=record.canonical,
        content_type=record.content_type,
        bytes=record.body_bytes,
        truncated=record.truncated,
        digest=record.digest,
        duplicate_of=record.duplicate_of,
        near_duplicate_of=record.near_duplicate_of,
        fetched_at=record.fetched_at,
        elapsed_ms=record.elapsed_ms,
    )


def attempts_of(record: Record | None, waiting: WaitingRow | None) -> Attempts | None:
    """Return how often a URL was tried: of one that waits, only how often that failed is known."""
    if record is not None:
        failed = record.attempts - 1 if record.attempts and record.reason is None else record.attempts
        return Attempts(record.attempts, failed, None, record.reason)
    if waiting is not None:
        return Attempts(waiting.row.attempts, waiting.row.attempts, waiting.due_s, waiting.row.reason)
    return None


def host_standing(host: HostRecord, looking: Looking, config: Config, now: float) -> HostStanding:
    """Return how a host stands at `now`; of a crawl that is not running, as if it were resumed then."""
    health = host.health
    return HostStanding(
        name=host.name,
        queued=host.queued,
        waiting=host.timed,
        in_flight=looking.in_flight(host.name),
        pages=host.pages,
        gap_s=gap_in_force_s(host, config),
        crawl_delay_s=host.crawl_delay_s,
        next_start=_next_start(host, looking, config, now),
        hold_until=host.hold_until_s if host.hold_until_s > now else None,
        breaker=_breaker(host, now),
        strikes=health.strikes,
        slowdown=health.slowdown,
        held=host.held,
        dropped=host.dropped,
    )


def _next_start(host: HostRecord, looking: Looking, config: Config, now: float) -> float | None:
    if host.is_over or host.held:
        return None
    return max(now, earliest_start_s(host, config, _quiet_from_s(looking, now), now))


def _quiet_from_s(looking: Looking, now: float) -> float | None:
    """Return from when on every host waits a full gap: a resume after an unclean end begins with one."""
    last = looking.runs[-1] if looking.runs else None
    if last is None:
        return None
    return now if last.ended_s is None and not looking.running else last.quiet_from_s


def _breaker(host: HostRecord, now: float) -> str:
    if host.health.given_up:
        return "given_up"
    if not host.health.opens:
        return "closed"
    return "open" if host.hold_until_s > now else "half_open"


def budget_standing(url: str, host: str, looking: Looking, config: Config) -> BudgetStanding:
    """Return how the template budget stands for URLs of the shape of `url`."""
    most = config.template_budget
    name = template_of(url)
    template = looking.account(name) or AccountRecord()
    shared = looking.account(host) or AccountRecord(credit=spare_at_first(most))
    return BudgetStanding(
        template=name,
        limit=most,
        credit=template.credit,
        drawn=template.drawn,
        pages=template.pages,
        spare=shared.credit,
        held=shared.held,
        pays=not most or template.credit > 0 or may_draw(template.drawn, shared.credit, most),
    )


def archive_places(url: str, looking: Looking) -> tuple[ArchivePlace, ...]:
    """Return where the URL's exchanges lie, in the order of the archive, as of the last checkpoint."""
    return tuple(
        ArchivePlace(
            file=f"{archive.folder}{FOLDER}/{file_name(archive.crawl_id, extent.file)}",
            offset=extent.offset,
            length=extent.lengths[0],
            role=extent.role.name.lower(),
            status=extent.status,
            fetched_at=extent.started_s,
        )
        for archive in looking.archives
        for extent in archive.extents.of_url(url)
    )
