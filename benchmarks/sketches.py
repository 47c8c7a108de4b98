"""How long do sketches take? Matching needy queries against a large frontier, and one cycle of upkeep.

    python benchmarks/sketches.py [--pages 1000000] [--queries 10000] [--links 10000]

URLs and anchors of ten words from a Zipf vocabulary of 300,000 without stop words: its first word, which 2% of the
pages have, is the 51st of the whole. Bars: matching 10,000 queries against 1,000,000 pages takes less than 30 s;
taking in 10,000 new links (index, matches, expected scores by a tree, sketches, impact) less than 1 s.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import reporting
from bowerbird.appraise.frontier.expected_score import (
    ExpectedScoreModel,
    PageFacts,
    fit_expected_score,
    inverse_frequency,
    query_mass,
)
from bowerbird.appraise.frontier.live_sketches import LiveSketches, SketchedQueries
from bowerbird.appraise.frontier.ngrams import NgramIndex, QueryWords, post, query_grams
from bowerbird.appraise.frontier.sketches import CrawledScores, make_crawled_scores
from bowerbird.lab.measuring_cost import read_peak_mb
from bowerbird.model.page_words import BREAK, PageWords

VOCABULARY = 300_000
STOP_WORDS = 50
MATCH_S = 30.0
CYCLE_S = 1.0


def draw_words(rng: np.random.Generator, size: int) -> np.ndarray:
    """Word numbers, Zipf with exponent 1 from rank STOP_WORDS on."""
    span = np.log((VOCABULARY + STOP_WORDS) / STOP_WORDS)
    rank = STOP_WORDS * np.exp(rng.random(size) * span) - STOP_WORDS
    return np.minimum(rank, VOCABULARY - 1).astype(np.uint32)


def draw_pages(rng: np.random.Generator, count: int) -> PageWords:
    """Pages of four words in the URL and two anchors of three, with breaks."""
    table = draw_words(rng, count * 12).reshape(count, 12)
    table[:, (4, 8)] = BREAK
    real = table != BREAK
    used, numbers = np.unique(table[real], return_inverse=True)
    table[real] = numbers.astype(np.uint32)
    vocabulary = tuple(f"w{number}" for number in used.tolist())
    return PageWords(vocabulary, np.arange(0, 12 * count + 1, 12, dtype=np.int64), table.ravel())


def draw_queries(rng: np.random.Generator, count: int, pages: PageWords) -> QueryWords:
    """Half are one to three words in a row of some page, half are words at random."""
    lengths = rng.integers(1, 4, count)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    number = {word: place for place, word in enumerate(pages.vocabulary)}
    drawn = draw_words(rng, int(starts[-1])).tolist()
    words = np.array([number.get(f"w{word}", 0) for word in drawn], dtype=np.uint32)
    for query in np.flatnonzero(rng.random(count) < 0.5).tolist():
        first = int(pages.starts[rng.integers(len(pages))])
        words[starts[query] : starts[query + 1]] = pages.words[first : first + lengths[query]]
    used, words = np.unique(words, return_inverse=True)
    vocabulary = tuple(pages.vocabulary[number] for number in used.tolist())
    return QueryWords(vocabulary, starts, words.astype(np.uint32))


def facts_of(words: PageWords, rng: np.random.Generator) -> PageFacts:
    count = len(words)
    return PageFacts(words, rng.integers(1, 50, count), rng.random(count), np.zeros(count, dtype=np.int64))


def learn(queries: SketchedQueries, crawled: PageWords, rng: np.random.Generator) -> ExpectedScoreModel:
    """A tree fitted to scores at random: as large as a real one."""
    matches = NgramIndex(post(crawled)).match(queries.grams, np.ones(len(crawled), dtype=np.bool_))
    scores = queries.mass[matches.queries()] * rng.random(len(matches.pages))
    complete = np.ones(len(queries.mass), dtype=np.bool_)
    answers = CrawledScores(matches.starts, matches.pages, scores, complete)
    return fit_expected_score(
        matches, queries.words, queries.mass, facts_of(crawled, rng), answers, rng=rng, min_leaf=50
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--links", type=int, default=10_000)
    parser.add_argument("--cycles", type=int, default=15)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    small = draw_pages(rng, 20_000)
    pages = draw_pages(rng, options.pages)
    words = draw_queries(rng, options.queries, pages)
    mass = query_mass(words, inverse_frequency(pages, words.vocabulary))
    queries = SketchedQueries(words, query_grams(words), mass, np.ones(options.queries))
    answers = make_crawled_scores([[] for _ in range(options.queries)])
    model = learn(queries, small, rng)
    warm = LiveSketches(queries, answers, model, 10)
    for _ in range(3):  # the kernels are compiled or loaded once a process
        warm.see(np.arange(len(small)), facts_of(small, rng))

    live = LiveSketches(queries, answers, model, 10)
    rows = []
    began = time.perf_counter()
    live.index.add(post(pages))
    rows.append(
        {"step": f"index {options.pages:,} pages", "seconds": time.perf_counter() - began, "bar_s": "", "ok": ""}
    )
    began = time.perf_counter()
    matches = live.index.match(queries.grams, np.ones(options.pages, dtype=np.bool_))
    matching = time.perf_counter() - began
    rows.append(
        {
            "step": f"match {options.queries:,} queries ({len(matches.pages):,} matches)",
            "seconds": matching,
            "bar_s": MATCH_S,
            "ok": matching < MATCH_S,
        }
    )
    cycles = []
    for _ in range(options.cycles):
        changed = np.sort(rng.choice(options.pages, options.links, replace=False))
        fresh = facts_of(draw_pages(rng, options.links), rng)
        began = time.perf_counter()
        live.see(changed, fresh)
        live.impact(options.pages)
        cycles.append(time.perf_counter() - began)
    rows.append(
        {
            "step": f"a cycle with {options.links:,} new links, slowest of {options.cycles}",
            "seconds": max(cycles),
            "bar_s": CYCLE_S,
            "ok": max(cycles) < CYCLE_S,
        }
    )
    print(reporting.table(rows))
    print("cycles, s:", ", ".join(f"{seconds:.2f}" for seconds in cycles))
    print(f"{len(live.index):,} n-grams in the index; peak memory {read_peak_mb():,.0f} MB")
    reporting.write_json("sketches", {"machine": reporting.machine(), "rows": rows, "peak_mb": read_peak_mb()})


if __name__ == "__main__":
    main()
