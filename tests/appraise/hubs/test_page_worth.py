from __future__ import annotations

import numpy as np
import pytest

from bowerbird.appraise.hubs.page_worth import PageWorth

HOUR = 3600.0
DECAY = 1.0 / (10 * HOUR)


def told(pages: int, seed: int, keep: int = 20_000, noise: float = 0.5) -> tuple[PageWorth, np.ndarray, np.ndarray]:
    """A book that was told of pages whose clicks are known: by hub and place, with exponential interest."""
    rng = np.random.default_rng(seed)
    hubs, places = rng.lognormal(0.0, 0.8, 10), np.array([2.0, 1.0, 0.5, 0.25])
    book = PageWorth((10, 4), keep=keep)
    hub, place = rng.integers(0, 10, pages), rng.integers(0, 4, pages)
    age, at = rng.exponential(2 * HOUR, pages), np.sort(rng.uniform(0, 30 * 24 * HOUR, pages))
    profit = 20.0 * hubs[hub] * places[place] * rng.lognormal(-0.5 * noise**2, noise, pages)
    number = np.array([book.watch([h, p], a, t) for h, p, a, t in zip(hub, place, age, at, strict=True)])
    end = 30 * 24 * HOUR
    for step in np.arange(0.0, 48 * HOUR, HOUR):  # by hour after the fetch; the last pages are young
        seen = at + step + HOUR <= end
        clicks = profit * (np.exp(-DECAY * (age + step)) - np.exp(-DECAY * (age + step + HOUR)))
        book.hear(number[seen], at[seen] + step + 0.5 * HOUR, clicks[seen])
    book.fit(end)
    return book, hubs, places


def test_worth_and_curve_come_near_the_truth() -> None:
    book, hubs, places = told(4000, 1)
    levels = np.array([[h, p] for h in range(10) for p in range(4)])
    truth = 20.0 * hubs[levels[:, 0]] * places[levels[:, 1]]
    assert np.abs(np.log(book.worth(levels) / truth)).max() < 0.3
    for age in (1.0, 5.0, 20.0):
        assert book.left(age * HOUR) == pytest.approx(np.exp(-DECAY * age * HOUR), abs=0.05)
    assert 1.0 / book.decay_per_s == pytest.approx(10 * HOUR, rel=0.3)


def test_nothing_is_claimed_before_anything_is_known() -> None:
    book = PageWorth((3, 2))
    book.fit(100.0)
    assert book.worth(np.array([[0, 0], [2, 1]])).tolist() == [1.0, 1.0]
    assert book.left(0.0) == 1.0
    assert 0.4 < book.left(17 * HOUR) < 0.6


def test_one_page_that_everybody_reads_does_not_lift_its_hub_for_good() -> None:
    rng = np.random.default_rng(0)
    book = PageWorth((20,))
    number = np.array([book.watch([h], 0.0, 0.0) for h in np.repeat(np.arange(20), 10)])
    clicks = rng.exponential(5.0, 200)
    clicks[7] = 50_000.0
    book.hear(number, np.full(200, HOUR), clicks)
    book.fit(100 * HOUR)
    worth = book.worth(np.arange(20)[:, None])
    assert worth.max() / np.median(worth) < 10.0


def test_memory_is_bounded_and_the_last_pages_count() -> None:
    book, hubs, _ = told(3000, 2, keep=500)
    assert book.fetched == 3000
    worth = book.worth(np.array([[h, 1] for h in range(10)]))
    assert np.corrcoef(np.log(worth), np.log(hubs))[0, 1] > 0.8
    before = book.worth(np.array([[0, 0]]))
    book.hear(np.array([3]), np.array([40 * HOUR]), np.array([1e6]))  # of a page long forgotten
    book.fit(30 * 24 * HOUR)
    assert book.worth(np.array([[0, 0]])) == pytest.approx(before, rel=0.05)
