"""`python -m crawlkit`: the command line."""

from crawlkit.surfaces.cli import main

main()
