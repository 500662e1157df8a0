"""The command line's options for settings: one for each key, made from the table in `config`.

Values arrive as text and are read by `config.read_value`, so that a wrong one gives the same line whether it was an
option, a variable or a file's. An option that was not given is None, which is how it leaves the layers below alone.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from crawlkit.config import SETTINGS, ScopeMode, Setting, ValueKind, find_setting, format_value, read_value
from crawlkit.config_items import ALL_NETWORKS
from crawlkit.errors import UsageError

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def setting_options(command: Decorated) -> Decorated:
    """Give a click command one option for each setting, named by its key, None (or `()`) where not given."""
    return options_of(*SETTINGS)(command)


def options_of(*keys: str) -> Callable[[Decorated], Decorated]:
    """Return a decorator that gives a click command the options for the settings `keys`, as `setting_options` does for all."""

    def decorate(command: Decorated) -> Decorated:
        for key in reversed(keys):
            command = _option(SETTINGS[key])(command)
        return command

    return decorate


def config_file_option(command: Decorated) -> Decorated:
    """Give a click command `-c/--config FILE`, as parameter `config_file`."""
    path = click.Path(path_type=Path)
    return click.option("-c", "--config", "config_file", type=path, metavar="FILE", help="TOML settings.")(command)


def given(params: Mapping[str, Any]) -> dict[str, object]:
    """Return the settings among a command's parameters that were given, by key, as they were given."""
    return {key: params[key] for key in SETTINGS if params.get(key) not in (None, ())}


def parse_set(texts: Iterable[str]) -> dict[str, object]:
    """Return the values of `--set KEY=VALUE` texts, by key, checked; the last one wins.

    Raises:
        UsageError: a text has no `=`.
        ConfigError: a key is unknown, or a value cannot be.
    """
    values: dict[str, object] = {}
    for text in texts:
        key, equals, raw = text.partition("=")
        if not equals:
            raise UsageError(f"--set {text}: expected KEY=VALUE, as in --set workers=4")
        setting = find_setting(key)
        values[setting.key] = read_value(setting, raw)
    return values


def _option(setting: Setting) -> Callable[[Decorated], Decorated]:
    name = setting.key.replace("_", "-")
    if setting.kind is ValueKind.SWITCH:
        return click.option(f"--{name}/--no-{name}", setting.key, default=None, help=_help(setting))
    # Any flag_value, None too, would make the value optional.
    without_value: dict[str, Any] = {"is_flag": False, "flag_value": ALL_NETWORKS} if setting.kind is ValueKind.NETWORKS else {}
    return click.option(
        *([f"-{setting.short}"] if setting.short else []),
        f"--{name}",
        setting.key,
        multiple=setting.repeatable,
        **without_value,
        metavar="|".join(ScopeMode) if setting.kind is ValueKind.SCOPE else setting.kind.value,
        help=_help(setting),
    )


def _help(setting: Setting) -> str:
    if setting.repeatable:
        return f"{setting.help} May be repeated."
    if setting.kind is ValueKind.SWITCH:
        return f"{setting.help} [default: {'on' if setting.default else 'off'}]"
    return f"{setting.help} [default: {format_value(setting.kind, setting.default) or 'none'}]"
