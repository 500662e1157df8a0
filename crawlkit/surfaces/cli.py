"""The command line: the commands, and how what went wrong becomes one line and an exit status."""

import os
import sys
import traceback
from collections.abc import Sequence

import click

from crawlkit.config import VERSION
from crawlkit.errors import CrawlError, ExitStatus
from crawlkit.surfaces.config_command import config_group
from crawlkit.surfaces.demo import demo_command
from crawlkit.surfaces.report_command import report_command
from crawlkit.surfaces.run_command import resume_command, run_command
from crawlkit.surfaces.status_command import status_command


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(VERSION, prog_name="crawlkit")
def cli() -> None:
    """Crawl the web so that the crawl can be killed at any moment: one command resumes it, and the report is the same."""


for command in (run_command, resume_command, report_command, status_command, config_group, demo_command):
    cli.add_command(command)


def main() -> None:
    """Run the command line and leave with its status."""
    status = run_cli(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_output()
    except OSError as error:
        status = _say_status(f"cannot write standard output: {error.strerror}", ExitStatus.STORAGE)
    sys.exit(status)


def run_cli(arguments: Sequence[str]) -> int:  # noqa: PLR0911  (one return a kind of end)
    """Carry out one command; return its exit status. Never raises, except for what ends a process anyway."""
    try:
        return int(cli.main(list(arguments), prog_name="crawlkit", standalone_mode=False) or ExitStatus.DONE)
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.ClickException as error:
        hint = f" (see {error.ctx.command_path} --help)" if isinstance(error, click.UsageError) and error.ctx else ""
        return _say_status(f"{error.format_message()}{hint}", ExitStatus.USAGE)
    except (click.Abort, KeyboardInterrupt):
        return ExitStatus.SIGINT
    except CrawlError as error:
        return _say_status(str(error), error.exit_status)
    except BrokenPipeError:  # whoever read our output has read enough
        _forget_output()
        return ExitStatus.DONE
    except Exception:
        traceback.print_exc()
        return _say_status("this is a bug in crawlkit; the crawl directory is as of its last checkpoint", ExitStatus.BUG)


def _say_status(text: str, status: ExitStatus) -> int:
    click.echo(f"crawlkit: {text}", err=True)
    return status


def _forget_output() -> None:
    """Let nothing be written to a pipe that is closed when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
