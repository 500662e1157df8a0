"""`crawlkit config`: where values come from, every problem at once, the defaults as a file, the schema for editors."""

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from crawlkit.config import SETTINGS, Config, ValueKind, to_toml
from tests.surfaces.conftest import Cli

PROFILES = Path(__file__).resolve().parents[2] / "config"


@pytest.fixture
def schema(cli: Cli) -> dict[str, Any]:
    said = cli("config", "schema")
    assert said.status == 0
    loaded: dict[str, Any] = json.loads(said.out)
    return loaded


def rows(text: str) -> list[list[str]]:
    return [line.split(maxsplit=2) for line in text.splitlines()]


def test_origin_shows_what_each_value_overrules(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "crawlkit.toml").write_text("workers = 2\nexclude = ['a']\n")
    monkeypatch.setenv("CRAWLKIT_WORKERS", "3")

    shown = rows(cli("config", "show", "--origin", "-w", "4").out)

    at = shown.index(["workers", "4", "option --workers"])
    assert shown[at + 1 : at + 4] == [
        ["3", "overruled:", "CRAWLKIT_WORKERS"],
        ["2", "overruled:", "crawlkit.toml"],
        ["16", "overruled:", "default"],
    ]
    assert ["exclude", "a", "crawlkit.toml"] in shown
    assert "overruled" not in cli("config", "show", "-w", "4").out
    as_json = json.loads(cli("config", "show", "--origin", "--json").out)
    assert as_json["workers"] == {
        "value": 3,
        "source": "CRAWLKIT_WORKERS",
        "overrules": [{"value": 2, "source": "crawlkit.toml"}, {"value": 16, "source": "default"}],
    }


def test_check_names_every_problem_at_once(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("workers = 0\nwrokers = 3\nscope = 'hots'\ntimeout = '1s'\n")

    said = cli("config", "check", "bad.toml")

    assert (said.status, said.out) == (2, "")
    problems = said.err.splitlines()
    assert all(line.startswith("crawlkit: bad.toml: ") for line in problems)
    assert [line.split(": ")[2].split(" ")[0] for line in problems] == ["workers", "unknown", "scope"]


def test_check_finds_settings_that_exclude_each_other(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("http2 = true\nproxy = 'http://proxy.test:3128'\n")

    said = cli("config", "check", "bad.toml")

    assert (said.status, "leave out one of http2 and proxy" in said.err) == (2, True)


def test_the_file_of_defaults_is_what_the_program_prints_and_means(cli: Cli) -> None:
    text = (PROFILES / "default.toml").read_text()

    assert cli("config", "show", "--defaults").out == text == to_toml(Config())
    assert Config.from_values(tomllib.loads(text)) == Config()


@pytest.mark.parametrize("key", SETTINGS)
def test_the_file_of_defaults_says_what_each_key_takes(key: str) -> None:
    lines = (PROFILES / "default.toml").read_text().splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith(f"{key} = "))

    assert lines[at - 2] == f"# {SETTINGS[key].help}"
    assert "Default: " in lines[at - 1]
    assert SETTINGS[key].kind is not ValueKind.SIZE or "MiB" in lines[at - 1]
    assert SETTINGS[key].kind is not ValueKind.DURATION or "10s" in lines[at - 1]


def test_the_schema_is_one_and_knows_every_key(schema: dict[str, Any]) -> None:
    jsonschema.Draft7Validator.check_schema(schema)
    assert list(schema["properties"]) == list(SETTINGS)
    for key, rule in schema["properties"].items():
        assert rule["description"].startswith(SETTINGS[key].help)
        jsonschema.validate({key: rule["default"]}, schema)
        assert Config.from_values({key: rule["default"]}) == Config()


@pytest.mark.parametrize("path", sorted(PROFILES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_profile_fits_the_schema(schema: dict[str, Any], path: Path) -> None:
    assert jsonschema.Draft7Validator(schema).is_valid(tomllib.loads(path.read_text()))


@pytest.mark.parametrize(
    "wrong",
    [
        {"wrokers": 3}, {"workers": 0}, {"workers": 1.5}, {"scope": "hots"}, {"timeout": "10 parsecs"}, {"timeout": 0},
        {"max_body": "10 MiBs"}, {"exclude": "a"}, {"exclude": [3]}, {"robots": "on"}, {"max_pages": "some"},
    ],
)  # fmt: skip
def test_what_does_not_fit_the_schema(schema: dict[str, Any], wrong: dict[str, object]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, schema)


@pytest.mark.parametrize(
    ("key", "written", "read"),
    [
        ("max_pages", "none", None), ("max_pages", 7, 7), ("timeout", "90 s", 90.0), ("max_body", "512k", 512 * 1024),
        ("delay", 0, 0.0), ("max_time", "1d", 86_400.0),
    ],
)  # fmt: skip
def test_what_fits_the_schema_is_read(schema: dict[str, Any], key: str, written: object, read: object) -> None:
    assert jsonschema.Draft7Validator(schema).is_valid({key: written})
    assert getattr(Config.from_values({key: written}), key) == read
