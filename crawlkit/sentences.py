"""What each reason is in words, for people."""

from collections.abc import Mapping
from types import MappingProxyType

from crawlkit.model import Reason
from crawlkit.rendering import Rendering

SENTENCES: Mapping[Reason, str] = MappingProxyType(
    {
        Reason.DNS: "The host name could not be resolved.",
        Reason.NAME_NOT_FOUND: "The host name does not exist.",
        Reason.CONNECT: "No connection could be made.",
        Reason.TLS: "The TLS handshake or the certificate failed.",
        Reason.RESET: "The connection broke before the answer was complete.",
        Reason.TIMEOUT: "The request took longer than the timeout.",
        Reason.PROTOCOL: "The answer was not valid HTTP.",
        Reason.ADDRESS: "The host resolves to a private address.",
        Reason.PROXY: "The proxy could not be reached, or refused the request.",
        Reason.CLIENT_ERROR: "The server answered with a status from 400 to 499.",
        Reason.TOO_MANY_REQUESTS: "The server answered 429, too many requests.",
        Reason.SERVER_ERROR: "The server answered with a status from 500 to 599.",
        Reason.OTHER_STATUS: "The server answered with a status outside of HTTP's range.",
        Reason.TOO_MANY_REDIRECTS: "More than ten redirects led here, and this one redirects on.",
        Reason.NO_LOCATION: "A redirect without a usable Location.",
        Reason.HOST_UNREACHABLE: "The host could not be reached for its robots.txt.",
        Reason.HOST_GIVEN_UP: "The host failed so often that it was given up.",
        Reason.HOST_DROPPED: "The host was dropped by whoever runs the crawl.",
        Reason.ROBOTS_DISALLOW: "robots.txt disallows this URL.",
        Reason.ROBOTS_UNREACHABLE: "robots.txt could not be had, so the URL counts as disallowed.",
        Reason.ROBOTS_DELAY: "robots.txt asks for a longer Crawl-delay than is accepted.",
        Reason.HOOK_FAILED: "A plugin failed on this URL.",
    }
)
"""The fixed sentence of each reason: what the report's `detail` says."""

RENDERINGS: Mapping[Rendering, str] = MappingProxyType(
    {
        Rendering.DONE: "Rendered.",
        Rendering.TIMEOUT: "Not rendered: its scripts did not let go of it in time.",
        Rendering.CRASHED: "Not rendered: the browser crashed on it.",
        Rendering.REFUSED: "Not rendered: the browser would not show it, or its scripts replaced it.",
    }
)
"""The same of what came of rendering a page."""


def detail_of(reason: Reason | None, rendering: Rendering | None) -> str | None:
    """Return the sentence of how a URL ended: why it failed, else what came of rendering it; None where neither is there."""
    if reason is not None:
        return SENTENCES[reason]
    return None if rendering is None else RENDERINGS[rendering]
