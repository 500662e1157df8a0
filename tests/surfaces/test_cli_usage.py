"""Bad input: status 2, one clear line on standard error, nothing written; and what the command line says of itself."""

import subprocess
import sys
from pathlib import Path

import pytest

from crawlkit.config import SETTINGS, VERSION
from crawlkit.surfaces.cli import cli as commands
from tests.surfaces.conftest import Cli

SEED = "http://nobody.test/"


def everything(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in sorted(directory.rglob("*"))}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("run", "no seed"),
        ("run ftp://nobody.test/", "'ftp://nobody.test/' is not an http or https URL"),
        ("run mailto:me@nobody.test", "is not an http or https URL"),
        ("run nobody.test", "did you mean https://nobody.test?"),
        ("run http://", "'http://' is not a valid URL"),
        (f"run {SEED} http://[::1", "'http://[::1' is not a valid URL"),
        ("run http://me:secret@nobody.test/", "--auth"),
        (f"run {SEED} --workers 0", "--workers: expected a whole number, 1 or more, not '0'"),
        (f"run {SEED} -w many", "not 'many'"),
        (f"run {SEED} --workers -1", "not '-1'"),
        (f"run {SEED} --timeout 5parsecs", "a duration like 500ms, 10s, 5m or 2h, 1ms or more, not '5parsecs'"),
        (f"run {SEED} --timeout 0", "1ms or more"),
        (f"run {SEED} --delay=-1s", "not '-1s'"),
        (f"run {SEED} --max-body big", "a size like 512KiB, 10MiB or 1GiB"),
        (f"run {SEED} --include (", "--include: expected a regular expression"),
        (f"run {SEED} --exclude a --exclude [", "--exclude: expected a regular expression"),
        (f"run {SEED} --max-pages 0", "1 or more"),
        (f"run {SEED} --max-depth -1", "not '-1'"),
        (f"run {SEED} --scope hosts", "the nearest is 'host'"),
        (f"run {SEED} --resolve nobody.test", "in brackets where a port follows, not 'nobody.test'"),
        (f"run {SEED} --resolve nobody.test=elsewhere.test", "an IP address"),
        (f"run {SEED} --worker 3", "'--worker'"),
        (f"run {SEED} --config missing.toml", "missing.toml: cannot be read: No such file or directory"),
        (f"run {SEED} --config bad.toml", "bad.toml: not valid TOML"),
        (f"run {SEED} --config unknown.toml", "unknown setting 'wrokers'; the nearest known one is 'workers'"),
        (f"run {SEED} --config .", "Is a directory"),
        ("run --input missing.txt", "missing.txt: No such file or directory"),
        ("run --input empty.txt", "no seed in empty.txt"),
        ("run --input comments.txt", "no seed in comments.txt"),
        ("run --input wrong.txt", "wrong.txt, line 2: seed 'gopher://nobody.test/' is not an http or https URL"),
        ("run --input latin1.txt", "latin1.txt are not UTF-8 text"),
        (f"run {SEED} --input empty.txt", "no seed in empty.txt"),
        ("resume", "Missing argument 'DIR'"),
        ("resume x --set workers", "--set workers: expected KEY=VALUE"),
        ("resume x --set wrokers=3", "unknown setting 'wrokers'; the nearest known one is 'workers'"),
        ("resume x --set workers=0", "1 or more"),
        ("resume x --workers 3", "A resume changes settings with --set workers=VALUE"),
        ("resume x --worker 3", "(see crawlkit resume --help)"),
        ("report", "Missing argument 'DIR'"),
        ("report x --format yaml", "'yaml' is not one of"),
        ("report x --only links", "'links' is not one of"),
        ("report x --output .", "is a directory"),
        ("robots", "Missing argument 'URL'"),
        ("robots nobody.test", "crawlkit: URL 'nobody.test' has no scheme; did you mean https://nobody.test?"),
        ("robots http://nobody.test/ --file missing.txt", "--file missing.txt: cannot be read: No such file or directory"),
        ("robots http://nobody.test/ --agent 1/x --file empty.txt", "begins with its product token"),
        ("robots http://nobody.test/ --contact me --file empty.txt", "an e-mail address or an http(s) URL"),
        ("config show --workers 0", "1 or more"),
        ("config check missing.toml", "missing.toml: cannot be read"),
        ("config check unknown.toml", "the nearest known one is 'workers'"),
        ("config", "Missing command"),
        ("crawl", "'crawl'"),
        ("--workers 3", "'--workers'"),
    ],
)
def test_bad_input_is_status_2_and_one_line_and_writes_nothing(cli: Cli, tmp_path: Path, arguments: str, said: str) -> None:
    (tmp_path / "bad.toml").write_text("workers = = 3\n")
    (tmp_path / "unknown.toml").write_text("wrokers = 3\n")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "comments.txt").write_text("# nothing yet\n\n   \n")
    (tmp_path / "wrong.txt").write_text(f"{SEED}\ngopher://nobody.test/\n")
    (tmp_path / "latin1.txt").write_bytes(b"http://nobody.test/\xe9\n")
    before = everything(tmp_path)
    result = cli(*arguments.split())
    assert result.status == 2
    assert result.out == ""
    assert result.err.startswith("crawlkit: ")
    assert len(result.err.splitlines()) == 1
    assert said in result.err
    assert "secret" not in result.err
    assert everything(tmp_path) == before


@pytest.mark.parametrize(
    ("place", "name", "text"),
    [
        ("CRAWLKIT_WROKERS", "WROKERS", ""),
        ("CRAWLKIT_DELAY", "delay", "soon"),
        ("pyproject.toml", "wrokers", "[tool.crawlkit]\nwrokers = 3\n"),
        ("crawlkit.toml", "delay", 'delay = "soon"\n'),
    ],
)
def test_a_wrong_setting_of_any_place_stops_a_run_before_it_writes(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, name: str, text: str
) -> None:
    if place.endswith(".toml"):
        (tmp_path / place).write_text(text)
    else:
        monkeypatch.setenv(place, text)
    before = everything(tmp_path)
    result = cli("run", SEED)
    assert result.status == 2
    assert result.err.startswith(f"crawlkit: {place}: ")
    assert name in result.err
    assert everything(tmp_path) == before


def test_a_seed_file_is_read_before_anything_is_written(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "seeds.txt").write_text("http://nobody.test/\nnobody.test/second\n")
    assert cli("run", "-i", "seeds.txt", "-d", "new.crawl").status == 2
    assert not (tmp_path / "new.crawl").exists()


def test_without_a_command_the_help_is_shown_as_wrong_usage(cli: Cli) -> None:
    result = cli()
    assert result.status == 2
    assert result.out == ""
    assert result.err.startswith("Usage: crawlkit ")
    assert all(f"  {name} " in result.err for name in commands.commands)


@pytest.mark.parametrize("name", sorted(commands.commands))
def test_every_command_explains_itself(cli: Cli, name: str) -> None:
    result = cli(name, "-h")
    assert (result.status, result.err) == (0, "")
    assert result.out.startswith(f"Usage: crawlkit {name} ")


def test_the_help_of_run_has_every_setting(cli: Cli) -> None:
    text = cli("run", "--help").out
    assert all(f"--{key.replace('_', '-')}" in text for key in SETTINGS)


def test_the_version_is_data(cli: Cli) -> None:
    result = cli("--version")
    assert (result.status, result.err) == (0, "")
    assert VERSION in result.out


def test_the_console_script_is_the_module() -> None:
    done = subprocess.run([sys.executable, "-m", "crawlkit", "--version"], capture_output=True, check=True, timeout=60)
    assert VERSION in done.stdout.decode()


def test_what_is_wrong_with_an_option_names_it_once(cli: Cli) -> None:
    assert cli("run", SEED, "--workers", "0").err == "crawlkit: option --workers: expected a whole number, 1 or more, not '0'\n"


def test_a_demo_in_a_place_that_cannot_be_used_is_a_wrong_call(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = cli("demo", "--dir", tmp_path / "file" / "below")
    assert (result.status, "the demo cannot use" in result.err) == (2, True)
