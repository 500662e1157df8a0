"""The command line's door, for `crawlkit` and `python -m crawlkit`: quiet from the first moment, then the command line."""

from crawlkit.surfaces.interrupts import nothing_begun


def main() -> None:
    """Run the command line and leave with its status."""
    with nothing_begun():
        from crawlkit.surfaces import cli  # noqa: PLC0415  (takes long: an interrupt must be quiet by then)
    cli.main()


if __name__ == "__main__":
    main()
