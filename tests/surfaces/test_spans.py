"""`--otel`: a span of each request, as the SDK that the user configured gets it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from crawlkit.config import Config
from crawlkit.engine.runner import run_async
from crawlkit.engine.session import Hooks, Surroundings, begin
from crawlkit.model import Facts, Fetched, Found, PageJob
from crawlkit.surfaces.spans import Spans
from crawlkit.testing.fakeweb import FakeWeb
from crawlkit.testing.server import SiteServer
from crawlkit.testing.site import Fault, Reply, Site, page
from tests.processes import checked, environment
from tests.surfaces.conftest import Cli

SITE = Site({"/": page("Home", ["/gone", "/broken"]), "/broken": Reply(fault=Fault.RESET)})

PROGRAM = """
import json, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
from crawlkit.surfaces.cli import run_cli
status = run_cli(sys.argv[1:])
print(json.dumps([dict(span.attributes) for span in exporter.get_finished_spans()]))
sys.exit(status)
"""


class Tracing:
    """An SDK that keeps spans in memory."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.spans = Spans(provider.get_tracer("test"))

    def made(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())


def test_each_request_of_a_crawl_has_its_span(tmp_path: Path) -> None:
    tracing = Tracing()
    hooks = Hooks(watchers=(tracing.spans,))
    config = Config(delay=0, retries=0)
    outcome = run_async(begin(["http://a.test/"], tmp_path / "x", config, hooks, Surroundings(transport=FakeWeb(SITE))))

    made = tracing.made()
    assert len(made) == outcome.counters.requests == 4
    assert {(span.name, span.kind, span.parent) for span in made} == {("GET", SpanKind.CLIENT, None)}
    found = {str(_attributes(span)["url.full"])[13:]: span for span in made}
    assert _attributes(found["/"]) == {
        "http.request.method": "GET",
        "url.full": "http://a.test/",
        "server.address": "a.test",
        "server.port": 80,
        "crawlkit.job": "page",
        "crawlkit.attempts": 1,
        "http.response.status_code": 200,
        "crawlkit.body_bytes": len(page("Home", ["/gone", "/broken"]).body),
    }
    assert found["/"].status.status_code is StatusCode.UNSET
    assert _attributes(found["/robots.txt"])["crawlkit.job"] == "robots"
    gone, broken = found["/gone"], found["/broken"]
    assert (_attributes(gone)["error.type"], gone.status.status_code) == ("404", StatusCode.ERROR)
    assert "crawlkit.reason" not in _attributes(gone)
    assert (_attributes(broken)["error.type"], _attributes(broken)["crawlkit.reason"]) == ("net.reset", "net.reset")
    assert broken.status.status_code is StatusCode.ERROR
    assert "http.response.status_code" not in _attributes(broken)


def test_a_span_has_the_times_of_its_request_and_counts_attempts() -> None:
    tracing = Tracing()
    job = PageJob("https://b.test:8443/x", "b.test", attempts=2)
    tracing.spans.fetched(Fetched(job, 1_700_000_000.25, 1_700_000_001.5, Facts(200), not_modified=True))
    tracing.spans.fetched(Fetched(job, 1.0, 2.0, Found("192.0.2.1")))  # nothing was asked
    (span,) = tracing.made()
    assert (span.start_time, span.end_time) == (1_700_000_000_250_000_000, 1_700_000_001_500_000_000)
    attributes = _attributes(span)
    assert (attributes["crawlkit.attempts"], attributes["http.request.resend_count"]) == (3, 2)
    assert (attributes["server.address"], attributes["server.port"]) == ("b.test", 8443)
    assert attributes["http.response.status_code"] == 304


def test_the_command_line_uses_the_sdk_that_is_configured(tmp_path: Path) -> None:
    with SiteServer(SITE) as server:
        arguments = ["run", f"{server.url}/", "-d", "x.crawl", "--delay", "0", "--retries", "0", "--otel"]
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", PROGRAM, *arguments],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            timeout=60,
            check=False,
        )
    result = checked(done.returncode, done.stdout, done.stderr)
    assert result.status == 1  # some failed
    assert "--otel" not in result.err
    paths = sorted(span["url.full"].removeprefix(server.url) for span in json.loads(result.out))
    assert paths == ["/", "/broken", "/gone", "/robots.txt"]


def test_without_an_sdk_that_is_said_and_the_crawl_goes_on(cli: Cli) -> None:
    with SiteServer(Site({"/": page("A")})) as server:
        result = cli("run", f"{server.url}/", "-d", "x.crawl", "--delay", "0", "--otel")
    assert result.status == 0
    assert result.err.count("no SDK of OpenTelemetry is configured") == 1


def test_without_opentelemetry_it_is_status_2_and_names_the_extra(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)  # how Python marks what cannot be imported
    result = cli("run", "http://nobody.test/", "--otel")
    assert result.status == 2
    assert result.err == "crawlkit: --otel needs opentelemetry-api, which is not installed: pip install 'crawlkit[otel]'\n"
    assert list(tmp_path.iterdir()) == []


def _attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})
