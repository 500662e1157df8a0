"""What `crawlkit` offers: these names, documented and typed, and nothing that changes unnoticed."""

import inspect
from pathlib import Path

import pytest

import crawlkit
from crawlkit.config import SETTINGS

PACKAGE = Path(crawlkit.__file__).parent
FUNCTIONS = {
    "crawl": "(seeds, dir=None, config=None, *, on_page=None)",
    "crawl_async": "(seeds, dir=None, config=None, *, on_page=None)",
    "resume": "(dir, *, changes=None, on_page=None)",
    "resume_async": "(dir, *, changes=None, on_page=None)",
    "report": "(dir)",
}


def test_the_public_names_are_these() -> None:
    assert crawlkit.__all__ == [
        "Config",
        "CrawlCancelled",
        "CrawlError",
        "CrawlResult",
        "Kind",
        "PageFailed",
        "PageTimedOut",
        "Record",
        "crawl",
        "crawl_async",
        "report",
        "resume",
        "resume_async",
    ]


def test_every_public_name_is_there_and_documented() -> None:
    assert [name for name in crawlkit.__all__ if not (getattr(crawlkit, name).__doc__ or "").strip()] == []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_functions_take_these_arguments_and_are_typed(name: str) -> None:
    signature = inspect.signature(getattr(crawlkit, name))
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    assert str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty)) == FUNCTIONS[name]
    assert inspect.Parameter.empty not in [parameter.annotation for parameter in signature.parameters.values()]
    assert signature.return_annotation is not inspect.Signature.empty


def test_the_async_twins_are_coroutine_functions() -> None:
    assert {name for name in FUNCTIONS if inspect.iscoroutinefunction(getattr(crawlkit, name))} == {
        "crawl_async",
        "resume_async",
    }


def test_config_takes_every_setting_by_name_only() -> None:
    parameters = inspect.signature(crawlkit.Config).parameters
    assert list(parameters) == list(SETTINGS)
    assert {parameter.kind for parameter in parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}


def test_a_record_has_the_fields_of_the_report() -> None:
    fields = set(crawlkit.Record.__struct_fields__)
    assert {"url", "kind", "status", "depth", "title", "digest", "links", "redirect_to", "canonical", "reason"} <= fields


def test_the_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").exists()


def test_errors_have_the_exit_status_of_the_contract() -> None:
    assert (crawlkit.CrawlError.exit_status, crawlkit.CrawlCancelled.exit_status) == (1, 130)
    assert issubclass(crawlkit.PageTimedOut, TimeoutError)
    assert issubclass(crawlkit.PageTimedOut, crawlkit.PageFailed)
