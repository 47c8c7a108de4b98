"""The text of pages: which words stand where, as a function of the page and the version of its text."""

from __future__ import annotations

import math

import numpy as np

from bowerbird.lab.world.chance import Words64, mix, mix_array, step, unit
from bowerbird.lab.world.words import ADJECTIVE_AT, NOUN_AT, Topic, title_words, zipf_table

_COUNT = np.arange(1 << 14, dtype=np.uint64)
_SPREAD_MEAN = (math.sinh(0.6) / 0.6) ** 2


def _marks() -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """By eight bits: how a token is joined to the one before (see words.VARIANTS)."""
    marks = np.zeros(256, dtype=np.int64)
    marks[0:15], marks[15:34], marks[34:37] = 1, 2, 3
    return marks


_MARKS = _marks()


def spread(key: int) -> float:
    """How many times the mean a page is long: mean 1, from 0.27 to 2.9."""
    bits = step(key)
    return math.exp(1.2 * (unit(bits) + unit(step(bits)) - 1.0)) / _SPREAD_MEAN


def draw_bits(state: int, count: int) -> Words64:
    """The random bits of `count` words."""
    return mix_array(state, _COUNT[:count])


def revise(bits: Words64, state: int, text_key: int) -> None:
    """Write another version over a half of the text that depends on the version."""
    count = len(bits)
    begin = mix(state, text_key) % (count // 2 + 1)
    half = max(count // 2, 1)
    bits[begin : begin + half] = draw_bits(mix(state, text_key, 1), half)[: count - begin]


def blur(bits: Words64, state: int) -> None:
    """Change about one word in 64, as a mirror does."""
    own = draw_bits(state, len(bits))
    changed = own >> np.uint64(58) == 0
    changed[0] = True
    bits[changed] = own[changed]


def spell(bits: Words64, topic: Topic, key: int) -> list[str]:
    """The tokens that random bits stand for; the words of the page's title come often."""
    words = zipf_table()[bits >> np.uint64(48)].astype(np.int64)
    adjective, first, second = title_words(key)
    own = np.array([ADJECTIVE_AT + adjective, NOUN_AT + first, NOUN_AT + second, NOUN_AT + first])
    chosen = (bits & np.uint64(15)) == 0
    words[chosen] = own[(bits[chosen] >> np.uint64(4)) & np.uint64(3)]
    marks = _MARKS[(bits >> np.uint64(8)) & np.uint64(255)]
    marks[0] = 2
    words += marks * topic.size
    tokens: list[str] = topic.tokens[words].tolist()
    tokens[0] = tokens[0][2:]
    return tokens
