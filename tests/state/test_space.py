"""Free space is looked at where a crawl lies, and where its archive does."""

from pathlib import Path

import pytest

from crawlkit.errors import StorageError
from crawlkit.state.space import check_space, free_bytes

FULL = Path("/proc")
"""A file system on which nothing is ever free."""


def test_a_directory_that_is_still_to_be_made_has_what_its_parent_has(tmp_path: Path) -> None:
    check_space(tmp_path / "a" / "b", 1)
    with pytest.raises(StorageError, match=f"0.0MiB are free for {FULL}/new.crawl, less than the 1B of --min-free-disk"):
        check_space(FULL / "new.crawl", 1)
    check_space(FULL / "new.crawl", 0)


def test_an_archive_on_another_disk_is_looked_at_too(tmp_path: Path) -> None:
    assert free_bytes(tmp_path) > 0
    check_space(tmp_path, 1)
    (tmp_path / "warc").symlink_to(FULL)
    assert free_bytes(tmp_path) == 0
    with pytest.raises(StorageError, match=f"0.0MiB are free for {tmp_path}/warc, less than the 1B of --min-free-disk"):
        check_space(tmp_path, 1)
    check_space(tmp_path, 0)
