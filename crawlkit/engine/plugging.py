"""Plugins of a run: found, checked against what they were when the crawl began, and asked by its parts."""

import hashlib
import inspect
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType

import msgspec

from crawlkit.config_items import PluginPlace, parse_plugin
from crawlkit.errors import ConfigError
from crawlkit.model import Facts, FetchFailure, Reason, Response
from crawlkit.plugins import NAMES, Hook, HookFailedError, Page, Plugins
from crawlkit.policy.charset import decode, detect
from crawlkit.policy.disposition import REDIRECTS
from crawlkit.policy.skim import is_costly
from crawlkit.rendering import Rendered

GROUP = "crawlkit.plugins"
MOST_PRIORITY = 255


class Plugged(msgspec.Struct, frozen=True):
    """The plugins of a run as its parts call them. `pins` are the items of the setting, each with what it is now."""

    pins: tuple[str, ...]
    plugins: Plugins

    @property
    def accepts(self) -> Callable[[str], bool] | None:
        """What is to be asked of URLs that are met, if anything."""
        return self._accepts if self.plugins.accept else None

    @property
    def priority(self) -> Callable[[str], int | None] | None:
        """What is to be asked of URLs that are admitted, if anything."""
        return self._priority if self.plugins.priority else None

    def _accepts(self, url: str) -> bool:
        try:
            return self.plugins.accepts(url)
        except HookFailedError:
            return True  # and it fails when its turn comes: a URL must not be lost to a bug in a plugin

    def _priority(self, url: str) -> int | None:
        try:
            priority = self.plugins.priority_of(url)
        except HookFailedError:
            return None
        return None if priority is None else min(max(priority, 0), MOST_PRIORITY)

    def headers_for(self, url: str) -> tuple[tuple[bytes, bytes], ...] | FetchFailure:
        """Return what the request for a URL carries besides, or why there will be none.

        What was asked when it was met is asked once more, since what was raised then was put off.
        """
        try:
            self.plugins.accepts(url)
            self.plugins.priority_of(url)
            return self.plugins.headers_for(url)
        except HookFailedError as error:
            return FetchFailure(Reason.HOOK_FAILED, str(error))

    def read(self, url: str, response: Response, facts: Facts, rendered: Rendered | None = None) -> Facts | FetchFailure:
        """Return facts with the fields that plugins add, where `response` makes a page; as body they get what is `rendered`."""
        if not self.plugins.page or response.status >= 400 or response.status in REDIRECTS:
            return facts
        headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers)
        body = response.body if rendered is None else rendered.markup
        charset = (facts.charset or detect(body, None)) if rendered is None else "utf-8"
        page = Page(url, response.status, headers, body, partial(decode, encoding=charset), is_costly)
        try:
            return msgspec.structs.replace(facts, fields={**facts.fields, **self.plugins.fields_of(page)})
        except HookFailedError as error:
            return FetchFailure(Reason.HOOK_FAILED, str(error))


def load_plugins(items: Sequence[str]) -> Plugged:
    """Return the plugins that the setting names.

    ConfigError names one that is not there, cannot be used, or is not what it was when the crawl began.
    """
    found: dict[str, list[Hook]] = {name: [] for name in NAMES}
    pins = []
    for item in items:
        place = parse_plugin(item)
        name, plugin, pin = _from_entry_point(place) if place.file is None else _from_file(place.file, place.pin)
        pins.append(pin)
        for function, hook in _hooks_of(name, plugin):
            found[function].append(hook)
    return Plugged(tuple(pins), Plugins(**{name: tuple(hooks) for name, hooks in found.items()}))


def _from_file(file: str, pin: str | None) -> tuple[str, object, str]:
    """Return the name of a plugin in a file, the module that it is, and the setting's item for it from now on."""
    path = Path(file).absolute()
    try:
        source = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"plugin: {file} cannot be read: {error.strerror or error}") from error
    digest = f"sha256:{hashlib.sha256(source).hexdigest()}"
    if pin is not None and pin != digest:
        raise ConfigError(
            f"plugin: {file} has changed since the crawl began; put it back, or go on with it as it is now: "
            f"--set plugin={path} (the report will say so)"
        )
    return path.name, _run(source, path, digest), f"{path}#{digest}"


def _run(source: bytes, path: Path, digest: str) -> ModuleType:
    """Run the bytes whose digest was taken, not what the file or a cache of it holds by now."""
    module = ModuleType(f"crawlkit_plugin_{path.stem}_{digest[-8:]}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses and pickle look there
    try:
        exec(compile(source, str(path), "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        raise ConfigError(f"plugin: {path} cannot be loaded: {type(error).__name__}: {_one_line(error)}") from error
    return module


def _from_entry_point(place: PluginPlace) -> tuple[str, object, str]:
    """Return the name of a plugin that is installed, the object that it is, and the setting's item for it from now on."""
    from importlib import metadata  # noqa: PLC0415  (takes 5 ms of a start, which few crawls need)

    entries = {entry.name: entry for entry in metadata.entry_points(group=GROUP)}
    entry = entries.get(place.name)
    if entry is None:
        known = ", ".join(sorted(entries)) or "none"
        raise ConfigError(
            f"plugin: there is no {place.name} in the entry points of {GROUP} (those are: {known}); a file ends in .py"
        )
    version = "unknown" if entry.dist is None else entry.dist.version
    if place.pin is not None and place.pin != version:
        raise ConfigError(
            f"plugin: {place.name} was version {place.pin} when the crawl began and is {version}; install that, or go on "
            f"with it as it is now: --set plugin={place.name} (the report will say so)"
        )
    try:
        return place.name, entry.load(), f"{place.name}#{version}"
    except (Exception, SystemExit) as error:
        raise ConfigError(f"plugin: {place.name} cannot be loaded: {type(error).__name__}: {_one_line(error)}") from error


def _hooks_of(plugin: str, holder: object) -> list[tuple[str, Hook]]:
    """Return the functions of a plugin that have a say, with what they do; ConfigError if it has none."""
    having = [(name, getattr(holder, name, None)) for name in NAMES]
    hooks = [(name, Hook(plugin, function)) for name, function in having if function is not None]
    if not hooks:
        raise ConfigError(f"plugin: {plugin} has none of the functions {', '.join(NAMES)}")
    for name, (_, function) in hooks:
        if not callable(function) or inspect.iscoroutinefunction(function):
            raise ConfigError(f"plugin: {plugin}: {name} has to be a plain function")
    return hooks


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
