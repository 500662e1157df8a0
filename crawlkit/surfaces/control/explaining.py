"""The verdict on a URL, by whoever knows: the crawl that runs, its directory, or of a crawl in partitions its owner and others.

While partitions run, the owner of a URL that was admitted answers for it, as things are now; where the way to it passes through
others they are asked in turn. Why a URL was not admitted only all of them know together: copies of their checkpoints are read.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path as FilePath

import msgspec

from crawlkit.clock import SystemClock
from crawlkit.engine.explain.answer import Explanation, Outcome, Path, PathStep, Ruling, Standing, code_of
from crawlkit.engine.explain.explainer import Explainer
from crawlkit.engine.explain.rules import Settings, pages_ruling
from crawlkit.engine.explain.words import remedy_of, summary_of
from crawlkit.engine.partitions import Partitions
from crawlkit.policy.urls import host_of, normalise
from crawlkit.state.directory import is_held
from crawlkit.state.looking import look_at_crawl
from crawlkit.surfaces.control.client import NoAnswer, ask, look_at_partitions
from crawlkit.surfaces.control.messages import Do, Request

_ADMITTED = frozenset({Standing.QUEUED, Standing.IN_FLIGHT, Standing.WAITING, Standing.SETTLED})

_Ask = Callable[[str], Explanation]


def explained(directory: FilePath, url: str) -> Explanation:
    """Return the verdict of a crawl that is one, or of one partition; StateError and its kinds."""
    if is_held(directory):
        with contextlib.suppress(NoAnswer):
            said = ask_to_explain(directory, url.encode(errors="replace").decode())
            if said is not None:
                return said
    with look_at_crawl(directory) as looking:
        return Explainer(looking).explain(url, SystemClock().now())


def ask_to_explain(directory: FilePath, url: str) -> Explanation | None:
    """Return what the crawl that runs says of a URL, None if it explains none; NoAnswer, StateError and its kinds."""
    said = ask(directory, Request(do=Do.EXPLAIN, url=url)).explanation
    try:
        return None if said is None else msgspec.convert(said, Explanation)
    except msgspec.ValidationError as error:
        raise NoAnswer(f"the crawl in {directory} does not answer: {error}") from error


def explained_by_partitions(partitions: Partitions, url: str) -> Explanation:
    """Return the verdict of a crawl in partitions; StateError and its kinds."""
    members = partitions.members
    if is_held(partitions.directory) or any(map(is_held, members)):
        said = _by_owners(partitions, url)
        if said is not None:
            return said
    with look_at_partitions(partitions) as looking:
        return Explainer(looking).explain(url, SystemClock().now())


def _by_owners(partitions: Partitions, text: str) -> Explanation | None:
    """Return what the owner of a URL that was admitted says of it, with the whole way; None where it was not."""
    url = normalise(text)
    if url is None:
        return None

    def ask_owner(asked: str) -> Explanation:
        return explained(partitions.member_of(host_of(asked)), asked)

    said = msgspec.structs.replace(ask_owner(url), typed=text.encode(errors="replace").decode())
    if said.standing not in _ADMITTED or said.path is None:
        return None
    said = msgspec.structs.replace(
        said, path=_whole(said.path, said.depth, ask_owner), rules=_of_the_whole(said.rules, partitions)
    )
    code = code_of(said.code)
    remedy = remedy_of(code, said, partitions.directory, running=True)
    return msgspec.structs.replace(said, summary=summary_of(code, said), remedy=remedy)


def _of_the_whole(rulings: tuple[Ruling, ...], partitions: Partitions) -> tuple[Ruling, ...]:
    """Return rulings with that on the pages of the whole crawl, of which its owner knows its own only."""
    config = partitions.config()
    if config.max_pages is None:
        return rulings
    whole = pages_ruling(partitions.summary().counters.pages, config.max_pages, Settings(config))
    return tuple(whole if ruling.rule == whole.rule else ruling for ruling in rulings)


def _whole(path: Path, depth: int | None, ask_owner: _Ask) -> Path:
    """Return a way with its beginning, as far as the owners of what it begins with know that."""
    while not path.complete and path.steps:
        first, *rest = path.steps
        said = ask_owner(first.url)
        before = () if said.path is None else said.path.steps
        if not before or {step.url for step in before[:-1]} & {step.url for step in path.steps} or before == (first,):
            break
        joined = (*before, *_led_on(said.record, rest))
        path = Path(joined, shortest=False, complete=said.path is not None and said.path.complete)
    links = sum(step.how != "redirect" for step in path.steps[1:])
    return Path(path.steps, shortest=path.complete and links == depth, complete=path.complete)


def _led_on(record: Outcome | None, rest: list[PathStep]) -> list[PathStep]:
    """Return the rest of a way from the page with this record on: how that leads there only its owner knows."""
    if record is None or not rest:
        return rest
    ways = {record.redirect_to: "redirect", record.canonical: "canonical"}
    return [PathStep(rest[0].url, ways.get(rest[0].url, rest[0].how)), *rest[1:]]
