"""Where secrets are read from, and what is said when they are not there."""

import re
from pathlib import Path

import pytest

from crawlkit.config import Config
from crawlkit.engine.credentials import carried_by
from crawlkit.errors import ConfigError

SECRET = "me:hunter2:x"
BASIC = b"Basic bWU6aHVudGVyMjp4"


def test_a_secret_is_read_from_a_variable_or_the_first_line_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(SECRET.encode() + b"\r\n")
    config = Config(auth=("a.test=env:A", f"[::1]=file:{tmp_path}/secret"), header=("X: 1", "x: 2"))

    extra = carried_by(config, {"A": SECRET}).extra

    assert extra.authorization == {"a.test": BASIC, "::1": BASIC}
    assert extra.everywhere == ((b"X", b"1"), (b"x", b"2"))
    assert "hunter2" not in repr(extra)
    assert "Basic" not in repr(extra)


@pytest.mark.parametrize("content", [None, b"", b"hunter2", b"me:hunter2\nmore", b"me:hunter2\0", b"me:hunter2\xff"])
def test_a_secret_that_is_not_there_or_not_usable_is_named_and_not_shown(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=rf"auth: a\.test: the file {re.escape(str(path))} ") as caught:
        carried_by(Config(auth=(f"a.test=file:{path}",)), {})
    assert "hunter" not in str(caught.value)


@pytest.mark.parametrize("environ", [{}, {"A": ""}, {"A": "hunter2"}, {"A": "me:hunter2\udcff"}])
def test_a_variable_that_is_not_set_or_not_usable_is_named_and_not_shown(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"auth: a\.test: the environment variable A ") as caught:
        carried_by(Config(auth=("a.test=env:A",)), environ)
    assert "hunter" not in str(caught.value)


def test_two_secrets_for_one_host_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"a\.test: given twice"):
        carried_by(Config(auth=("a.test=env:A", "A.test=env:B")), {"A": SECRET, "B": SECRET})


def test_the_proxy_s_secret_is_read_where_there_is_a_proxy(tmp_path: Path) -> None:
    carried = carried_by(Config(proxy="http://proxy.test", proxy_auth="env:A"), {"A": SECRET})
    assert carried.proxy_proof == BASIC
    assert carried.extra.authorization == {}
    assert "Basic" not in repr(carried)
    assert carried_by(Config(proxy_auth="env:A"), {}).proxy_proof is None
    for place, named in (("env:A", "environment variable A is not set"), (f"file:{tmp_path}/x", "cannot be read")):
        with pytest.raises(ConfigError, match=rf"^proxy_auth: the .*{named}"):
            carried_by(Config(proxy="http://proxy.test", proxy_auth=place), {})


def test_a_headers_value_is_read_from_a_variable_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"hunter2; a=b\n")
    config = Config(header=("X-Api-Key: env:KEY", f"Cookie: file:{tmp_path}/key", "X: 1"))

    extra = carried_by(config, {"KEY": "hunter3"}).extra

    assert extra.everywhere == ((b"X-Api-Key", b"hunter3"), (b"Cookie", b"hunter2; a=b"), (b"X", b"1"))
    assert "hunter" not in repr(extra)


@pytest.mark.parametrize("environ", [{}, {"A": ""}, {"A": "hunter\nX: 1"}, {"A": "hunter\xfc"}, {"A": " hunter"}])
def test_a_headers_value_that_is_not_there_or_not_usable_is_named_and_not_shown(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"header: X-Api-Key: the environment variable A ") as caught:
        carried_by(Config(header=("X-Api-Key: env:A",)), environ)
    assert "hunter" not in str(caught.value)
