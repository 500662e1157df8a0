"""What is said on standard error."""

import contextlib

import click


def say(*lines: str) -> None:
    """Write lines to standard error; if nobody reads it any more, what is being done goes on without."""
    with contextlib.suppress(OSError):
        for line in lines:
            click.echo(line, err=True)
