"""The rules of the house: which way imports point, what each layer must not know, and sizes, read off the syntax trees.

Each rule is a function from a module to its violations, as texts `path:line: what`. The layers are those of the
README's architecture section.
"""

import ast
import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST_PYTHON = (3, 11)
MODULE_LINES = 350
FUNCTION_LINES = 60

BASE = frozenset(
    {
        "model",
        "config",
        "config_extract",
        "config_items",
        "config_schema",
        "config_units",
        "config_values",
        "errors",
        "clock",
        "durable",
        "exchange",
        "plugins",
        "rendering",
        "sitemap",
        "sentences",
        "shell",
    }
)
SURFACES = frozenset({"surfaces", "api", "__main__"})
MAY_IMPORT: Mapping[str, frozenset[str]] = {
    "base": frozenset({"base"}),
    "policy": frozenset({"base", "policy"}),
    "state": frozenset({"base", "state"}),
    "net": frozenset({"base", "net"}),
    "archive": frozenset({"base", "archive"}),
    "render": frozenset({"base", "render"}),
    "engine": frozenset({"base", "policy", "state", "net", "archive", "render", "engine"}),
    "cluster": frozenset({"base", "policy", "state", "net", "archive", "engine", "cluster"}),
    "surfaces": frozenset({"base", "policy", "state", "net", "archive", "engine", "cluster", "surfaces"}),
    "testing": frozenset({"base", "policy", "state", "net", "archive", "engine", "cluster", "testing"}),
}
DEMO = "crawlkit.surfaces.demo"  # serves the built-in site from `testing`: the one exception

LEVELDB = ("plyvel",)
BROWSER = ("playwright",)
NETWORK = (
    "aiohttp", "h11", "h2", "http.client", "http.server", "httpcore", "httptools", "httpx", "httpx_aiohttp", "requests",
    "socket", "socketserver", "ssl", "urllib.request", "urllib3",
)  # fmt: skip
IMPURE = (
    "asyncio", "concurrent", "multiprocessing", "os", "pathlib", "secrets", "shutil", "signal", "socket", "subprocess",
    "tempfile", "threading", "time", "uuid",
)  # fmt: skip
CLOCKS = frozenset({"now", "utcnow", "today"})
ASYNC_NODES = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
VAGUE_NAME = re.compile(r"(^|_)(utils?|helpers?|managers?)($|_)")


@dataclass(frozen=True, slots=True)
class Module:
    """One module: its dotted name, its source, and the path shown for it."""

    name: str
    source: str
    is_package: bool = False

    @property
    def path(self) -> str:
        return self.name.replace(".", "/") + ("/__init__.py" if self.is_package else ".py")

    @property
    def tree(self) -> ast.Module:
        return _parsed(self.source)

    def at(self, line: int, what: str) -> str:
        return f"{self.path}:{line}: {what}"


@functools.cache
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


def package_modules() -> Iterator[Module]:
    """Every module of the package."""
    for path in sorted((ROOT / "crawlkit").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        yield Module(".".join(parts[:-1] if is_package else parts), path.read_text(encoding="utf-8"), is_package)


def layer_of(name: str) -> str | None:
    """The layer of a dotted name under `crawlkit`; None if it has none."""
    head = [*name.split("."), ""][1]
    if head in BASE:
        return "base"
    if head in SURFACES or not head:
        return "surfaces"
    return head if head in MAY_IMPORT else None


def imports(module: Module) -> Iterator[tuple[int, str]]:
    """Line and dotted name of all that is imported, wherever it stands: `from a import b` gives `a.b`."""
    for node in ast.walk(module.tree):
        match node:
            case ast.Import():
                yield from ((node.lineno, alias.name) for alias in node.names)
            case ast.ImportFrom():
                origin = _origin(module, node)
                yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)
            case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]):
                if ast.unparse(function).split(".")[-1] in ("import_module", "__import__"):
                    yield node.lineno, name


def _origin(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    up = node.level - module.is_package
    return ".".join(parts[: len(parts) - up] + ([node.module] if node.module else []))


def _imports_of(module: Module, names: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    for line, target in imports(module):
        if any(target == name or target.startswith(f"{name}.") for name in names):
            yield line, target


def _own_imports(module: Module) -> Iterator[tuple[int, str, str]]:
    """Line, name and layer of what is imported from crawlkit; a plain name of `crawlkit` itself is the surface."""
    for line, target in imports(module):
        if target.split(".")[0] == "crawlkit":
            yield line, target, layer_of(target) or "surfaces"


def imports_point_one_way(module: Module) -> list[str]:
    layer = layer_of(module.name)
    if layer is None:
        return [module.at(1, "belongs to no layer")]
    return [
        module.at(line, f"{layer} imports {target}, of {other}")
        for line, target, other in _own_imports(module)
        if other not in MAY_IMPORT[layer] and other != "testing"
    ]


def only_the_demo_imports_testing(module: Module) -> list[str]:
    if layer_of(module.name) == "testing" or module.name == DEMO:
        return []
    return [
        module.at(line, f"imports {target}: only {DEMO} and the tests may")
        for line, target, other in _own_imports(module)
        if other == "testing"
    ]


def only_state_knows_leveldb(module: Module) -> list[str]:
    if layer_of(module.name) == "state":
        return []
    return [module.at(line, f"imports {target}: only state may") for line, target in _imports_of(module, LEVELDB)]


def only_net_knows_the_network(module: Module) -> list[str]:
    if layer_of(module.name) in ("net", "testing"):
        return []
    found = _imports_of(module, NETWORK)
    return [module.at(line, f"imports {target}: only net and testing may") for line, target in found]


def only_render_knows_a_browser(module: Module) -> list[str]:
    if layer_of(module.name) == "render":
        return []
    return [module.at(line, f"imports {target}: only render may") for line, target in _imports_of(module, BROWSER)]


def policy_never_waits(module: Module) -> list[str]:
    return _async_code(module) if layer_of(module.name) == "policy" else []


def policy_touches_no_clock_and_no_file(module: Module) -> list[str]:
    if layer_of(module.name) != "policy":
        return []
    opens = [module.at(line, "opens a file") for line, call in _calls(module) if call == "open"]
    found = [module.at(line, f"imports {target}") for line, target in _imports_of(module, IMPURE)]
    return found + opens + _clock_reads(module)


def policy_draws_no_unseeded_number(module: Module) -> list[str]:
    if layer_of(module.name) != "policy":
        return []
    drawn = [
        module.at(line, f"uses {target}, which nobody seeds")
        for line, target in [*_imports_of(module, ("random",)), *_attributes(module)]
        if target.startswith("random.") and target != "random.Random"
    ]
    unseeded = [
        module.at(node.lineno, "Random() without a seed")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("Random", "random.Random") and not node.args
    ]
    return drawn + unseeded


def state_knows_no_event_loop(module: Module) -> list[str]:
    if layer_of(module.name) != "state":
        return []
    return _async_code(module) + [module.at(line, f"imports {t}") for line, t in _imports_of(module, ("asyncio",))]


def the_coordinator_is_synchronous_and_takes_now(module: Module) -> list[str]:
    if not module.name.startswith("crawlkit.engine.coordinator"):
        return []
    found = [module.at(line, f"imports {t}") for line, t in _imports_of(module, ("asyncio", "time", "crawlkit.clock"))]
    return found + _async_code(module) + _clock_reads(module)


def modules_are_short(module: Module) -> list[str]:
    lines = len(module.source.splitlines())
    return [module.at(lines, f"{lines} lines; at most {MODULE_LINES}")] if lines > MODULE_LINES else []


def functions_are_short(module: Module) -> list[str]:
    found = []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                found.append(module.at(node.lineno, f"{node.name} has {lines} lines; at most {FUNCTION_LINES}"))
    return found


def public_modules_say_their_job(module: Module) -> list[str]:
    last = module.name.split(".")[-1]
    if (last.startswith("_") and last != "__main__") or ast.get_docstring(module.tree):
        return []
    return [module.at(1, "has no docstring")]


def names_say_something(module: Module) -> list[str]:
    vague = [part for part in module.name.split(".") if VAGUE_NAME.search(part)]
    return [module.at(1, f"is named {part!r}, which says nothing of its job") for part in vague]


def modules_parse_under_the_oldest_python(module: Module) -> list[str]:
    try:
        ast.parse(module.source, feature_version=OLDEST_PYTHON)
    except SyntaxError as error:
        return [module.at(error.lineno or 1, f"is not Python {'.'.join(map(str, OLDEST_PYTHON))}: {error.msg}")]
    return []


def _async_code(module: Module) -> list[str]:
    return [
        module.at(getattr(node, "lineno", 0) or getattr(getattr(node, "target", None), "lineno", 1), "async code")
        for node in ast.walk(module.tree)
        if isinstance(node, ASYNC_NODES) or (isinstance(node, ast.comprehension) and node.is_async)
    ]


def _calls(module: Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call):
            yield node.lineno, ast.unparse(node.func)


def _attributes(module: Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute):
            yield node.lineno, ast.unparse(node)


def _clock_reads(module: Module) -> list[str]:
    """`datetime.now()` and its kin."""
    found = []
    for line, name in _attributes(module):
        owner, _, last = name.rpartition(".")
        if last in CLOCKS and owner.split(".")[-1] in ("datetime", "date"):
            found.append(module.at(line, f"reads the clock: {name}"))
    return found
