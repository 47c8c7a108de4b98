"""A sample of targets, drawn by weight, and which of them each page reaches."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier.graph import FrontierGraph
from bowerbird.appraise.seeds import sample_kernels as kernels
from bowerbird.appraise.seeds.problem import F64, I64, SeedProblem
from bowerbird.appraise.threads import cut_rows, share, threads_for

U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]

WORD = 64
BLOCK = WORD * kernels.WORDS
#: bytes of a word with its block's number, and again while they are sorted by page; and some more, for how many words
#: there will be is told from a few targets
_SPARSE_BYTES = 30
#: bytes beside that: of a page, for room to search and for gains; of a link, for finding it from its end; of a target
_PAGE_BYTES, _LINK_BYTES, _TARGET_BYTES = 160, 4, 256
#: memory that choosing by samples may take, beside the graph
MEMORY_BYTES = 3_000_000_000
MOST_SAMPLES = 65_536  # more hardly change the bound
MOST_DENSE_SAMPLES = 8_192  # each block goes through all links once a hop


@dataclass(frozen=True, slots=True)
class _Rows:
    """A row of bits for every page."""

    bits: U64  # pages by words


@dataclass(frozen=True, slots=True)
class _Words:
    """The words that are not zero, by page."""

    starts: I64
    words: U64
    blocks: U32


@dataclass(slots=True)
class TargetSample:
    """Targets drawn in proportion to the size of their weight, and the pages that reach them.

    What a page would add is counted in targets that no seed reaches yet; those whose weight is below zero count against
    it.
    """

    reach: _Rows | _Words
    above: U64  # a bit for each target: its weight is above zero
    drawn: int
    drawn_above: int
    notes: tuple[str, ...] = ()
    open: U64 = field(init=False)  # targets that no seed reaches

    def __post_init__(self) -> None:
        self.open = _ones(self.drawn, len(self.above))

    def weigh(self, pages: I64) -> tuple[F64, F64]:
        """Targets that each page would add, less those below zero; and how many are below zero."""
        value, below = np.zeros(len(pages)), np.zeros(len(pages))
        open_above, open_below = self.open & self.above, self.open & ~self.above

        def weigh_piece(low: int, high: int) -> None:
            parts = (pages[low:high], open_above, open_below, value[low:high], below[low:high])
            if isinstance(self.reach, _Rows):
                kernels.weigh_rows(self.reach.bits, *parts)
            else:
                kernels.weigh_words(self.reach.starts, self.reach.words, self.reach.blocks, *parts)

        pieces = np.linspace(0, len(pages), threads_for(len(pages)) + 1).astype(np.int64).tolist()
        share(weigh_piece, list(pairwise(pieces)))
        return value, below

    @property
    def words(self) -> int:
        """Words that are kept."""
        return self.reach.bits.size if isinstance(self.reach, _Rows) else len(self.reach.words)

    def sums(self, column: F64) -> F64:
        """By page the sum over the targets that it reaches, covered or not."""
        count = len(self.reach.bits) if isinstance(self.reach, _Rows) else len(self.reach.starts) - 1
        tables, found = np.zeros((len(self.above), 8, 256)), np.zeros(count)
        kernels.sum_bytes(column, tables)

        def sum_piece(low: int, high: int) -> None:
            if isinstance(self.reach, _Rows):
                kernels.sum_rows(self.reach.bits, tables, low, high, found)
            else:
                kernels.sum_words(self.reach.starts, self.reach.words, self.reach.blocks, tables, low, high, found)

        pieces = np.linspace(0, count, 8 * threads_for(self.words) + 1).astype(np.int64).tolist()
        share(sum_piece, list(pairwise(pieces)))
        return found

    def reached_by(self, page: int) -> npt.NDArray[np.bool_]:
        """By target: whether `page` reaches it."""
        return self.as_mask(self.reach_bits(page))

    def reach_bits(self, page: int) -> U64:
        """The same as bits."""
        if isinstance(self.reach, _Rows):
            row: U64 = self.reach.bits[page]
            return row
        part = slice(*self.reach.starts[page : page + 2].tolist())
        bits = np.zeros(len(self.above), np.uint64)
        bits[self.reach.blocks[part]] = self.reach.words[part]
        return bits

    def as_mask(self, bits: U64) -> npt.NDArray[np.bool_]:
        """Bits by target, spread out."""
        spread = np.unpackbits(np.ascontiguousarray(bits).view(np.uint8), bitorder="little")
        found: npt.NDArray[np.bool_] = spread[: self.drawn].view(np.bool_)
        return found

    def take(self, page: int) -> None:
        """What `page` reaches is covered."""
        self.open &= ~self.reach_bits(page)


def draw_targets(weight: F64, samples: int, rng: np.random.Generator) -> I64:
    """Pages in proportion to the size of their weight, with repetition, ascending: neighbours have much in common."""
    sums = np.cumsum(np.abs(weight))
    found: I64 = np.searchsorted(sums, rng.random(samples) * sums[-1], side="right").astype(np.int64)
    return np.sort(np.minimum(found, int(np.flatnonzero(weight)[-1])))  # rounding may end beyond the last


def sample_targets(
    problem: SeedProblem, rng: np.random.Generator, samples: int | None = None, memory_bytes: int = MEMORY_BYTES
) -> TargetSample:
    """[BEYOND] Reverse reachability: targets drawn by |weight|, and for each page those it reaches within h hops.

    Without `samples`, as many as memory allows, within reason; where it does not allow for all that are asked for, that
    is noted. A first block tells whether pages reach so few targets that only words with a bit are kept.
    """
    count = problem.graph.count
    if not problem.weight.any():
        raise ValueError("all weights are 0: there is nothing to draw")
    free = memory_bytes - _PAGE_BYTES * count
    room = max(int(free / (count / 8 + _TARGET_BYTES)) // BLOCK * BLOCK, BLOCK)
    dense = min(room, MOST_DENSE_SAMPLES if samples is None else samples)
    pilot = draw_targets(problem.weight, BLOCK, rng)
    filled = np.count_nonzero(_pull_block(problem, pilot)[0]) / kernels.WORDS  # words a block of 64 targets
    block_bytes = _SPARSE_BYTES * max(filled, 1.0) + _TARGET_BYTES * WORD
    fitting = max(int((free - _LINK_BYTES * problem.graph.edges) / block_bytes) * WORD, WORD)
    sparse = min(fitting, MOST_SAMPLES if samples is None else samples)
    is_sparse = filled < count / 4 and sparse >= dense
    drawn = draw_targets(problem.weight, sparse if is_sparse else dense, rng)
    reach = _search_all(problem, drawn) if is_sparse else _pull_all(problem, drawn)
    above = np.zeros(-(-len(drawn) // WORD) if is_sparse else _width(len(drawn)), np.uint64)
    positive = np.flatnonzero(problem.weight[drawn] > 0)
    np.bitwise_or.at(above, positive // WORD, np.uint64(1) << (positive % WORD).astype(np.uint64))
    notes = []
    if samples is not None and len(drawn) < samples:
        notes.append(f"memory allows for {len(drawn):,} of the {samples:,} samples asked for")
    need = (
        _LINK_BYTES * problem.graph.edges + len(drawn) / WORD * block_bytes
        if is_sparse
        else len(drawn) * (count / 8 + _TARGET_BYTES)
    )
    if need > free:
        least = (need + _PAGE_BYTES * count) / 1e6
        notes.append(
            f"even with few samples, choosing takes about {least:,.0f} MB of memory beside the graph, "
            f"more than the {memory_bytes / 1e6:,.0f} MB it was to have"
        )
    return TargetSample(reach, above, len(drawn), len(positive), tuple(notes))


def _width(samples: int) -> int:
    return -(-samples // BLOCK) * kernels.WORDS


def _ones(count: int, words: int) -> U64:
    """The first `count` bits set."""
    found = np.zeros(words, np.uint64)
    found[: count // WORD] = np.iinfo(np.uint64).max
    if count % WORD:
        found[count // WORD] = (1 << count % WORD) - 1
    return found


def _pull_block(problem: SeedProblem, drawn: I64, room: tuple[U64, U64] | None = None) -> tuple[U64, U64]:
    """Bits of at most BLOCK targets by page, in the first of two arrays of room."""
    graph: FrontierGraph = problem.graph
    now, later = room or (np.zeros((graph.count, kernels.WORDS), np.uint64) for _ in range(2))
    now[:] = 0
    places = np.arange(len(drawn))
    np.bitwise_or.at(now, (drawn, places // WORD), np.uint64(1) << (places % WORD).astype(np.uint64))
    any_now, any_later = np.zeros(graph.count, np.uint8), np.empty(graph.count, np.uint8)
    any_now[drawn] = 1
    cuts = cut_rows(graph.starts + np.arange(graph.count + 1))  # rows without links take their time too
    for _ in range(problem.hops):
        pull = partial(kernels.pull_bits, graph.starts, graph.targets, now, any_now, later, any_later)
        changed = sum(share(pull, cuts))
        now, later = later, now
        any_now, any_later = any_later, any_now
        if not changed:
            break
    return now, later


def _pull_all(problem: SeedProblem, drawn: I64) -> _Rows:
    """All targets, block after block."""
    bits = np.empty((problem.graph.count, _width(len(drawn))), np.uint64)
    room: tuple[U64, U64] | None = None
    for block, first in enumerate(range(0, len(drawn), BLOCK)):
        room = _pull_block(problem, drawn[first : first + BLOCK], room)
        bits[:, block * kernels.WORDS : (block + 1) * kernels.WORDS] = room[0]
    return _Rows(bits)


def _search_all(problem: SeedProblem, drawn: I64) -> _Words:
    """All targets backwards, 64 at a time."""
    graph = problem.graph
    into_starts, into_sources = graph.into
    blocks = -(-len(drawn) // WORD)
    found: list[tuple[U32, U64]] = [(np.empty(0, np.uint32), np.empty(0, np.uint64))] * blocks

    def search(low: int, high: int) -> None:
        marks = np.zeros((3, graph.count), np.uint64)
        lines = np.empty((3, graph.count), np.uint32)
        for block in range(low, high):
            part = drawn[block * WORD : (block + 1) * WORD]
            known = kernels.search_back(into_starts, into_sources, part, problem.hops, marks, lines)
            pages, words = lines[2, :known].copy(), np.empty(known, np.uint64)
            kernels.take_words(marks[0], pages, words)
            found[block] = pages, words

    cuts = np.linspace(0, blocks, threads_for(graph.edges) + 1).astype(np.int64).tolist()
    share(search, [(low, high) for low, high in pairwise(cuts) if low < high])
    lengths = np.zeros(graph.count, np.int64)
    for pages, _ in found:
        kernels.count_words(pages, lengths)
    starts = np.zeros(graph.count + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    reach = _Words(starts, np.empty(int(starts[-1]), np.uint64), np.empty(int(starts[-1]), np.uint32))
    cursor = starts[:-1].copy()
    for block, (pages, words) in enumerate(found):
        kernels.place_words(pages, words, block, cursor, reach.words, reach.blocks)
        found[block] = pages[:0], words[:0]
    return reach
