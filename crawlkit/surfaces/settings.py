"""Gathers the settings in force, and where each of them came from.

Later ones win: defaults; `[tool.crawlkit]` in pyproject.toml; crawlkit.toml; the file named by `--config`; environment
variables `CRAWLKIT_<KEY>`; options. A list replaces the list below it. Everything given is checked, also what is
overruled.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from crawlkit.config import SETTINGS, Config, ValueKind, find_setting, read_value
from crawlkit.errors import ConfigError

ENVIRONMENT_PREFIX = "CRAWLKIT_"
RESERVED_VARIABLES = frozenset({"CRAWLKIT_FAILPOINT", "CRAWLKIT_SEED"})
"""Variables with our prefix that are no settings: where a test makes the process die, and a test session's seed."""

DEFAULT_SOURCE = "default"


class Settings(msgspec.Struct, frozen=True):
    """The settings in force. `sources` names for each key where it came from, as in `option --workers`.

    `overruled` has for each key what was given for it farther down, the nearest first: value and source.
    """

    config: Config
    sources: Mapping[str, str]
    overruled: Mapping[str, tuple[tuple[Any, str], ...]]


class _Given(msgspec.Struct, frozen=True):
    """One value somewhere: the key as written there, the value as written there, the place.

    `names_key` says that the place is of this key alone, so that what is wrong need not name it again.
    """

    key: str
    raw: object
    source: str
    names_key: bool = False


def gather(cwd: Path, config_file: Path | None, environ: Mapping[str, str], options: Mapping[str, object]) -> Settings:
    """Return the settings in force for a command that starts in `cwd`.

    Args:
        cwd: where pyproject.toml and crawlkit.toml are looked for; neither needs to be there.
        config_file: the file of `--config`, if given; it must be there.
        environ: all environment variables; those of other programs are passed over.
        options: the options that were given, by key (`surfaces.options.given`).

    Raises:
        ConfigError: a file cannot be read, or a key is unknown, given twice in one place, or its value cannot be. The
            text has a line for each problem, which begins with the place.
    """
    found: dict[str, list[tuple[Any, str]]] = {key: [] for key in SETTINGS}
    problems: list[str] = []
    for layer in (
        *(_found(cwd / name) for name in ("pyproject.toml", "crawlkit.toml")),
        _read(config_file, f"--config {config_file}") if config_file is not None else (),
        _variables(environ),
        [_Given(key, raw, f"option {_option_name(key, raw)}", names_key=True) for key, raw in options.items()],
    ):
        for key, value_and_source in _checked(layer, problems).items():
            found[key].insert(0, value_and_source)
    _refuse(problems)
    for key, setting in SETTINGS.items():
        found[key].append((setting.default, DEFAULT_SOURCE))
    return Settings(
        Config.from_values({key: layers[0][0] for key, layers in found.items()}),
        {key: layers[0][1] for key, layers in found.items()},
        {key: tuple(layers[1:]) for key, layers in found.items()},
    )


def read_file(path: Path) -> Config:
    """Return the settings of one TOML file alone, over the defaults; ConfigError if it cannot be read or used.

    Its text has a line for each problem.
    """
    problems: list[str] = []
    checked = _checked(_read(path, str(path)), problems)
    _refuse(problems)
    return Config.from_values({key: value for key, (value, _) in checked.items()})


def _refuse(problems: Iterable[str]) -> None:
    if problems:
        raise ConfigError("\n".join(problems))


def _checked(layer: Iterable[_Given], problems: list[str]) -> dict[str, tuple[Any, str]]:
    """Return the values of a layer with their source, by key; what is wrong is added to `problems`."""
    checked: dict[str, tuple[Any, str]] = {}
    for given in layer:
        try:
            setting = find_setting(given.key)
            value = read_value(setting, given.raw)
        except ConfigError as error:
            named = f"{given.key}: " if given.names_key else ""
            problems.append(f"{given.source}: {str(error).removeprefix(named)}")
            continue
        if setting.key in checked:
            problems.append(f"{given.source}: {setting.key}: given twice")
        checked[setting.key] = value, given.source
    return checked


def _found(path: Path) -> list[_Given]:
    """Return what a file gives that need not be there."""
    try:
        is_there = path.exists()
    except OSError as error:
        raise ConfigError(f"{path.name}: cannot be read: {error.strerror}") from error
    return _read(path, path.name) if is_there else []


def _read(path: Path, source: str) -> list[_Given]:
    """Return what a TOML file gives: its table `[tool.crawlkit]` and, but for pyproject.toml, its top-level keys."""
    document = _parse(path, source)
    tool = document.pop("tool", {})
    table = tool.get("crawlkit", {}) if isinstance(tool, dict) else tool
    if not isinstance(table, dict):
        raise ConfigError(f"{source}: [tool.crawlkit] must be a table")
    tables = [table] if path.name == "pyproject.toml" else [document, table]
    return [_Given(key, raw, source) for keys in tables for key, raw in keys.items()]


def _parse(path: Path, source: str) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415  (takes 2 ms of each start, where there may be no file)

    try:
        data = path.read_bytes()
        return tomllib.loads(data.decode())
    except OSError as error:
        raise ConfigError(f"{source}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{source}: not UTF-8 (at line {line})") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source}: not valid TOML: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"{source}: not valid TOML: nested too deeply") from error


def _variables(environ: Mapping[str, str]) -> Iterator[_Given]:
    for name in sorted(environ):
        if name.startswith(ENVIRONMENT_PREFIX) and name not in RESERVED_VARIABLES:
            yield _Given(name.removeprefix(ENVIRONMENT_PREFIX), environ[name], name)


def _option_name(key: str, raw: object) -> str:
    name = key.replace("_", "-")
    is_off = raw is False and key in SETTINGS and SETTINGS[key].kind is ValueKind.SWITCH
    return f"--no-{name}" if is_off else f"--{name}"
