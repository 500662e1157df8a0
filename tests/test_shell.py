"""A directory in a command to copy: one line, and what a shell takes back is the directory."""

import os
import subprocess
from pathlib import Path

import pytest

from crawlkit.shell import as_argument

NAMES = ["x.crawl", "my crawl", "it's", "$HOME", "-d", "a\nb", "tab\there", "caf\u00e9", os.fsdecode(b"caf\xe9"), "q'\\\n\x7f"]


@pytest.mark.parametrize("name", NAMES)
def test_a_shell_gives_the_directory_back(name: str) -> None:
    argument = as_argument(Path(name))
    argument.encode()  # can be written anywhere
    assert argument.isprintable()
    back = subprocess.run(["bash", "-c", f"printf %s {argument}"], capture_output=True, check=True).stdout
    assert Path(os.fsdecode(back)) == Path(name)


def test_a_plain_name_stays_plain() -> None:
    assert as_argument(Path("example.com.crawl")) == "example.com.crawl"
