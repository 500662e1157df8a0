"""The README names every command, every option and setting, every exit status and every code a user may meet."""

import re
from pathlib import Path

import click
import pytest

from crawlkit.config import SETTINGS, ValueKind, read_value
from crawlkit.engine.explain.answer import Fate
from crawlkit.errors import ExitStatus
from crawlkit.model import OrderReason, Reason, Refusal
from crawlkit.policy.url_steps import NoUrl, UrlStep
from crawlkit.surfaces.cli import cli
from crawlkit.surfaces.help_sections import SECTIONS
from crawlkit.surfaces.lines import TimedLine
from crawlkit.surfaces.report import ReportFormat
from crawlkit.surfaces.status import Status

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


def test_every_setting_has_one_section_of_the_help() -> None:
    places = [key for names in SECTIONS.values() for key in names]
    assert [key for key in SETTINGS if places.count(key) != 1] == []


@pytest.mark.parametrize("name", ["run", "resume", "config show"])
def test_the_help_lists_every_option_once_under_a_heading(name: str) -> None:
    command: click.Command = cli
    for word in name.split():
        assert isinstance(command, click.Group)
        command = command.commands[word]
    context = click.Context(command, info_name=name, help_option_names=["-h", "--help"], terminal_width=100)
    text = command.get_help(context)
    headings = re.findall(r"^(\w+):$", text, re.MULTILINE)
    assert headings == [title for title in (*SECTIONS, "Other") if title in headings]
    first = [re.escape(option.opts[0]) for option in command.params if isinstance(option, click.Option)]
    assert [spelling for spelling in first if len(re.findall(rf"^  {spelling}(?![\w-])", text, re.MULTILINE)) != 1] == []
    assert re.findall(r"^  -.*", text.partition("\nOther:")[2], re.MULTILINE) == ["  -h, --help  Show this message and exit."]


def test_the_defaults_of_the_readme_are_those_of_the_program() -> None:
    rows = dict(re.findall(r"^\| `-[^|\n]*, `(\w+)` \|([^|\n]*)\|", README, re.MULTILINE))
    for key, setting in SETTINGS.items():
        told = rows[key].strip().strip("`")
        text = told or ("" if setting.repeatable or setting.kind is ValueKind.CONTACT else "none")
        assert key == "user_agent" or read_value(setting, text) == setting.default, key


def test_every_option_is_in_the_readme() -> None:
    assert [spellings for spellings in options() if not any(map(names, spellings))] == []


def test_every_exit_status_is_in_the_readme() -> None:
    assert [int(status) for status in ExitStatus if not names(str(int(status)))] == []


def test_every_code_of_a_report_is_in_the_readme() -> None:
    assert [code.value for code in (*Reason, *OrderReason) if not names(code)] == []


def test_every_code_of_an_explanation_is_in_the_readme() -> None:
    assert [code.value for code in (*Fate, *Refusal, *NoUrl, *UrlStep) if not names(code)] == []


def test_every_field_of_a_report_is_in_its_table() -> None:
    section = README.partition("\n## The report\n")[2].partition("\n##")[0]
    first_cells = re.findall(r"^\| (`[^|]+`) \|", section, re.MULTILINE)
    told = {name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)}
    assert told == set(TimedLine.__struct_fields__)


def test_every_figure_of_a_status_is_in_its_table() -> None:
    table = README.partition("\n| `status --json` | |\n")[2].partition("\n\n")[0]
    first_cells = re.findall(r"^\| (`[^|]+`) \|", table, re.MULTILINE)
    assert {name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)} == set(Status.__struct_fields__)


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


def test_the_table_at_the_top_leads_to_every_section_and_no_link_leads_nowhere() -> None:
    prose = re.sub(r"```.*?```", "", README, flags=re.DOTALL)
    anchors = [
        re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in re.findall(r"^###? (.+)$", prose, re.MULTILINE)
    ]
    assert len(anchors) == len(set(anchors))
    contents = re.findall(r"\]\(#([^)]+)\)", prose.partition("\n## ")[0])
    assert [anchor for anchor in anchors if anchor not in contents] == []
    assert [link for link in re.findall(r"\]\(#([^)]+)\)", prose) if link not in anchors] == []


def test_the_settings_stand_in_the_groups_of_the_help() -> None:
    _, _, table = README.partition("| option, key | default |")
    rows = re.findall(r"^\| (?:\*\*(\w+)\*\*|`-[^|]*, `(\w+)`) \|", table.partition("\n\n")[0], re.MULTILINE)
    groups = [(title, [name for name in names if name in SETTINGS]) for title, names in SECTIONS.items()]
    expected = [row for title, names in groups if names for row in [(title, ""), *(("", name) for name in names)]]
    assert rows == expected


def test_every_reason_has_a_remedy_in_the_readme() -> None:
    section = README.partition("\n### Reasons and remedies\n")[2].partition("\n#")[0]
    rows = re.findall(r"^\| (`[^|]+`) \| [^|]+ \| [^|]+ \|$", section, re.MULTILINE)
    with_remedy = {code for row in rows for code in re.findall(r"`([\w.]+)`", row)}
    assert [reason.value for reason in Reason if reason not in with_remedy] == []
