"""`crawlkit verify`: check every invariant of a crawl on disk, and make a sound crawl of a damaged one."""

import time
from pathlib import Path

import click
import msgspec

from crawlkit.engine.partitions import Partitions, whole_of
from crawlkit.engine.repair import Repaired, drop_filter, repair
from crawlkit.engine.verify import Thoroughness, verify
from crawlkit.engine.verify_partitions import verify_partitions
from crawlkit.errors import ExitStatus, StateDamaged, StateError, UsageError
from crawlkit.shell import as_argument
from crawlkit.state.findings import Broken, Report, Rule
from crawlkit.state.partitions import is_partitioned
from crawlkit.surfaces.speech import say


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What `verify --json` prints: broken rules with their count and first examples, and how much was looked at.

    `repaired` is the crawl that `--repair` made, null where it made none.
    """

    whole: bool
    broken: dict[str, Broken]
    checked: dict[str, int]
    repaired: Repaired | None = None


@click.command("verify")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--quick", "how", flag_value="quick", help="Look at single values and keys only.")
@click.option("--full", "how", flag_value="full", default=True, help="Look at every row, record and link (default).")
@click.option("--deep", "how", flag_value="deep", help="Look at every byte of the archive too.")
@click.option("--repair", "mend", is_flag=True, help="If DIR is damaged, make DIR.repaired of what can be saved.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def verify_command(directory: Path, how: str, mend: bool, as_json: bool) -> int:
    """Check the crawl in DIR, which must not be running.

    Ends with 0 if every rule holds, 1 if one does not, 3 if DIR cannot be opened. With --repair it ends with 0 if DIR is
    sound, or if DIR.repaired is now; DIR stays as it is.
    """
    _refuse_partition(directory)
    thoroughness = Thoroughness(how)
    if mend:
        report, repaired = _mend(directory, thoroughness)
    else:
        report, repaired = _checked(directory, thoroughness), None
    if as_json:
        broken = {rule.value: found for rule, found in report.broken.items()}
        verdict = Verdict(whole=report.whole, broken=broken, checked=dict(report.checked), repaired=repaired)
        click.echo(msgspec.json.encode(verdict, enc_hook=str))
    else:
        click.echo("\n".join(_as_text(directory, report, repaired)))
    return ExitStatus.DONE if report.whole else ExitStatus.PAGES_FAILED


def _checked(directory: Path, thoroughness: Thoroughness) -> Report:
    if is_partitioned(directory):
        return verify_partitions(Partitions.read(directory), thoroughness).report
    return verify(directory, thoroughness)


def _refuse_partition(directory: Path) -> None:
    """UsageError for a partition of a crawl: what it lacks others may have, and what they sent it cannot be had again."""
    whole = whole_of(directory)
    if whole is not None:
        raise UsageError(f"{directory} is a partition: check the whole crawl, crawlkit verify {as_argument(whole)}")


def _mend_partitions(partitions: Partitions, thoroughness: Thoroughness) -> Report:
    """Return the report on partitions that are sound, or are once filters were dropped; StateError where more is damaged."""
    try:
        checked = verify_partitions(partitions, thoroughness)
        if checked.report.broken.keys() == {Rule.FILTER}:
            for member, report in zip(partitions.members, checked.each, strict=True):
                if report.broken:
                    drop_filter(member)
            checked = verify_partitions(partitions, thoroughness)
        if checked.report.whole:
            return checked.report
        say(*_as_text(partitions.directory, checked.report, None))
    except StateDamaged as error:
        say(f"crawlkit: {error}")
    raise StateError(
        f"partitions of {partitions.directory} cannot be repaired, as what others sent to a damaged one is not sent again: "
        "restore the whole directory from a copy, or crawl anew"
    )


def _mend(directory: Path, thoroughness: Thoroughness) -> tuple[Report, Repaired | None]:
    """Return the last report on what is sound now: DIR, or the crawl that was made of it."""
    if is_partitioned(directory):
        return _mend_partitions(Partitions.read(directory), thoroughness), None
    try:
        report = verify(directory, thoroughness)
        if report.broken.keys() == {Rule.FILTER}:
            drop_filter(directory)  # a cache: a resume makes it anew
            report = verify(directory, thoroughness)
        if report.whole:
            return report, None
        say(*_as_text(directory, report, None))
    except StateDamaged as error:
        say(f"crawlkit: {error}")
    repaired = repair(directory, time.time())
    return verify(repaired.directory, Thoroughness.FULL), repaired


def _as_text(directory: Path, report: Report, repaired: Repaired | None) -> list[str]:
    lines = [] if repaired is None else _repaired_lines(repaired)
    for rule, broken in report.broken.items():
        lines.append(f"BROKEN {rule}: {broken.count}")
        lines += [f"  {example}" for example in broken.examples]
    counted = ", ".join(f"{count} {what}" for what, count in report.checked.items())
    lines.append(f"{'every rule holds' if report.whole else 'damaged'} ({counted})")
    if not report.whole and not is_partitioned(directory):
        lines.append(f"to save what can be saved: crawlkit verify --repair {as_argument(directory)}")
    return lines


def _repaired_lines(repaired: Repaired) -> list[str]:
    return [
        f"made {repaired.directory}: {repaired.records} records, {repaired.queued} URLs queued; its reports say `degraded`",
        *[f"LOST {loss}" for loss in repaired.lost],
        *([] if repaired.lost else ["nothing is known to be lost"]),
        f"go on with: crawlkit resume {as_argument(repaired.directory)}",
    ]
