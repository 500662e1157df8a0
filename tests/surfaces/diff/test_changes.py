"""The merge of two sorted streams of records."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from crawlkit.surfaces.diff.changes import ChangeKind, changes
from crawlkit.surfaces.diff.sides import COMPARED, Known

URLS = st.text("ab/é日", min_size=1, max_size=3)
FIELDS = st.fixed_dictionaries({"status": st.sampled_from([None, 200, 404]), "title": st.sampled_from([None, "a", "b"])})
SIDES = st.dictionaries(URLS, FIELDS)


def side(records: dict[str, dict[str, Any]]) -> list[Known]:
    in_order = sorted(records.items(), key=lambda item: item[0].encode())
    return [Known(url=url, **fields) for url, fields in in_order]


@given(SIDES, SIDES)
def test_every_url_is_added_removed_changed_or_the_same(old: dict[str, dict[str, Any]], new: dict[str, dict[str, Any]]) -> None:
    found = list(changes(iter(side(old)), iter(side(new))))
    assert [change.url for change in found] == sorted(old.keys() | new.keys(), key=str.encode)
    for change in found:
        was, now = old.get(change.url), new.get(change.url)
        if was is None or now is None:
            assert change.change is (ChangeKind.ADDED if was is None else ChangeKind.REMOVED)
            assert (change.before, change.after) == (was, now)
        else:
            differing = [name for name in was if was[name] != now[name]]
            assert change.change is (ChangeKind.CHANGED if differing else ChangeKind.SAME)
            assert change.before == {name: was[name] for name in differing}
            assert change.after == {name: now[name] for name in differing}


def test_what_one_side_lacks_is_not_compared() -> None:
    old = Known(url="a", status=200, title="x")
    new = Known(url="a", digest="sha256:00", title="x")
    assert [change.change for change in changes(iter([old]), iter([new]))] == [ChangeKind.SAME]


def test_every_field_is_compared() -> None:
    for name in COMPARED:
        old, new = (Known(url="a", **{name: value}) for value in (None, "x"))  # type: ignore[arg-type]
        (change,) = changes(iter([old]), iter([new]))
        assert (change.before, change.after) == ({name: None}, {name: "x"})


def test_fields_come_in_one_order() -> None:
    old = Known(**{"url": "a", **dict.fromkeys(COMPARED)})  # type: ignore[arg-type]
    new = Known(**{"url": "a", **dict.fromkeys(COMPARED, "x")})  # type: ignore[arg-type]
    (change,) = changes(iter([old]), iter([new]))
    assert tuple(change.after or ()) == COMPARED
    assert msgspec.json.encode(change).startswith(b'{"url":"a","change":"changed","before":{"kind":null,')
