"""How often each word of a vocabulary stands in a text: exactly the words of `analysis.tokenize`, without making them.

Plain letters and digits are read in a compiled loop over the bytes of many texts at once. A run of letters that has
one beyond ASCII goes through the analyser. A word is known by 56 bits of a hash or more: with 100,000 words of a
vocabulary and a million others, the chance that any two are confused is about one in a million.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

import numpy as np
import numpy.typing as npt
import tantivy

from bowerbird.index.analysis import LEADS, MAX_WORD_BYTES, build_analyzer, tokenize
from bowerbird.index.word_kernels import (
    BEYOND,
    FIRST_UNSURE,
    I32,
    I64,
    SEPARATES,
    SIEVE_WORDS,
    U8,
    BoolArray,
    add_counts,
    count_words,
    fill_table,
    hash_lines,
)

U32 = npt.NDArray[np.uint32]

#: texts are read in pieces of about this size
PIECE_BYTES = 1 << 22


@dataclass(frozen=True, slots=True)
class WordCounts:
    """Text i has the words `words[starts[i]:starts[i + 1]]` of the vocabulary, each once; `lengths[i]` words in all."""

    starts: I64
    words: I32
    counts: I32
    lengths: I64

    def __len__(self) -> int:
        return len(self.lengths)

    def of(self, text: int) -> dict[int, int]:
        """Counts of one text by word."""
        part = slice(self.starts[text], self.starts[text + 1])
        return dict(zip(self.words[part].tolist(), self.counts[part].tolist(), strict=True))


class Vocabulary:
    """Words as the index has them, by number, to be found in texts."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        hashes = np.zeros(len(self.words), dtype=np.uint64)
        hash_lines(np.frombuffer("".join(f"{word}\n" for word in self.words).encode(), dtype=np.uint8), hashes)
        self._table = np.zeros(1 << max(2 * len(self.words), 16).bit_length(), dtype=np.uint64)
        self._sieve = np.zeros(SIEVE_WORDS, dtype=np.uint64)
        fill_table(hashes, self._table, self._sieve)

    def __len__(self) -> int:
        return len(self.words)

    def marks(self, key: bytes) -> U32:
        """A 32-bit mark of each word, for files: without the key nobody can tell which word a mark stands for."""
        mac = hashlib.blake2b(key=key, digest_size=4)
        made = bytearray()
        for word in self.words:
            one = mac.copy()
            one.update(word.encode())
            made += one.digest()
        return np.frombuffer(bytes(made), dtype="<u4").astype(np.uint32)

    def count(self, texts: Sequence[str]) -> WordCounts:
        """The words of each text."""
        parts: list[WordCounts] = []
        first = 0
        while first < len(texts):
            piece: list[bytes] = []
            size = 0
            while first < len(texts) and (not piece or size < PIECE_BYTES):
                piece.append(_encode(texts[first]))
                size += len(piece[-1])
                first += 1
            parts.append(self._count_piece(piece))
        return parts[0] if len(parts) == 1 else _join(parts)

    def _count_piece(self, piece: list[bytes]) -> WordCounts:
        classes, separators, normalised = _byte_classes()
        data = b"\n".join([*piece, b""])
        counted, spans = self._run(data, piece, classes, separators, normalised)
        if not len(spans):
            return counted
        texts, tails, lengths = [], [], counted.lengths
        for text, group in groupby(spans.tolist(), key=lambda span: span[0]):
            runs = [(begin, end) for _, begin, end in group]
            if runs[0][0] < 0:
                words = tokenize(piece[text].decode())
            else:
                words = _analyzer().analyze(b" ".join([data[begin:end] for begin, end in runs]).decode())
            texts.append(text)
            tails.append("\n".join(words).encode())
            lengths[text] += len(words)
        # words as the analyser gives them may have signs in them: here only line ends separate
        raw = np.arange(256, dtype=np.uint8)
        raw[10] = SEPARATES
        more, _ = self._run(b"\n".join([*tails, b""]), tails, raw, separators, normalised)
        starts, numbers, counts = add_counts(
            counted.starts, counted.words, counted.counts, np.array(texts, dtype=np.int64),
            more.starts, more.words, more.counts,
        )  # fmt: skip
        return WordCounts(starts, numbers, counts, lengths)

    def _run(
        self, data: bytes, piece: list[bytes], classes: U8, separators: BoolArray, normalised: BoolArray
    ) -> tuple[WordCounts, I64]:
        bounds = np.cumsum(np.fromiter(map(len, piece), dtype=np.uint64, count=len(piece)) + np.uint64(1))
        most = len(data) // 2 + 1
        words, counts = np.empty(most, dtype=np.int32), np.empty(most, dtype=np.int32)
        starts, lengths = np.empty(len(piece) + 1, dtype=np.int64), np.empty(len(piece), dtype=np.int64)
        spans = np.empty((1 if data.isascii() else most, 3), dtype=np.int64)
        found = count_words(
            np.frombuffer(data, dtype=np.uint8), bounds, classes, separators, normalised, MAX_WORD_BYTES, self._table,
            self._sieve, len(self.words), words, counts, starts, lengths, spans,
        )  # fmt: skip
        made = int(starts[-1])
        return WordCounts(starts, words[:made].copy(), counts[:made].copy(), lengths), spans[:found].copy()


@lru_cache(maxsize=1)
def _analyzer() -> tantivy.TextAnalyzer:
    return build_analyzer()


@lru_cache(maxsize=1)
def _byte_classes() -> tuple[U8, BoolArray, BoolArray]:
    """What each byte is; the code points that separate words, asked of the analyser; and which bytes it prepares."""
    classes = np.full(256, SEPARATES, dtype=np.uint8)
    for byte in range(128):
        if chr(byte).isalnum():
            classes[byte] = ord(chr(byte).lower())
    classes[128:] = BEYOND
    separators = np.zeros(FIRST_UNSURE, dtype=np.bool_)
    for point in range(128, FIRST_UNSURE):
        separators[point] = not _analyzer().analyze(chr(point))
    normalised = np.zeros(256, dtype=np.bool_)
    normalised[list(LEADS)] = True
    return classes, separators, normalised


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return text.encode("utf-8", "ignore")


def _join(parts: list[WordCounts]) -> WordCounts:
    offsets = np.cumsum([0, *(len(part.words) for part in parts)])
    starts = [part.starts[:-1] + offset for part, offset in zip(parts, offsets[:-1], strict=True)]
    return WordCounts(
        np.concatenate([*starts, offsets[-1:]]).astype(np.int64),
        np.concatenate([part.words for part in parts]) if parts else np.zeros(0, dtype=np.int32),
        np.concatenate([part.counts for part in parts]) if parts else np.zeros(0, dtype=np.int32),
        np.concatenate([part.lengths for part in parts]) if parts else np.zeros(0, dtype=np.int64),
    )
