"""The end of a crawl in partitions is told by two waves alike, and by nothing less."""

from collections.abc import Callable

import msgspec
import pytest

from crawlkit.cluster.messages import Standing
from crawlkit.cluster.waves import Verdict, Waves

QUIET = Standing(
    number=0, wave=1, passive=True, posted=0, taken=0, requests=5, records=5, held=0, used=5, most=None, allowed=0, wants=False
)
MEMBERS = (0, 1)


def wave(waves: Waves, *standings: Standing) -> Verdict | None:
    verdict = None
    number = waves.number
    for place, standing in enumerate(standings):
        verdict = waves.answer(msgspec.structs.replace(standing, number=place, wave=number), MEMBERS)
    return verdict


def is_done(verdict: Verdict | None) -> bool:
    assert verdict is not None
    return verdict.done


def test_two_waves_alike_in_which_all_are_passive_are_the_end() -> None:
    waves = Waves()
    waves.restart()
    assert not is_done(wave(waves, QUIET, QUIET))
    assert is_done(wave(waves, QUIET, QUIET))


@pytest.mark.parametrize(
    "change",
    [
        lambda s: msgspec.structs.replace(s, passive=False),
        lambda s: msgspec.structs.replace(s, requests=s.requests + 1),
        lambda s: msgspec.structs.replace(s, records=s.records + 1),
        lambda s: msgspec.structs.replace(s, held=s.held + 1),
        lambda s: msgspec.structs.replace(s, posted=1),
        lambda s: msgspec.structs.replace(s, taken=1),
        lambda s: msgspec.structs.replace(s, allowed=1),
    ],
)
def test_whatever_changed_between_two_waves_makes_a_third_needed(change: Callable[[Standing], Standing]) -> None:
    waves = Waves()
    waves.restart()
    wave(waves, QUIET, QUIET)
    assert not is_done(wave(waves, QUIET, change(QUIET)))
    assert not is_done(wave(waves, QUIET, QUIET))
    assert is_done(wave(waves, QUIET, QUIET))


def test_letters_on_the_way_are_not_the_end() -> None:
    waves = Waves()
    waves.restart()
    posted = msgspec.structs.replace(QUIET, posted=3)
    for _ in range(3):
        assert not is_done(wave(waves, posted, QUIET))
    taken = msgspec.structs.replace(QUIET, taken=3)
    assert not is_done(wave(waves, posted, taken))
    assert is_done(wave(waves, posted, taken))


def test_an_answer_to_an_earlier_wave_is_passed_over() -> None:
    waves = Waves()
    first = waves.restart()
    waves.restart()
    assert waves.answer(msgspec.structs.replace(QUIET, number=0, wave=first), (0,)) is None


def test_waves_before_a_restart_do_not_count() -> None:
    waves = Waves()
    waves.restart()
    wave(waves, QUIET, QUIET)
    waves.restart()
    assert not is_done(wave(waves, QUIET, QUIET))


def test_letters_of_a_partition_that_is_not_asked_any_more_are_known() -> None:
    waves = Waves(letters_apart=3)
    taken = msgspec.structs.replace(QUIET, taken=3)
    waves.restart()
    wave(waves, taken, QUIET)
    assert is_done(wave(waves, taken, QUIET))
