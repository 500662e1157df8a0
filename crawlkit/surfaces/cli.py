"""The command line: the commands, and how what went wrong becomes one line and an exit status."""

import errno
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click

from crawlkit.config import SETTINGS, VERSION
from crawlkit.errors import CrawlError, ExitStatus
from crawlkit.surfaces.commands import HELP, PLACES, Commands
from crawlkit.surfaces.speech import say

_OUTPUT_FAILED = frozenset({errno.ENOSPC, errno.EIO, errno.EBADF, errno.EDQUOT, errno.EFBIG})


class _ReaderGone(Exception):
    """Whoever read our output has read enough."""


class _Group(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        """Carry out a command; a closed pipe gets another name, since click would end the process on it with status 1."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _ReaderGone from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with what is said of them here, since importing them all takes half a second."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, PLACES[name].summary) for name in self.list_commands(ctx)])


@click.group(
    cls=_Group,
    commands=Commands(),
    invoke_without_command=True,
    context_settings={"help_option_names": HELP, "max_content_width": 100},
)
@click.version_option(VERSION, prog_name="crawlkit")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Crawl the web so that the crawl can be killed at any moment: one command resumes it, and the report is the same."""
    if ctx.invoked_subcommand is None:
        say(ctx.get_help())
        ctx.exit(ExitStatus.USAGE)


def main() -> int:
    """Run the command line; return its status, all of its output written."""
    _stand_in_for_closed_streams()
    status = run_cli(sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError as error:
        _forget_output()
        if status != ExitStatus.STORAGE and not isinstance(error, BrokenPipeError):
            status = _say_status(f"cannot write standard output: {error.strerror}", ExitStatus.STORAGE)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the status is decided; an interrupt now would only print a traceback
    return status


def run_cli(arguments: Sequence[str]) -> int:  # noqa: PLR0911  (one return a kind of end)
    """Carry out one command; return its exit status. Never raises, except for what ends a process anyway."""
    try:
        return int(cli.main(list(arguments), prog_name="crawlkit", standalone_mode=False) or ExitStatus.DONE)
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.ClickException as error:
        hint = _hint(error) if isinstance(error, click.UsageError) else ""
        return _say_status(" ".join(f"{error.format_message()}{hint}".split()), ExitStatus.USAGE)  # click's may have lines
    except (click.Abort, KeyboardInterrupt):
        return ExitStatus.SIGINT
    except CrawlError as error:
        return _say_status(str(error), error.exit_status)
    except _ReaderGone:
        _forget_output()
        return ExitStatus.DONE
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _OUTPUT_FAILED:
            return _say_status(f"cannot write standard output: {error.strerror}", ExitStatus.STORAGE)
        traceback.print_exc()
        return _say_status("this is a bug in crawlkit; the crawl directory is as of its last checkpoint", ExitStatus.BUG)


def _hint(error: click.UsageError) -> str:
    """Return what is added to click's own words of a mistake."""
    if error.ctx is None:
        return ""
    if isinstance(error, click.NoSuchOption) and error.ctx.info_name == "resume":
        key = error.option_name.lstrip("-").replace("-", "_")
        if key in SETTINGS:
            return f" A resume changes settings with --set {key}=VALUE"
    return f" (see {error.ctx.command_path} --help)"


def _say_status(text: str, status: ExitStatus) -> int:
    say(*(f"crawlkit: {line}" for line in text.splitlines()))
    return status


def _forget_output() -> None:
    """Let nothing be written to where it cannot be, when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _stand_in_for_closed_streams() -> None:
    """Give standard streams that the caller closed a stand-in on which reading or writing data fails, as it should."""
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_WRONLY), closefd=False)
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", closefd=False)
