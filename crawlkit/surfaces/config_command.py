"""`crawlkit config`: the settings in force and where each comes from, or whether a file of settings is right."""

import os
from pathlib import Path
from typing import Any

import click
import msgspec

from crawlkit.config import SETTINGS, format_value, to_values
from crawlkit.surfaces.options import config_file_option, given, setting_options
from crawlkit.surfaces.settings import Settings, gather, read_file


@click.group("config", no_args_is_help=False)
def config_group() -> None:
    """Show or check settings."""


@config_group.command("show")
@setting_options
@config_file_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object, values in seconds and bytes.")
def show_command(config_file: Path | None, as_json: bool, **params: Any) -> None:
    """Show each setting in force, and where it comes from."""
    settings = gather(Path.cwd(), config_file, os.environ, given(params))
    click.echo(_as_json(settings) if as_json else _as_table(settings))


@config_group.command("check")
@click.argument("file", required=False, type=click.Path(path_type=Path))
def check_command(file: Path | None) -> None:
    """Check the settings in FILE or, without one, those in force here. Says ok, or what is wrong (status 2)."""
    if file is not None:
        read_file(file)
    else:
        gather(Path.cwd(), None, os.environ, {})
    click.echo("ok")


def _as_json(settings: Settings) -> str:
    values = to_values(settings.config)
    rows = {key: {"value": value, "source": settings.sources[key]} for key, value in values.items()}
    return msgspec.json.format(msgspec.json.encode(rows), indent=2).decode()


def _as_table(settings: Settings) -> str:
    """Return one line a setting, in columns; further items of a list on lines of their own."""
    rows = [("KEY", "VALUE", "SOURCE")]
    for key, setting in SETTINGS.items():
        first, *rest = format_value(setting.kind, getattr(settings.config, key)).split("\n")
        rows.append((key, first or "-", settings.sources[key]))
        rows += [("", item, "") for item in rest]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(f"{key:{widths[0]}}  {value:{widths[1]}}  {source}".rstrip() for key, value, source in rows)
