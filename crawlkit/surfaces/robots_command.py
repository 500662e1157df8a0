"""`crawlkit robots`: what a robots.txt says for a URL and an agent, which line decided, and the delay in force."""

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, assert_never

import click
import msgspec

from crawlkit.config import Config, ValueKind, format_value, product_token_of
from crawlkit.engine.network import UNVERIFIED
from crawlkit.engine.robots_lookup import look_up_robots
from crawlkit.engine.runner import run_async
from crawlkit.errors import ExitStatus, UsageError
from crawlkit.model import FetchFailure, Reason, Response
from crawlkit.policy import politeness
from crawlkit.policy.robots import MAX_ROBOTS_REDIRECTS, Access, Rules, access_of, parse
from crawlkit.policy.urls import parse_seed
from crawlkit.sentences import SENTENCES
from crawlkit.surfaces.options import config_file_option, given, options_of
from crawlkit.surfaces.settings import gather
from crawlkit.surfaces.speech import say

_SETTINGS = (
    "timeout",
    "delay",
    "max_crawl_delay",
    "user_agent",
    "contact",
    "resolve",
    "allow_private",
    "header",
    "auth",
    "proxy",
    "proxy_auth",
    "http2",
    "insecure",
)
"""The settings that decide how robots.txt is asked for and what follows from it."""


FOR_NOW = "disallowed for now"


class RobotsSaid(msgspec.Struct, frozen=True, kw_only=True):
    """What `robots --json` prints.

    `source` is where robots.txt was found in the end, `status` what it answered there (null for a local file), `reason` why
    there was no answer. `verdict` is `allowed`, `disallowed` or `disallowed for now`; `line` and `rule` are what decided, null
    where no rule matched; `group` is the user agent whose group holds. `delay_s` is the gap in force, null where a crawl would
    exclude the URL for its Crawl-delay.
    """

    url: str
    agent: str
    source: str
    status: int | None
    reason: Reason | None
    answer: str
    verdict: str
    line: int | None
    rule: str | None
    group: str | None
    crawl_delay_s: float | None
    delay_s: float | None


@click.command("robots")
@click.argument("url", metavar="URL")
@click.option("--agent", metavar="TEXT", help="Judge for this user agent. [default: the user agent in force]")
@click.option("--file", type=click.Path(path_type=Path), metavar="FILE", help="Read this file instead of the site's.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@config_file_option
@options_of(*_SETTINGS)
def robots_command(
    url: str, agent: str | None, file: Path | None, as_json: bool, config_file: Path | None, **params: Any
) -> int:
    """Say whether robots.txt allows URL, which line decided, and the delay in force.

    Ends with 0 if that could be said (allowed or not), 1 if robots.txt could not be had: then nothing is allowed for now.
    """
    config = gather(Path.cwd(), config_file, os.environ, given(params)).config
    token = config.product_token() if agent is None else product_token_of(agent.strip())
    if token is None:
        raise UsageError(f"--agent {agent}: expected a user agent that begins with its product token, as in ExampleBot/1.0")
    address = parse_seed(url, "URL")
    if config.insecure and file is None:
        say(f"crawlkit: {UNVERIFIED}")
    source, answer = _ask(address, config) if file is None else (click.format_filename(file), _read(file))
    rules = _rules(answer, token)
    said = _said(address, token, source, answer, rules, config)
    if file is not None:
        said = msgspec.structs.replace(said, status=None, answer="a local file, taken for the site's")
    click.echo(msgspec.json.encode(said).decode() if as_json else _as_text(said, config))
    return ExitStatus.PAGES_FAILED if rules is None else ExitStatus.DONE


def _ask(url: str, config: Config) -> tuple[str, Response | FetchFailure]:
    return run_async(look_up_robots(url, config, os.environ))


def _said(
    url: str, agent: str, source: str, answer: Response | FetchFailure, rules: Rules | None, config: Config
) -> RobotsSaid:
    verdict = None if rules is None else rules.judge(url)
    asked_s = None if rules is None else rules.crawl_delay_s
    is_kept_away = politeness.is_too_long(asked_s, config.max_crawl_delay)
    return RobotsSaid(
        url=url,
        agent=agent,
        source=source,
        status=answer.status if isinstance(answer, Response) else None,
        reason=answer.reason if isinstance(answer, FetchFailure) else None,
        answer=_meaning(answer),
        verdict=FOR_NOW if verdict is None else "allowed" if verdict.allowed else "disallowed",
        line=None if verdict is None else verdict.line,
        rule=None if verdict is None else verdict.text,
        group=None if rules is None else rules.group,
        crawl_delay_s=asked_s,
        delay_s=None if is_kept_away else politeness.gap_s(config.delay, asked_s or 0.0),
    )


def _as_text(said: RobotsSaid, config: Config) -> str:
    lines = [f"url: {said.url}", f"agent: {said.agent}", f"robots.txt: {said.source}", f"answer: {said.answer}"]
    lines.append(f"verdict: {said.verdict}")
    if said.verdict != FOR_NOW:
        lines.append("line: none matches" if said.rule is None else f"line: {said.line}: {_printable(said.rule)}")
        lines.append(f"group: {said.group or 'none'}")
    lines.append(f"crawl-delay: {'none' if said.crawl_delay_s is None else _duration(said.crawl_delay_s)}")
    if said.delay_s is None:
        most = _duration(config.max_crawl_delay)
        told = f"none: above the accepted {most}, so a crawl excludes the URLs of this origin ({Reason.ROBOTS_DELAY})"
    else:
        told = _duration(said.delay_s)
    return "\n".join([*lines, f"delay in force: {told}"])


def _read(file: Path) -> Response:
    try:
        return Response(200, (), file.read_bytes())
    except OSError as error:
        raise UsageError(f"--file {click.format_filename(file)}: cannot be read: {error.strerror}") from error


def _rules(answer: Response | FetchFailure, token: str) -> Rules | None:
    """Return the rules that hold by `answer`, None where nothing is allowed for now."""
    access = access_of(answer)
    match access:
        case Access.RULES:
            assert isinstance(answer, Response)
            return parse(answer.body, token)
        case Access.ALLOW:
            return parse(b"", token)
        case Access.DEFER | Access.UNREACHABLE:
            return None
        case _:
            assert_never(access)


_MEANINGS: Mapping[Access, str] = MappingProxyType(
    {
        Access.RULES: "the file decides",
        Access.ALLOW: "there is no file, so all is allowed",
        Access.DEFER: "too many requests; nothing is allowed until a later try succeeds",
        Access.UNREACHABLE: "the server failed; nothing is allowed until a later try succeeds",
    }
)


def _meaning(answer: Response | FetchFailure) -> str:
    """Return what a robots.txt's answer means, by its class (RFC 9309 section 2.3.1)."""
    if isinstance(answer, FetchFailure):
        return f"{answer.reason}: {SENTENCES[answer.reason]} Nothing is allowed until a later try succeeds"
    status, access = answer.status, access_of(answer)
    if 300 <= status < 400:
        return f"{status}: redirected to nowhere, or more than {MAX_ROBOTS_REDIRECTS} times, so all is allowed"
    if status < 300 and access is Access.UNREACHABLE:
        return f"{status}: only a part of the file arrived; nothing is allowed until a later try succeeds"
    return f"{status}: {_MEANINGS[access]}"


def _printable(text: str) -> str:
    """Return what a site wrote without what would steer a terminal."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def _duration(duration_s: float) -> str:
    return format_value(ValueKind.DURATION, duration_s)
