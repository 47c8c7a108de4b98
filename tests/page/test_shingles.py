from __future__ import annotations

import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.page.shingles import (
    BANDS,
    SKETCH_BYTES,
    NearDuplicates,
    band_keys,
    resemblance,
    sketch_text,
)


def jaccard(a: list[str], b: list[str]) -> float:
    first, second = ({tuple(words[i : i + 5]) for i in range(len(words) - 4)} for words in (a, b))
    return len(first & second) / len(first | second)


def make_pair(rng: random.Random, words: int, common: float) -> tuple[list[str], list[str]]:
    """Two texts whose shingles have a Jaccard coefficient of about `common`."""
    shared = round(2 * words * common / (1 + common))
    first = [f"w{rng.getrandbits(40)}" for _ in range(words + 4)]
    second = first[: shared + 4] + [f"w{rng.getrandbits(40)}" for _ in range(words - shared)]
    return first, second


def sketch(words: list[str]) -> bytes:
    return sketch_text(" ".join(words))


@settings(deadline=None)  # the first call loads a kernel
@given(st.text(max_size=400))
def test_a_text_resembles_itself_in_any_case_and_spacing(text: str) -> None:
    made = sketch_text(text)
    assert len(made) == SKETCH_BYTES
    assert resemblance(made, made) == 1.0
    ascii_upper = "".join(c.upper() if c.isascii() else c for c in text)
    assert sketch_text(f"  {ascii_upper} .,!") == made


@settings(deadline=None)  # the first call loads a kernel
@given(st.binary(max_size=300), st.binary(max_size=300))
def test_resemblance_is_symmetric_and_a_share(a: bytes, b: bytes) -> None:
    first, second = sketch_text(a.decode("latin-1")), sketch_text(b.decode("latin-1"))
    assert resemblance(first, second) == resemblance(second, first)
    assert 0.0 <= resemblance(first, second) <= 1.0


def test_empty_and_short_texts() -> None:
    assert resemblance(sketch_text(""), sketch_text(" ?! ")) == 1.0
    assert resemblance(sketch_text(""), sketch_text("word")) == 0.0
    assert resemblance(sketch_text("one two three"), sketch_text("One, two: three.")) == 1.0
    assert resemblance(sketch_text("one two three"), sketch_text("one two four")) < 0.1


def test_letters_beyond_ascii_are_told_apart() -> None:
    assert sketch_text("äöü") != sketch_text("ãõû")
    assert sketch_text("Ã") != sketch_text("ã")


def test_estimate_is_near_the_true_jaccard() -> None:
    rng = random.Random(1)
    vocabulary = [f"w{i}" for i in range(3000)]
    errors = []
    for _ in range(300):
        first = rng.choices(vocabulary, k=rng.randint(30, 1200))
        rate = rng.random() * 0.15
        second = [rng.choice(vocabulary) if rng.random() < rate else word for word in first]
        errors.append(resemblance(sketch(first), sketch(second)) - jaccard(first, second))
    assert np.mean(np.abs(errors)) < 0.06
    assert abs(np.mean(errors)) < 0.02  # and not biased


def test_is_the_same_in_another_process() -> None:
    text = "Nothing about this may depend on a seed: not even the order of things."
    program = f"from bowerbird.page.shingles import *\nprint(sketch_text({text!r}).hex())"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == [sketch_text(text).hex()]


def test_band_keys_change_with_their_band_only() -> None:
    one = bytearray(sketch_text("a b c d e f g h i j k l m n o p"))
    other = bytearray(one)
    other[0] ^= 1
    first, second = band_keys(bytes(one)), band_keys(bytes(other))
    assert first.shape == (BANDS,)
    assert first.dtype == np.uint64
    assert first[0] != second[0]
    assert (first[1:] == second[1:]).all()


@pytest.mark.parametrize(("common", "least", "most"), [(0.95, 0.95, 1.0), (0.5, 0.0, 0.02)])
def test_finds_near_duplicates(common: float, least: float, most: float) -> None:
    rng = random.Random(2)
    memory = NearDuplicates(slots_per_band=1 << 12)
    pairs = [make_pair(rng, rng.randint(150, 800), common) for _ in range(300)]
    for page, (first, _) in enumerate(pairs):
        assert memory.find(sketch(first), page) is None
    found = [memory.find(sketch(second), 1000 + page) for page, (_, second) in enumerate(pairs)]
    share = sum(answer == page for page, answer in enumerate(found)) / len(pairs)
    assert least <= share <= most
    assert all(answer in (page, None) for page, answer in enumerate(found))


def test_a_page_is_not_its_own_duplicate_and_the_first_stays_first() -> None:
    memory = NearDuplicates(slots_per_band=64)
    text = sketch_text(" ".join(map(str, range(100))))
    assert memory.find(text, 7) is None
    assert memory.find(text, 7) is None
    assert memory.find(text, 8) == 7
    assert memory.find(text, 9) == 7
    assert memory.find(text, 7) in (8, 9, None)
    assert memory.find(sketch_text(""), 10) is None
    assert memory.find(sketch_text(""), 11) is None


def test_memory_is_bounded_and_forgets_the_oldest() -> None:
    memory = NearDuplicates(slots_per_band=16)
    sketches = [sketch_text(" ".join(f"{n}x{i}" for i in range(50))) for n in range(200)]
    for page, made in enumerate(sketches):
        memory.find(made, page)
    assert memory.find(sketches[0], 1000) is None
    assert memory.find(sketches[-1], 1001) == 199
