"""When a host may be asked again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlkit.policy.politeness import Contact, gap_s, is_too_long, next_start_s, without_jump

NEVER = Contact(0.0, 0.0, 0.0)

times_s = st.floats(0, 1e9)
contacts = st.builds(Contact, times_s, times_s, times_s)


@pytest.mark.parametrize(("ours_s", "theirs_s", "gap"), [(1.0, 0.0, 1.0), (1.0, 30.0, 30.0), (5.0, 2.0, 5.0), (0.0, 0.0, 0.0)])
def test_the_gap_is_the_longer_of_ours_and_theirs(ours_s: float, theirs_s: float, gap: float) -> None:
    assert gap_s(ours_s, theirs_s) == gap


@pytest.mark.parametrize(
    ("crawl_delay_s", "too_long"), [(None, False), (0.0, False), (60.0, False), (60.1, True), (1e300, True)]
)
def test_a_crawl_delay_is_too_long_only_above_what_is_accepted(crawl_delay_s: float | None, too_long: bool) -> None:
    assert is_too_long(crawl_delay_s, 60.0) is too_long


@pytest.mark.parametrize(
    ("contact", "concurrency", "not_before_s", "start_s"),
    [
        (NEVER, 1, 0.0, 2.0),  # long past
        (Contact(100.0, 107.0, 0.0), 1, 0.0, 109.0),  # after the end
        (Contact(100.0, 107.0, 0.0), 2, 0.0, 102.0),  # after the start
        (Contact(100.0, 90.0, 0.0), 1, 0.0, 102.0),  # the end is that of a request before
        (Contact(100.0, 101.0, 160.0), 1, 0.0, 160.0),  # asked to be left alone
        (Contact(100.0, 101.0, 160.0), 4, 0.0, 160.0),
        (Contact(100.0, 101.0, 0.0), 1, 200.0, 200.0),  # a gap after an unclean end
    ],
)
def test_the_next_start_follows_from_what_happened(
    contact: Contact, concurrency: int, not_before_s: float, start_s: float
) -> None:
    assert next_start_s(contact, 2.0, concurrency, not_before_s) == start_s


@given(contacts, st.floats(0, 1e6), st.integers(1, 8), times_s)
def test_no_start_is_sooner_than_anything_allows(contact: Contact, gap: float, concurrency: int, floor_s: float) -> None:
    start_s = next_start_s(contact, gap, concurrency, floor_s)

    assert start_s >= max(contact.last_start_s + gap, contact.hold_until_s, floor_s)
    assert concurrency > 1 or start_s >= contact.last_end_s + gap


def test_a_contact_in_the_past_is_left_alone() -> None:
    contact = Contact(90.0, 100.0, 500.0)

    assert without_jump(contact, 100.0) is contact


def test_a_contact_ahead_of_the_clock_is_moved_back_with_what_was_left_of_its_hold() -> None:
    assert without_jump(Contact(1000.0, 1010.0, 1040.0), 100.0) == Contact(100.0, 100.0, 130.0)


def test_a_hold_that_was_over_at_the_last_contact_is_over_now() -> None:
    assert without_jump(Contact(1000.0, 1010.0, 500.0), 100.0).hold_until_s == 0.0


@given(contacts, times_s, st.floats(0, 1e6))
def test_after_a_jump_nothing_waits_longer_than_it_would_have(contact: Contact, now: float, gap: float) -> None:
    moved = without_jump(contact, now)
    last_s = max(contact.last_start_s, contact.last_end_s)
    left_s = max(0.0, next_start_s(contact, gap, 1, 0.0) - max(last_s, now))

    assert max(moved.last_start_s, moved.last_end_s) <= now
    assert next_start_s(moved, gap, 1, 0.0) - now <= left_s + 1e-3
