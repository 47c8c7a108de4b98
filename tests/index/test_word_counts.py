"""Words counted in a compiled loop are those of the analyser, whatever the text."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bowerbird.index import word_counts
from bowerbird.index.analysis import tokenize
from bowerbird.index.word_counts import Vocabulary

PLAIN = "abz AZ09 _-.,/\n\t'"
ODD = "éÉßøΣςжЖ中文あアก½²ⅷ…—\u00a0“”ªµ\u0301\u0338\u212a\u212b⑴ﬁ\u200b\u0660\U0001f600\U00020000\x01\x00�"
letters = st.sampled_from(PLAIN) | st.sampled_from(ODD) | st.characters()
texts = st.lists(st.text(letters, max_size=60), max_size=6)


def check(given_texts: list[str], vocabulary: Vocabulary) -> None:
    counted = vocabulary.count(given_texts)
    assert len(counted) == len(given_texts)
    for place, text in enumerate(given_texts):
        words = tokenize(text)
        expected = Counter(word for word in words if word in set(vocabulary.words))
        assert {vocabulary.words[number]: count for number, count in counted.of(place).items()} == expected
        assert counted.lengths[place] == len(words)


@settings(max_examples=400, deadline=None)
@given(texts, st.integers(0, 2**32))
@example(["a⑴ (1)", "x=\u0338y", "\u212b \u212b中"], 1)
@example(["a" * 80, "a" * 81, "é" * 80, "ß" * 41 + " " + "ß" * 40], 1)
@example(["\ud800 abc é", "abc\x01def", ""], 1)
def test_words_are_counted_as_the_analyser_makes_them(given_texts: list[str], seed: int) -> None:
    all_words = sorted({word for text in given_texts for word in tokenize(text)})
    check(given_texts, Vocabulary(all_words))
    some = [word for word in all_words if random.Random(f"{seed}{word}").random() < 0.5]
    check(given_texts, Vocabulary([*some, "absent"]))


def test_many_texts_are_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_counts, "PIECE_BYTES", 10)
    given_texts = ["red car", "", "Ein rotes Auto fährt", "car car", "東京 car", "bus"]
    vocabulary = Vocabulary(["auto", "car", "fahrt", "東"])
    check(given_texts, vocabulary)
    assert vocabulary.count(given_texts).starts.tolist() == [0, 1, 1, 3, 4, 6, 6]
    assert len(vocabulary.count([])) == 0
    assert Vocabulary([]).count(["red car"]).lengths.tolist() == [2]


def test_marks_of_words_depend_on_the_key() -> None:
    vocabulary = Vocabulary(["car", "red"])
    marks = vocabulary.marks(b"secret")
    assert marks.dtype == np.uint32
    assert np.array_equal(marks, Vocabulary(["car", "red"]).marks(b"secret"))
    assert (
        len(set(marks.tolist()) | set(vocabulary.marks(b"another").tolist()) | set(vocabulary.marks(b"").tolist())) == 6
    )
