"""`crawlkit config`: the settings in force and where each comes from, or whether a file of settings is right."""

import json
import os
from pathlib import Path
from typing import Any

import click
import msgspec

from crawlkit.config import SETTINGS, Config, format_value, to_toml, to_values
from crawlkit.config_schema import config_schema
from crawlkit.engine.network import check_network
from crawlkit.engine.rendering.opening import check_renderer
from crawlkit.surfaces.help_sections import SectionedCommand
from crawlkit.surfaces.options import config_file_option, given, setting_options
from crawlkit.surfaces.settings import Settings, gather, read_file


@click.group("config", no_args_is_help=False)
def config_group() -> None:
    """Show or check settings."""


@config_group.command("show", cls=SectionedCommand)
@setting_options
@config_file_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object, values in seconds and bytes.")
@click.option("--origin", is_flag=True, help="Also what each value overrules, and where that comes from.")
@click.option("--defaults", is_flag=True, help="The defaults alone, as TOML that says what each key means.")
def show_command(config_file: Path | None, as_json: bool, origin: bool, defaults: bool, **params: Any) -> None:
    """Show each setting in force, and where it comes from."""
    if defaults:
        click.echo(to_toml(Config()), nl=False)
        return
    settings = gather(Path.cwd(), config_file, os.environ, given(params))
    shown = settings if origin else msgspec.structs.replace(settings, overruled=dict.fromkeys(SETTINGS, ()))
    click.echo(_as_json(shown) if as_json else _as_table(shown))


@config_group.command("schema")
def schema_command() -> None:
    """Write the JSON Schema of a settings file, for editors."""
    click.echo(json.dumps(config_schema(), indent=2))


@config_group.command("check")
@click.argument("file", required=False, type=click.Path(path_type=Path))
def check_command(file: Path | None) -> None:
    """Check the settings in FILE or, without one, those in force here. Says ok, or all that is wrong (status 2)."""
    config = read_file(file) if file is not None else gather(Path.cwd(), None, os.environ, {}).config
    check_network(config)
    check_renderer(config, os.environ)
    click.echo("ok")


def _as_json(settings: Settings) -> str:
    values = to_values(settings.config)
    rows: dict[str, dict[str, object]] = {}
    for key, value in values.items():
        rows[key] = {"value": value, "source": settings.sources[key]}
        if settings.overruled[key]:
            rows[key]["overrules"] = [{"value": below, "source": source} for below, source in settings.overruled[key]]
    return msgspec.json.format(msgspec.json.encode(rows), indent=2).decode()


def _as_table(settings: Settings) -> str:
    """Return one line a setting, in columns; further items of a list, and what is overruled, on lines of their own."""
    rows = [("KEY", "VALUE", "SOURCE")]
    for key, setting in SETTINGS.items():
        layers = ((getattr(settings.config, key), settings.sources[key]), *settings.overruled[key])
        for number, (value, source) in enumerate(layers):
            first, *rest = format_value(setting.kind, value).split("\n")
            rows.append((key, first or "-", source) if number == 0 else ("", first or "-", f"overruled: {source}"))
            rows += [("", item, "") for item in rest]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(f"{key:{widths[0]}}  {value:{widths[1]}}  {source}".rstrip() for key, value, source in rows)
