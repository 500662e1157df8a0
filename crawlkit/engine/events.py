"""What happens in a run, as values for who wants to know: `Hooks.on_event` is given each with its time.

`event` names each in logs. `host` is a name, `url` a normal form, times ending in `_s` are seconds.
"""

import msgspec

from crawlkit.model import Kind, Reason
from crawlkit.state.checkpoint import Action


class _Event(msgspec.Struct, frozen=True, tag_field="event"):
    """One thing that happened."""


class RunBegan(_Event, frozen=True, tag="run.began"):
    """A run starts its first fetch: the `run`-th of the crawl, with so many URLs `queued` and `seen`."""

    directory: str
    run: int
    queued: int
    seen: int


class Claimed(_Event, frozen=True, tag="claimed"):
    """A fetch starts, `what` being `page`, `robots` or `sitemap`; the `attempt`-th of its URL."""

    url: str
    host: str
    what: str
    attempt: int


class Settled(_Event, frozen=True, tag="settled"):
    """A URL has its record, which these are fields of; `message` are the library's own words, or the line of robots.txt."""

    url: str
    host: str
    kind: Kind
    status: int | None
    reason: Reason | None
    message: str | None
    depth: int
    bytes: int | None
    elapsed_ms: int | None
    attempts: int


class Retrying(_Event, frozen=True, tag="retrying"):
    """The `attempt`-th fetch of a URL failed, and there will be another: by its status, or the reason that it got no answer."""

    url: str
    host: str
    status: int | None
    reason: Reason | None
    message: str | None
    attempt: int


class RobotsRead(_Event, frozen=True, tag="robots.read"):
    """What holds for an origin until `expires_s`: `verdict` is `rules`, `allow`, or why all its URLs end."""

    origin: str
    host: str
    verdict: str
    expires_s: float


class SitemapRead(_Event, frozen=True, tag="sitemap.read"):
    """A sitemap of this `form` named so many `entries`."""

    url: str
    host: str
    form: str
    entries: int


class HostPaused(_Event, frozen=True, tag="host.paused"):
    """A host failed so often that its breaker opened, the `opens`-th time in a row; it is left alone until `until_s`."""

    host: str
    opens: int
    until_s: float


class HostRecovered(_Event, frozen=True, tag="host.recovered"):
    """A host that was paused answers again."""

    host: str


class HostGivenUp(_Event, frozen=True, tag="host.given_up"):
    """A host was paused so often that its remaining URLs end as failures."""

    host: str


class Ordered(_Event, frozen=True, tag="steered"):
    """People changed the crawl while it ran: paused it, let it go on, held, released or dropped a host, added seeds."""

    action: Action
    what: str | None


Event = RunBegan | Claimed | Settled | Retrying | RobotsRead | SitemapRead | HostPaused | HostRecovered | HostGivenUp | Ordered
