"""The README names every command, every option and setting, every exit status and every code a user may meet."""

import re
from pathlib import Path

import click

from crawlkit.config import SETTINGS
from crawlkit.engine.explain.answer import Fate
from crawlkit.errors import ExitStatus
from crawlkit.model import OrderReason, Reason, Refusal
from crawlkit.policy.url_steps import NoUrl, UrlStep
from crawlkit.surfaces.cli import cli
from crawlkit.surfaces.report import ReportFormat

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
EXAMPLE = re.compile(r"^ *\$? *(?:scripts/)?crawlkit +(\S+)(.*)$", re.MULTILINE)


def commands() -> list[click.Command]:
    config = cli.commands["config"]
    assert isinstance(config, click.Group)
    return [*cli.commands.values(), *config.commands.values()]


def options() -> list[list[str]]:
    """Return the spellings of every option of every command, like `["-i", "--input"]`."""
    return [parameter.opts for command in commands() for parameter in command.params if isinstance(parameter, click.Option)]


def names(spelling: str) -> bool:
    """Return whether the README has `spelling` as a word of its own."""
    return re.search(rf"(?<![\w-]){re.escape(spelling)}(?![\w-])", README) is not None


def test_every_command_is_in_the_readme() -> None:
    assert [name for name in cli.commands if f"crawlkit {name}" not in README] == []


def test_every_settings_key_is_in_the_readme() -> None:
    def spellings(key: str) -> list[str]:
        option = key.replace("_", "-")
        return [key, f"--{option}", f"--no-{option}"]

    assert [key for key in SETTINGS if not any(map(names, spellings(key)))] == []


def test_every_option_is_in_the_readme() -> None:
    assert [spellings for spellings in options() if not any(map(names, spellings))] == []


def test_every_exit_status_is_in_the_readme() -> None:
    assert [int(status) for status in ExitStatus if not names(str(int(status)))] == []


def test_every_code_of_a_report_is_in_the_readme() -> None:
    assert [code.value for code in (*Reason, *OrderReason) if not names(code)] == []


def test_every_code_of_an_explanation_is_in_the_readme() -> None:
    assert [code.value for code in (*Fate, *Refusal, *NoUrl, *UrlStep) if not names(code)] == []


def test_every_format_of_the_report_is_in_the_readme() -> None:
    assert [format_.value for format_ in ReportFormat if not names(format_)] == []


def test_the_commands_of_the_readme_s_examples_exist() -> None:
    examples = [match for block in re.findall(r"```[a-z]*\n(.*?)```", README, re.DOTALL) for match in EXAMPLE.findall(block)]
    assert examples, "the README shows no command"
    assert {name for name, _ in examples if not name.startswith("-")} <= set(cli.commands)
    known = {"--help", "--version"} | {spelling for spellings in options() for spelling in spellings}
    known |= {spelling for command in commands() for p in command.params for spelling in p.secondary_opts}
    assert {word for _, rest in examples for word in re.findall(r"(?<!\S)--[a-z][a-z-]*", rest)} <= known


def test_the_readme_names_no_file_of_the_repository_that_is_not_there() -> None:
    named = set(re.findall(r"`((?:scripts|config|crawlkit|tests)/[\w./-]+)`", README))
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
