"""The options that say in how many partitions a crawl runs, and where."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from crawlkit.errors import UsageError
from crawlkit.policy.partition import VIRTUAL_NODES

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

CORES = "cores"
RAY = "ray"


def partition_options(command: Decorated) -> Decorated:
    """Give a command the options that say in how many partitions a crawl runs, and where."""
    for option in (
        click.option("--ray-address", metavar="A", help="The Ray cluster to run partitions on. [default: a local one]"),
        click.option("--engine", type=click.Choice(["processes", RAY]), help="What runs partitions. [default: processes]"),
        click.option("--partitions", metavar="N", help=f"Crawl in N partitions, a process each; or {CORES}: one a core."),
    ):
        command = option(command)
    return command


def read_partitions(given: str | None) -> int | None:
    """Return the number of partitions that was asked for; UsageError if it cannot be."""
    if given is None:
        return None
    if given == CORES:
        return len(os.sched_getaffinity(0))
    if not given.isascii() or not given.isdigit():
        raise UsageError(f"--partitions {given}: a number, or {CORES}, is expected")
    partitions = int(given)
    if not 1 <= partitions <= VIRTUAL_NODES:
        raise UsageError(f"--partitions {given}: a crawl has 1 to {VIRTUAL_NODES} partitions, as many as virtual nodes")
    return partitions
