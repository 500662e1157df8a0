"""`--otel`: a span of OpenTelemetry for each request, by the SDK that the user brings and configures.

Names are those of the semantic conventions for HTTP clients where these have one, so that tools know them. A span is made when
its request has ended, with the times at which it started and ended.
"""

from http import HTTPStatus

from opentelemetry.trace import ProxyTracerProvider, SpanKind, Status, StatusCode, Tracer, get_tracer, get_tracer_provider
from opentelemetry.util.types import AttributeValue

from crawlkit.engine.watcher import Received, job_name, received
from crawlkit.model import Fetched, Record
from crawlkit.net.request import Origin


def open_tracer() -> Tracer | None:
    """Return the tracer to use, None where no SDK is configured that would do anything with spans."""
    return None if isinstance(get_tracer_provider(), ProxyTracerProvider) else get_tracer("crawlkit")


class Spans:
    """Makes spans by one tracer."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def fetched(self, fetched: Fetched) -> None:
        """Make a span of a request that has ended."""
        came = received(fetched)
        if came is None:
            return
        times = _nanoseconds(fetched.started_s), _nanoseconds(fetched.ended_s)
        span = self._tracer.start_span("GET", kind=SpanKind.CLIENT, start_time=times[0], attributes=_attributes(fetched, came))
        if came.failure is not None or _is_error(came):
            span.set_status(Status(StatusCode.ERROR))
        span.end(times[1])

    def settled(self, record: Record) -> None:
        """Make nothing of a record: its requests have their spans."""

    def written(self, at_s: float, took_s: float) -> None:
        """Make nothing of a checkpoint."""


def _attributes(fetched: Fetched, came: Received) -> dict[str, AttributeValue]:
    origin = Origin.of(fetched.job.url)
    attributes: dict[str, AttributeValue] = {
        "http.request.method": "GET",
        "url.full": fetched.job.url,
        "server.address": origin.host,
        "server.port": origin.port,
        "crawlkit.job": job_name(fetched.job).value,
        "crawlkit.attempts": fetched.job.attempts + 1,
    }
    if came.failure is not None:
        attributes |= {"error.type": came.failure.value, "crawlkit.reason": came.failure.value}
    if came.status is not None:
        attributes |= {"http.response.status_code": came.status, "crawlkit.body_bytes": came.body_bytes}
        if _is_error(came):
            attributes["error.type"] = str(came.status)
    if fetched.job.attempts:
        attributes["http.request.resend_count"] = fetched.job.attempts
    return attributes


def _is_error(came: Received) -> bool:
    return came.status is not None and came.status >= HTTPStatus.BAD_REQUEST


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e6) * 1_000  # finer than that a reading in seconds since the epoch is not
