"""The settings as a JSON Schema, made of the table in `config`: for editors, and for checking files elsewhere."""

from typing import Any

from crawlkit.config import SETTINGS, Config, to_values
from crawlkit.config_values import CHOICES, Setting, ValueKind, format_value, terms_of

DRAFT = "http://json-schema.org/draft-07/schema#"
"""The draft that editors of TOML know."""

_QUANTITIES = {
    ValueKind.DURATION: (r"^\s*[0-9]+(\.[0-9]+)?\s*(ms|s|m|min|h|d)?\s*$", "number"),
    ValueKind.SIZE: (r"^\s*[0-9]+(\.[0-9]+)?\s*([bB]|[kKmMgG]([iI]?[bB])?)?\s*$", "integer"),
}
"""Kinds with units: what their texts look like, and what they are without one (seconds, bytes)."""


def config_schema() -> dict[str, Any]:
    """Return the schema of a settings file: each key with what it means, its unit, what it may be and its default.

    It is stricter than `read_value`: numbers and switches have to be written as such.
    """
    defaults = to_values(Config())
    return {
        "$schema": DRAFT,
        "title": "crawlkit settings",
        "description": "Settings of a crawl: crawlkit.toml, --config FILE, or [tool.crawlkit] of pyproject.toml.",
        "type": "object",
        "properties": {key: _property(setting, defaults[key]) for key, setting in SETTINGS.items()},
        "additionalProperties": False,
    }


def _property(setting: Setting, default: Any) -> dict[str, Any]:
    allowed = _allowed(setting)
    if setting.kind in _QUANTITIES:
        default = format_value(setting.kind, setting.default)
    if setting.optional:
        allowed = {"anyOf": [allowed, {"enum": ["none", ""]}]}
        default = "none"
    return {"description": f"{setting.help} {terms_of(setting)}", **allowed, "default": default}


def _allowed(setting: Setting) -> dict[str, Any]:
    if setting.repeatable:
        return {"type": "array", "items": {"type": "string", "minLength": 1}}
    if setting.kind in CHOICES:
        return {"enum": [choice.value for choice in CHOICES[setting.kind]]}
    if setting.kind in _QUANTITIES:
        pattern, number = _QUANTITIES[setting.kind]
        return {"anyOf": [{"type": "string", "pattern": pattern}, {"type": number, "minimum": setting.least}]}
    if setting.kind is ValueKind.COUNT:
        return {"type": "integer", "minimum": setting.least}
    return {"type": "boolean" if setting.kind is ValueKind.SWITCH else "string"}
