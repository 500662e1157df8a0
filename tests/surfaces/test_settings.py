"""Where settings come from: the layers, what each is called, the options made from the table, `crawlkit config`."""

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from crawlkit.config import SETTINGS, Config, ScopeMode, ValueKind
from crawlkit.errors import ConfigError, UsageError
from crawlkit.surfaces.commands import HELP
from crawlkit.surfaces.config_command import config_group
from crawlkit.surfaces.options import given, parse_set, setting_options
from crawlkit.surfaces.settings import Settings, gather, read_file

PROFILES = Path(__file__).resolve().parent.parent.parent / "config"
PLACES = ("pyproject.toml", "crawlkit.toml", "--config", "CRAWLKIT_WORKERS", "option --workers")


def gathered(cwd: Path, environ: Mapping[str, str] | None = None, **options: object) -> Settings:
    return gather(cwd, None, environ or {}, options)


@pytest.mark.parametrize("highest", range(len(PLACES) + 1))
def test_later_layers_win_and_are_named(tmp_path: Path, highest: int) -> None:
    extra = tmp_path / "extra.toml"
    files = {
        tmp_path / "pyproject.toml": "[tool.crawlkit]\nworkers = 1\n",
        tmp_path / "crawlkit.toml": "workers = 2\n",
        extra: "workers = 3\n",
    }
    for path, text in list(files.items())[:highest]:
        path.write_text(text)
    settings = gather(
        tmp_path,
        extra if highest >= 3 else None,
        {"CRAWLKIT_WORKERS": "4", "HOME": "/"} if highest >= 4 else {"HOME": "/"},
        {"workers": "5"} if highest >= 5 else {},
    )
    assert settings.config.workers == (highest or 16)
    source = ("default", *PLACES)[highest]
    assert settings.sources["workers"] == (f"--config {extra}" if source == "--config" else source)
    assert settings.sources["timeout"] == "default"
    assert list(settings.sources) == list(SETTINGS)


def test_nothing_given_means_the_defaults(tmp_path: Path) -> None:
    assert gathered(tmp_path).config == Config()


def test_a_list_replaces_the_one_below(tmp_path: Path) -> None:
    (tmp_path / "crawlkit.toml").write_text('exclude = ["a", "b"]\n')
    assert gathered(tmp_path).config.exclude == ("a", "b")
    assert gathered(tmp_path, exclude=("c",)).config.exclude == ("c",)
    assert gathered(tmp_path, {"CRAWLKIT_EXCLUDE": "d\ne"}).config.exclude == ("d", "e")


def test_a_limit_set_below_can_be_lifted_above(tmp_path: Path) -> None:
    (tmp_path / "crawlkit.toml").write_text("max_pages = 3\n")
    settings = gathered(tmp_path, {"CRAWLKIT_MAX_PAGES": "none"})
    assert settings.config.max_pages is None
    assert settings.sources["max_pages"] == "CRAWLKIT_MAX_PAGES"


@pytest.mark.parametrize("text", ["workers = 3\n", "[tool.crawlkit]\nworkers = 3\n", "[tool.crawlkit]\n'Workers' = '3'\n"])
def test_crawlkit_toml_takes_top_level_keys_or_the_table(tmp_path: Path, text: str) -> None:
    (tmp_path / "crawlkit.toml").write_text(text)
    assert gathered(tmp_path).config.workers == 3


@pytest.mark.parametrize("text", ["workers = 3\n", "[project]\nname = 'x'\n", "[tool.other]\nworkers = 3\n", ""])
def test_what_pyproject_says_to_others_is_passed_over(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert gathered(tmp_path).config == Config()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("worker = 3\n", "crawlkit.toml: unknown setting 'worker'; the nearest known one is 'workers'"),
        ("workers = 0\n", "crawlkit.toml: workers: expected a whole number, 1 or more, not 0"),
        ("max-depth = 1\nmax_depth = 1\n", "crawlkit.toml: max_depth: given twice"),
        ("workers = 1\n[tool.crawlkit]\nworkers = 1\n", "crawlkit.toml: workers: given twice"),
        ("workers = 1\n\nscope = oops\n", "crawlkit.toml: not valid TOML: Invalid value (at line 3, column 9)"),
        ("[tool]\ncrawlkit = 1\n", "crawlkit.toml: [tool.crawlkit] must be a table"),
        ("tool = 1\n", "crawlkit.toml: [tool.crawlkit] must be a table"),
        ("[workers]\nn = 1\n", "crawlkit.toml: workers: expected a whole number"),
        ("workers = 2024-01-01\n", "crawlkit.toml: workers: expected a whole number"),
        ("x = " + "[" * 100_000, "crawlkit.toml: not valid TOML: nested too deeply"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name_and_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "crawlkit.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        gathered(tmp_path)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_utf8_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "crawlkit.toml").write_bytes(b"workers = 1\nuser_agent = '\xff'\n")
    with pytest.raises(ConfigError, match=r"crawlkit\.toml: not UTF-8 \(at line 2\)"):
        gathered(tmp_path)


def test_a_config_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "none.toml"
    with pytest.raises(ConfigError, match=f"--config {path}: cannot be read: No such file or directory"):
        gather(tmp_path, path, {}, {})
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        gather(tmp_path, tmp_path, {}, {})


def test_a_wrong_value_is_an_error_even_where_it_is_overruled(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="CRAWLKIT_WORKERS: workers: expected a whole number, 1 or more, not 'x'"):
        gathered(tmp_path, {"CRAWLKIT_WORKERS": "x"}, workers="2")


def test_unknown_variables_with_our_prefix_are_errors_but_for_the_reserved(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"CRAWLKIT_WORKER: unknown setting 'WORKER'; .* 'workers'"):
        gathered(tmp_path, {"CRAWLKIT_WORKER": "2"})
    reserved = {"CRAWLKIT_FAILPOINT": "settle:3", "CRAWLKIT_SEED": "1", "CRAWLKITTY": "meow"}
    assert gathered(tmp_path, reserved).config == Config()


def test_options_are_named_as_they_are_written(tmp_path: Path) -> None:
    sources = gathered(tmp_path, robots=False, max_depth="2").sources
    assert sources["robots"] == "option --no-robots"
    assert sources["max_depth"] == "option --max-depth"
    with pytest.raises(ConfigError, match="option --scope: expected host"):
        gathered(tmp_path, scope="hots")


def invoked(*arguments: str) -> dict[str, object]:
    """Return the settings that a command with our options is given."""
    collected: dict[str, object] = {}

    @click.command()
    @setting_options
    def command(**params: Any) -> None:
        collected.update(given(params))

    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return collected


def test_an_option_that_is_not_given_leaves_the_layers_below_alone() -> None:
    assert invoked() == {}


def test_each_setting_has_its_option() -> None:
    texts = {
        ValueKind.SWITCH: None,
        ValueKind.SCOPE: "any",
        ValueKind.GROUPING: "address",
        ValueKind.RESOLVES: "*=127.0.0.1",
        ValueKind.CONTACT: "https://a.example/",
        ValueKind.NETWORKS: "10.0.0.0/8",
        ValueKind.HEADERS: "X: 1",
        ValueKind.CREDENTIALS: "a.example=env:A",
        ValueKind.EXTRACTS: "title=h1",
        ValueKind.PLUGINS: "plugin.py",
        ValueKind.PROXY: "http://a.example:8080",
        ValueKind.SECRET: "env:A",
    }
    for key, setting in SETTINGS.items():
        text = texts.get(setting.kind, "7")
        name = f"--{key.replace('_', '-')}"
        values = invoked(name) if text is None else invoked(name, text)
        assert values == {key: True if text is None else (text,) if setting.repeatable else text}
        Config.from_values(values)


def test_short_options_repeated_options_and_switches() -> None:
    assert invoked("-w", "3", "-t", "5s") == {"workers": "3", "timeout": "5s"}
    assert invoked("--include", "a", "--include", "b") == {"include": ("a", "b")}
    assert invoked("--no-robots") == {"robots": False}
    assert invoked("--max-depth", "-1") == {"max_depth": "-1"}
    assert invoked("--workers", "") == {"workers": ""}


def test_help_shows_each_setting_with_its_default() -> None:
    result = CliRunner().invoke(
        config_group, ["show", "--help"], terminal_width=200, max_content_width=200, help_option_names=HELP
    )
    for expected in (
        "-w, --workers N",
        "[default: 10MiB]",
        "--robots / --no-robots",
        "[default: on]",
        "[default: none]",
    ):
        assert expected in result.output
    assert "host|domain|prefix|any" in result.output


def test_set_reads_keys_and_values_and_the_last_one_wins() -> None:
    values = parse_set(["max-pages=10", "delay=500ms", "max_pages=none", "include=a=b"])
    assert values == {"max_pages": None, "delay": 0.5, "include": ("a=b",)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("workers", "--set workers: expected KEY=VALUE"),
        ("worker=3", "unknown setting 'worker'; the nearest known one is 'workers'"),
        ("workers=0", "workers: expected a whole number, 1 or more, not '0'"),
    ],
)
def test_a_wrong_set_is_a_usage_error(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_set([text])
    assert str(caught.value).startswith(message)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """An empty working directory with one settings file."""
    (tmp_path / "extra.toml").write_text('exclude = ["one", "two"]\nmax_time = "90m"\n')
    return tmp_path


def run_config(here: Path, *arguments: str, env: Mapping[str, str] | None = None) -> Any:
    with contextlib.chdir(here):
        return CliRunner().invoke(config_group, arguments, env=env or {}, help_option_names=HELP)


def test_show_prints_each_setting_its_value_and_its_source(here: Path) -> None:
    extra = here / "extra.toml"
    result = run_config(here, "show", "-c", str(extra), "-w", "3", env={"CRAWLKIT_SCOPE": "any"})
    assert result.exit_code == 0
    assert result.stderr == ""
    rows = [line.split(maxsplit=2) for line in result.stdout.splitlines()]
    assert rows[0] == ["KEY", "VALUE", "SOURCE"]
    assert ["workers", "3", "option --workers"] in rows
    assert ["scope", "any", "CRAWLKIT_SCOPE"] in rows
    assert ["max_time", "90m", f"--config {extra}"] in rows
    assert ["exclude", "one", f"--config {extra}"] in rows
    assert ["two"] in rows
    assert ["include", "-", "default"] in rows
    assert ["max_depth", "none", "default"] in rows


def test_show_json_is_one_object_with_values_in_base_units(here: Path) -> None:
    result = run_config(here, "show", "--json", "--max-body", "1KiB")
    shown = json.loads(result.stdout)
    assert list(shown) == list(SETTINGS)
    assert shown["max_body"] == {"value": 1024, "source": "option --max-body"}
    assert shown["scope"] == {"value": "host", "source": "default"}


def test_check_says_ok_or_what_is_wrong(here: Path) -> None:
    right, wrong = here / "extra.toml", here / "wrong.toml"
    wrong.write_text("workers = 0\n")
    result = run_config(here, "check", str(right))
    assert (result.exit_code, result.stdout) == (0, "ok\n")
    result = run_config(here, "check", str(wrong))
    assert isinstance(result.exception, ConfigError)
    assert result.exception.exit_status == 2
    assert str(result.exception) == f"{wrong}: workers: expected a whole number, 1 or more, not 0"
    assert result.stdout == ""


def test_check_without_a_file_checks_what_is_in_force_here(here: Path) -> None:
    assert run_config(here, "check").stdout == "ok\n"
    (here / "crawlkit.toml").write_text("workers = 0\n")
    result = run_config(here, "check")
    assert str(result.exception).startswith("crawlkit.toml: workers:")
    (here / "crawlkit.toml").unlink()
    result = run_config(here, "check", env={"CRAWLKIT_WORKERS": "0"})
    assert str(result.exception).startswith("CRAWLKIT_WORKERS: workers:")


@pytest.mark.parametrize("path", sorted(PROFILES.glob("*.toml")), ids=lambda path: path.stem)
def test_each_profile_passes_the_check(path: Path) -> None:
    assert (read_file(path) != Config()) is (path.stem != "default")


def test_there_are_four_profiles() -> None:
    assert {path.stem for path in PROFILES.glob("*.toml")} == {"default", "polite", "own-site", "archive", "broad"}
    assert read_file(PROFILES / "broad.toml").scope is ScopeMode.ANY
