"""A small web with topics, hosts, text and time, for which the true quality of the repository is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

K1, B = 1.2, 0.75


@dataclass(frozen=True, slots=True)
class TopicalWorld:
    """Queries × pages, as the live web has them and as the repository has them."""

    frequency: NDArray[np.float64]
    live: sp.csr_matrix
    local: sp.csr_matrix
    fetched: NDArray[np.bool_]
    gone: NDArray[np.bool_]


def zipf_sampler(size: int, exponent: float) -> NDArray[np.float64]:
    weights = np.arange(1, size + 1) ** -exponent
    return np.cumsum(weights / weights.sum())


def draw_terms(
    rng: np.random.Generator, topics: NDArray[Any], topic_terms: NDArray[Any], vocabulary: int
) -> NDArray[Any]:
    """One term for each token: of the page's topic, or of the language at large."""
    own = rng.random(len(topics)) < 0.5
    background = np.searchsorted(zipf_sampler(vocabulary, 1.0), rng.random(len(topics)))
    special = np.searchsorted(zipf_sampler(topic_terms.shape[1], 0.9), rng.random(len(topics)))
    return np.where(
        own, topic_terms[topics, special.clip(max=topic_terms.shape[1] - 1)], background.clip(max=vocabulary - 1)
    )


def count_terms(page: NDArray[Any], term: NDArray[Any], shape: tuple[int, int]) -> sp.csr_matrix:
    counts = sp.coo_matrix((np.ones(len(page)), (page, term)), shape=shape).tocsr()
    counts.sum_duplicates()
    return counts


def weigh(counts: sp.csr_matrix, idf: NDArray[np.float64], mean_length: float) -> sp.csc_matrix:
    """BM25 weights of the terms of pages, with statistics frozen for both states of the web."""
    length = np.asarray(counts.sum(axis=1)).ravel()
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    tf = counts.data
    data = idf[counts.indices] * tf * (K1 + 1) / (tf + K1 * (1 - B + B * length[rows] / mean_length))
    return sp.csr_matrix((data, counts.indices, counts.indptr), shape=counts.shape).tocsc()


def answer(weights: sp.csc_matrix, first: NDArray[Any], second: NDArray[Any]) -> sp.csr_matrix:
    """Queries × pages: one term, or two that must both occur (second = -1: one)."""
    one = weights[:, first].T.tocsr()
    two = weights[:, np.where(second < 0, first, second)].T.tocsr()
    both = one.multiply(two > 0) + two.multiply(one > 0)
    scores = sp.diags(np.where(second < 0, 0.5, 1.0)) @ both
    scores = scores.tocsr()
    scores.eliminate_zeros()
    return scores


def make_world(seed: int) -> TopicalWorld:
    """One world; how much of it is fetched and how stale that is differ by seed."""
    rng = np.random.default_rng(seed)
    pages, vocabulary, topics, hosts = int(rng.integers(3000, 5001)), 3000, 15, 60
    queries = int(rng.integers(300, 1001))
    topic_terms = np.stack([rng.choice(np.arange(50, vocabulary), 250, replace=False) for _ in range(topics)])
    host_topic = rng.integers(0, topics, hosts)
    host_size = rng.dirichlet(np.full(hosts, 0.6))
    host = rng.choice(hosts, pages, p=host_size)
    topic = np.where(rng.random(pages) < 0.75, host_topic[host], rng.integers(0, topics, pages))
    length = rng.lognormal(5.0, 0.6, pages).astype(int).clip(20, 1500)
    page_of = np.repeat(np.arange(pages), length)
    term = draw_terms(rng, topic[page_of], topic_terms, vocabulary)
    old = count_terms(page_of, term, (pages, vocabulary))

    share, stale = rng.uniform(0.3, 0.95), rng.uniform(0.05, 0.3)
    concentration = rng.uniform(0.5, 5.0)
    host_share = rng.beta(share * concentration, (1 - share) * concentration, hosts)
    fetched = rng.random(pages) < np.clip(host_share[host] * share / (host_share[host].mean() + 1e-9), 0.02, 0.98)
    gone = rng.random(pages) < 0.02
    changed = rng.random(pages) < stale
    strength = np.where(changed, rng.choice([0.05, 0.2, 0.8], pages, p=[0.5, 0.3, 0.2]), 0.0)
    redraw = rng.random(len(page_of)) < strength[page_of]
    new_topic = np.where(rng.random(pages) < 0.3, rng.integers(0, topics, pages), topic)
    new_term = np.where(redraw, draw_terms(rng, new_topic[page_of], topic_terms, vocabulary), term)
    now = count_terms(page_of, new_term, (pages, vocabulary))

    document_frequency = np.asarray((old[fetched] > 0).sum(axis=0)).ravel()
    known = max(int(fetched.sum()), 1)
    idf = np.log(1 + (known - document_frequency + 0.5) / (document_frequency + 0.5))
    mean_length = float(length.mean())

    about = rng.integers(0, topics, queries)
    first = topic_terms[about, rng.integers(0, 120, queries)]
    second = topic_terms[about, rng.integers(0, 60, queries)]
    second = np.where((rng.random(queries) < 0.5) & (second != first), second, -1)
    frequency = np.arange(1, queries + 1) ** -rng.uniform(0.7, 1.0)
    live = answer(sp.csc_matrix(sp.diags((~gone).astype(float)) @ weigh(now, idf, mean_length)), first, second)
    local = answer(sp.csc_matrix(sp.diags(fetched.astype(float)) @ weigh(old, idf, mean_length)), first, second)
    return TopicalWorld(frequency / frequency.sum(), live, local, fetched, gone)
