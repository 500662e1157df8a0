"""`crawlkit robots`: what a robots.txt says for a URL and an agent, which line decided, and the delay in force."""

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, assert_never

import click

from crawlkit.config import Config, ValueKind, format_value, product_token_of
from crawlkit.engine.robots_lookup import look_up_robots
from crawlkit.engine.runner import run_async
from crawlkit.errors import ExitStatus, UsageError
from crawlkit.model import SENTENCES, FetchFailure, Reason, Response
from crawlkit.policy import politeness
from crawlkit.policy.robots import MAX_ROBOTS_REDIRECTS, Access, Rules, access_of, parse
from crawlkit.policy.urls import parse_seed
from crawlkit.surfaces.options import config_file_option, given, options_of
from crawlkit.surfaces.settings import gather

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
    "insecure",
)
"""The settings that decide how robots.txt is asked for and what follows from it."""


@click.command("robots")
@click.argument("url", metavar="URL")
@click.option("--agent", metavar="TEXT", help="Judge for this user agent. [default: the user agent in force]")
@click.option("--file", type=click.Path(path_type=Path), metavar="FILE", help="Read this file instead of the site's.")
@config_file_option
@options_of(*_SETTINGS)
def robots_command(url: str, agent: str | None, file: Path | None, config_file: Path | None, **params: Any) -> int:
    """Say whether robots.txt allows URL, which line decided, and the delay in force.

    Ends with 0 if that could be said (allowed or not), 1 if robots.txt could not be had: then nothing is allowed for now.
    """
    config = gather(Path.cwd(), config_file, os.environ, given(params)).config
    token = config.product_token() if agent is None else product_token_of(agent.strip())
    if token is None:
        raise UsageError(f"--agent {agent}: expected a user agent that begins with its product token, as in ExampleBot/1.0")
    address = parse_seed(url)
    if file is None:
        source, answer = run_async(look_up_robots(address, config, os.environ))
        meaning = _meaning(answer)
    else:
        source, answer = click.format_filename(file), Response(200, (), _read(file))
        meaning = "a local file, taken for the site's"
    rules = _rules(answer, token)
    lines = [f"url: {address}", f"agent: {token}", f"robots.txt: {source}", f"answer: {meaning}"]
    click.echo("\n".join([*lines, *_verdict(rules, address), *_delays(rules, config)]))
    return ExitStatus.PAGES_FAILED if rules is None else ExitStatus.DONE


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
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


def _verdict(rules: Rules | None, url: str) -> list[str]:
    if rules is None:
        return ["verdict: disallowed for now"]
    verdict = rules.judge(url)
    decided = "none matches" if verdict.text is None else f"{verdict.line}: {_printable(verdict.text)}"
    return [f"verdict: {'allowed' if verdict.allowed else 'disallowed'}", f"line: {decided}"]


def _printable(text: str) -> str:
    """Return what a site wrote without what would steer a terminal."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def _delays(rules: Rules | None, config: Config) -> list[str]:
    asked_s = None if rules is None else rules.crawl_delay_s
    told = "none" if asked_s is None else _duration(asked_s)
    if politeness.is_too_long(asked_s, config.max_crawl_delay):
        most = _duration(config.max_crawl_delay)
        in_force = f"none: above the accepted {most}, so a crawl excludes the URLs of this origin ({Reason.ROBOTS_DELAY})"
    else:
        in_force = _duration(politeness.gap_s(config.delay, asked_s or 0.0))
    return [f"crawl-delay: {told}", f"delay in force: {in_force}"]


def _duration(duration_s: float) -> str:
    return format_value(ValueKind.DURATION, duration_s)
