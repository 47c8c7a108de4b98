"""Pages that the same pages link to are alike: the clicks of those nearest, in a space of a few dimensions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from bowerbird.appraise.frontier.graph import BoolArray, FrontierGraph, IntArray

FloatArray = npt.NDArray[np.float64]

DIMENSIONS = 24
NEAREST = 12
MOST_PAGES = 300_000  # beyond, nobody waits for it
MOST_COMPARED = 12_000  # of more, some by lot
_CHUNK = 1000
NAMES = ("alike: log clicks", "alike: clicks an in-link", "alike: how much", "alike: most log clicks")


def place_pages(graph: FrontierGraph, seed: int, dimensions: int = DIMENSIONS) -> FloatArray:
    """A unit vector for each linked page: its in-linkers (each less the more it links to), by truncated SVD."""
    from sklearn.utils.extmath import randomized_svd

    weight = 1.0 / np.sqrt(np.maximum(graph.out_degree, 1))
    in_starts, in_sources = graph.into
    linked = np.flatnonzero(graph.in_degree > 0)
    reverse = sp.csr_matrix((weight[in_sources], in_sources, in_starts), shape=(graph.count, graph.count))[linked]
    lengths = np.sqrt(np.asarray(reverse.multiply(reverse).sum(axis=1)).reshape(-1))
    reverse = sp.diags(1.0 / np.maximum(lengths, 1e-12)) @ reverse
    places = np.zeros((graph.count, dimensions))
    few = min(dimensions, min(reverse.shape) - 1)
    if few >= 1:
        left, strength, _ = randomized_svd(reverse, few, n_iter=4, random_state=seed)
        places[linked, :few] = left * strength
    units: FloatArray = places / np.maximum(np.linalg.norm(places, axis=1, keepdims=True), 1e-12)
    return units


def describe_neighbours(
    graph: FrontierGraph, clicks: FloatArray, labelled: BoolArray, rows: IntArray, rng: np.random.Generator
) -> dict[str, FloatArray]:
    """For `rows`: the clicks of the labelled pages most alike, weighted by likeness."""
    compared = np.flatnonzero(labelled & (graph.in_degree > 0))
    out = np.zeros((len(rows), len(NAMES)))
    if len(compared) > NEAREST and len(rows):
        if len(compared) > MOST_COMPARED:
            compared = np.sort(rng.choice(compared, MOST_COMPARED, replace=False))
        places = place_pages(graph, int(rng.integers(2**31)))
        logs = np.log1p(np.where(labelled, clicks, 0.0))
        over = logs - np.log1p(graph.in_degree)
        theirs = places[compared].astype(np.float32)
        for first in range(0, len(rows), _CHUNK):
            part = rows[first : first + _CHUNK]
            likeness = places[part].astype(np.float32) @ theirs.T
            likeness[compared[None, :] == part[:, None]] = -1.0
            best = np.argpartition(-likeness, NEAREST, axis=1)[:, :NEAREST]
            weight = np.maximum(np.take_along_axis(likeness, best, 1), 0.0).astype(np.float64) ** 3 + 1e-6
            found = logs[compared[best]]
            total = weight.sum(axis=1)
            out[first : first + len(part)] = np.column_stack(
                [
                    (weight * found).sum(axis=1) / total,
                    (weight * over[compared[best]]).sum(axis=1) / total,
                    total / NEAREST,
                    found.max(axis=1),
                ]
            )
    return dict(zip(NAMES, out.T, strict=True))
