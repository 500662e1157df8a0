import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlkit.model import Response
from crawlkit.policy.facts import read_answer
from crawlkit.policy.novelty import BREAK
from crawlkit.policy.simhash import simhash_of
from crawlkit.policy.wanted import Wanted


def words(rng: random.Random, count: int, vocabulary: int = 5_000) -> list[str]:
    return [f"word{rng.randrange(vocabulary)}" for _ in range(count)]


def hashed(text: str) -> int:
    simhash = simhash_of(text)
    assert simhash is not None
    return simhash


@pytest.mark.parametrize("text", ["", " \n", BREAK, "... !?"])
def test_a_text_without_words_has_none(text: str) -> None:
    assert simhash_of(text) is None


def test_the_bits_are_these_on_every_machine() -> None:
    assert hashed("The quick brown fox jumps over the lazy dog") == 0xA8D3198C9CA91441


def test_case_punctuation_and_nodes_make_no_difference() -> None:
    assert hashed("One, two: three (four)!") == hashed(f"one two\n{BREAK}THREE four")
    assert hashed("one two three four") != hashed("four three two one")
    assert hashed("Größe über alles hier") != hashed("Grösse über alles hier")


@given(st.text(min_size=1))
def test_any_text_has_64_bits_or_none(text: str) -> None:
    simhash = simhash_of(text)
    assert simhash is None or 0 <= simhash < 1 << 64
    assert simhash == simhash_of(text)


def test_texts_that_differ_in_a_word_are_near_and_others_are_far() -> None:
    rng = random.Random(1)
    near, far = [], []
    for _ in range(100):
        text = words(rng, 1_000)
        other = [*text[:500], "changed", *text[501:]]
        near.append((hashed(" ".join(text)) ^ hashed(" ".join(other))).bit_count())
        far.append((hashed(" ".join(text)) ^ hashed(" ".join(words(rng, 1_000)))).bit_count())
    assert sorted(near)[89] <= 3
    assert min(far) > 12
    assert 28 < sum(far) / len(far) < 36


def test_each_bit_is_set_in_half_of_all_texts() -> None:
    hashes = [hashed(f"a{n} b{n * 7}") for n in range(2_000)]
    shares = [sum(simhash >> bit & 1 for simhash in hashes) for bit in range(64)]
    assert all(400 < share < 1_200 for share in shares)  # a tie of the two shingles is a 0: a quarter each way, a half none


def test_2000_words_take_a_millisecond_or_so() -> None:
    text = " ".join(words(random.Random(2), 2_000))
    best_s = min(timed(text) for _ in range(300))
    assert best_s < 0.003  # on a slow machine


def timed(text: str) -> float:
    start = time.perf_counter()
    simhash_of(text)
    return time.perf_counter() - start


def test_a_page_has_one_where_it_was_asked_for() -> None:
    response = Response(200, ((b"content-type", b"text/html"),), b"<nav>menu</nav><p>one two three")
    assert read_answer("http://a.test/", response).simhash is None
    assert read_answer("http://a.test/", response, Wanted(simhash=True)).simhash == hashed("one two three")
