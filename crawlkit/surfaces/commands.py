"""The commands by name, each imported when it is asked for: `--help` needs none of them, and a command only itself."""

import gc
from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from types import MappingProxyType

import click
import msgspec

from crawlkit.surfaces.garbage import begin_collecting
from crawlkit.surfaces.interrupts import nothing_begun


class Place(msgspec.Struct, frozen=True):
    """Where a command is to be found, and what is said of it in the list of all."""

    module: str
    attribute: str
    summary: str


PLACES: Mapping[str, Place] = MappingProxyType(
    {
        "run": Place("run_command", "run_command", "Start a crawl from SEEDs (URLs) into a crawl directory."),
        "resume": Place("run_command", "resume_command", "Go on with the crawl in DIR, after a crash, a stop or a limit."),
        "report": Place(
            "report_command",
            "report_command",
            "Write the results of the crawl in DIR, sorted by URL, or a view on the site's health.",
        ),
        "export": Place(
            "export_command",
            "export_command",
            "Write the records of the crawl in DIR to FILE, sorted by URL, with a sidecar FILE.meta.json.",
        ),
        "reparse": Place(
            "reparse_command",
            "reparse_command",
            "Read the archived pages of the crawl in DIR anew, and pick other fields from them, without the network.",
        ),
        "gather": Place(
            "gather_command",
            "gather_command",
            "Bring the partitions of the crawl in DIR that lie on other machines of a Ray cluster to this one.",
        ),
        "diff": Place(
            "diff_command",
            "diff_command",
            "Say what differs in B from A, each a crawl directory or a report of one with --format jsonl.",
        ),
        "search": Place(
            "search_command", "search_command", "Show the pages of the crawl in DIR that have all of WORDS, the best first."
        ),
        "status": Place(
            "status_command",
            "status_command",
            "Say how far the crawl in DIR is: at this moment while it runs, else as of its last checkpoint.",
        ),
        "explain": Place(
            "explain_command",
            "explain_command",
            "Say why URL was, or was not, crawled by the crawl in DIR, and how to change that; no request is made.",
        ),
        "pause": Place("steering_commands", "pause_command", "Let the crawl that runs in DIR start no new fetches."),
        "continue": Place("steering_commands", "continue_command", "Let the crawl that was paused in DIR go on."),
        "hosts": Place(
            "hosts_command",
            "hosts_command",
            "List the hosts of the crawl in DIR that have URLs, or were held or dropped; or do something about one of them.",
        ),
        "add": Place("steering_commands", "add_command", "Add SEEDs (URLs) to the crawl in DIR, at depth 0."),
        "ui": Place("ui_command", "ui_command", "Show the crawl in DIR as a page in a browser, whether it runs or not."),
        "verify": Place("verify", "verify_command", "Check the crawl in DIR, which must not be running."),
        "robots": Place(
            "robots_command", "robots_command", "Say whether robots.txt allows URL, which line decided, and the delay in force."
        ),
        "config": Place("config_command", "config_group", "Show or check settings."),
        "demo": Place(
            "demo", "demo_command", "Crawl a built-in site on loopback, kill -9 the crawl half way, resume, compare."
        ),
    }
)


HELP = ["-h", "--help"]


class Commands(MutableMapping[str, click.Command]):
    """All commands; one is imported when it is looked up."""

    def __init__(self) -> None:
        self._known: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._known:
            place = PLACES[name]
            with nothing_begun():
                module = import_module(f"crawlkit.surfaces.{place.module}")
            if not gc.isenabled():  # this is the process of the command line, which has put it off so far
                begin_collecting()
            command: click.Command = getattr(module, place.attribute)
            command.context_settings.setdefault("help_option_names", HELP)  # click keeps those of whoever asks first
            self._known[name] = command
        return self._known[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._known[name] = command

    def __delitem__(self, name: str) -> None:
        del self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(PLACES)

    def __len__(self) -> int:
        return len(PLACES)
