"""What the links to a page say of it before it is fetched: who links to it, and what else those pages link to."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from bowerbird.appraise.frontier.graph import BoolArray, FrontierGraph, IntArray
from bowerbird.appraise.frontier.walk import enriched_walk, pagerank, random_walk

FloatArray = npt.NDArray[np.float64]
Columns = dict[str, FloatArray]

REAL_SHARES = (0.7, 0.4, 0.1)  # w of the enriched walks
_SHRINK = 0.3  # of the median evidence, added to everyone's


def describe_links(graph: FrontierGraph, clicks: FloatArray, labelled: BoolArray, most_clicks: float) -> Columns:
    """By page: its walks, its in-linkers' clicks, and the clicks of pages that are linked together with it.

    `labelled` are the pages whose clicks are known; what is said of a page must not rest on its own. `most_clicks` are
    those of any page, hidden or not.
    """
    adjacency = sp.csr_matrix(
        (np.ones(graph.edges, dtype=np.float32), graph.targets.astype(np.int32), graph.starts),
        shape=(graph.count, graph.count),
    )
    reverse = adjacency.T.tocsr()
    known = np.where(labelled, clicks, 0.0)
    columns = _walk(graph, np.where(graph.crawled, known, 0.0), most_clicks)
    columns |= _sum_linkers(graph, reverse, np.where(graph.crawled, known, 0.0), _level(known, labelled))
    columns |= _sum_co_cited(graph, adjacency, reverse, known, labelled)
    return columns


def shrink(total: FloatArray, evidence: FloatArray, mean: float, strength: float) -> FloatArray:
    """A mean drawn towards that of all, by as much evidence as `strength`."""
    shrunk: FloatArray = (total + strength * mean) / (np.maximum(evidence, 0.0) + strength)
    return shrunk


def _level(known: FloatArray, labelled: BoolArray) -> float:
    return float(np.log1p(known[labelled]).mean()) if labelled.any() else 0.0


def _walk(graph: FrontierGraph, clicks: FloatArray, most: float) -> Columns:
    """The walks, as multiples of the mean."""
    columns = {
        "pagerank": pagerank(graph).values,
        "rw": random_walk(graph, clicks, most_clicks=most).values,
        "rw of root clicks": enriched_walk(graph, np.sqrt(clicks), real_share=0.5, most_clicks=np.sqrt(most)).values,
    }
    for share in REAL_SHARES:
        columns[f"rw-eg {share:g}"] = enriched_walk(graph, clicks, real_share=share, most_clicks=most).values
    return {name: values * graph.count for name, values in columns.items()}


def _sum_linkers(graph: FrontierGraph, reverse: sp.csr_matrix, clicks: FloatArray, level: float) -> Columns:
    """Of the crawled pages that link to a page."""
    logs, links = np.log1p(clicks), np.maximum(graph.out_degree, 1)
    share = np.where(graph.out_degree > 0, 1.0 / links, 0.0)
    degree = graph.in_degree.astype(np.float64)
    total = reverse @ clicks
    return {
        "in-links": degree,
        "linkers' clicks": total,
        "linkers' mean clicks": total / (degree + 1),
        "linkers' mean log clicks": (reverse @ logs + level) / (degree + 1),
        "linkers clicked": (reverse @ (clicks > 0).astype(np.float64)) / (degree + 1),
        "linkers' clicks a link": reverse @ (clicks * share),
        "linkers' root clicks a link": reverse @ (np.sqrt(clicks) * share),
        "most clicked linker": _greatest(reverse, logs),
        "linkers' links": (reverse @ graph.out_degree.astype(np.float64)) / np.maximum(degree, 1),
        "most links of a linker": _greatest(reverse, graph.out_degree.astype(np.float64)),
        "fewest links of a linker": 1.0 / np.maximum(_greatest(reverse, share), 1e-9),
        "linkers' in-links": (reverse @ np.log1p(degree)) / np.maximum(degree, 1),
    }


def _greatest(reverse: sp.csr_matrix, values: FloatArray) -> FloatArray:
    """The greatest value of a page's in-linkers; 0 without any."""
    out = np.zeros(reverse.shape[0])
    linked = np.diff(reverse.indptr) > 0
    if linked.any():
        out[linked] = np.maximum.reduceat(values[reverse.indices], reverse.indptr[:-1][linked])
    return out


def _sum_co_cited(
    graph: FrontierGraph, adjacency: sp.csr_matrix, reverse: sp.csr_matrix, clicks: FloatArray, labelled: BoolArray
) -> Columns:
    """Of the pages linked together with a page: the fewer links the common linker has, the nearer they are."""
    logs, mark = np.log1p(clicks), labelled.astype(np.float64)
    level = float(logs[labelled].mean()) if labelled.any() else 0.0
    share = np.where(graph.out_degree > 0, 1.0 / np.maximum(graph.out_degree, 1), 0.0)

    def around(values: FloatArray, near: FloatArray) -> FloatArray:
        total: FloatArray = reverse @ (near * (adjacency @ values)) - (reverse @ near) * values
        return total

    columns: Columns = {}
    for name, near in (("", (share > 0).astype(np.float64)), (" near", share), (" nearest", share**2)):
        evidence = around(mark, near)
        found = evidence[evidence > 1e-12]
        strength = _SHRINK * (float(np.median(found)) if len(found) else 1.0)
        columns[f"co-cited{name}: log clicks"] = shrink(around(logs * mark, near), evidence, level, strength)
        columns[f"co-cited{name}: clicks"] = shrink(around(clicks, near), evidence, 0.0, strength)
        columns[f"co-cited{name}: pages"] = evidence
    over = (logs - np.log1p(graph.in_degree)) * mark
    columns["co-cited near: clicks an in-link"] = shrink(around(over, share), around(mark, share), 0.0, 0.1)
    others = (adjacency @ (logs * mark) + level) / (adjacency @ mark + 1)
    columns["linkers' targets: log clicks"] = (reverse @ others) / np.maximum(graph.in_degree, 1)
    return columns


def describe_linking_groups(
    graph: FrontierGraph, groups: tuple[IntArray, ...], clicks: FloatArray, labelled: BoolArray
) -> Columns:
    """By page: how many directories link to it. Navigation repeats within one, mentions come from many.

    Each directory counts once, with the mean of its own pages that link.
    """
    logs = np.log1p(np.where(labelled, clicks, 0.0))
    sources = np.repeat(np.arange(graph.count, dtype=np.int64), graph.out_degree)
    degree = np.maximum(graph.in_degree, 1)
    columns: Columns = {}
    for place, group in enumerate(groups):
        keys = group[sources] * graph.count + graph.targets
        order = np.argsort(keys, kind="stable")
        first = np.flatnonzero(np.diff(keys[order], prepend=-1))
        targets = graph.targets[order[first]]
        many = np.diff(first, append=len(keys)).astype(np.float64)
        mean = np.add.reduceat(logs[sources[order]], first) / many if len(first) else np.zeros(0)
        linking = np.bincount(targets, minlength=graph.count).astype(np.float64)
        most = np.zeros(graph.count)
        np.maximum.at(most, targets, many)
        total = np.bincount(targets, weights=mean, minlength=graph.count)
        columns[f"linking directories {place}"] = linking
        columns[f"linking directories {place}: largest share"] = most / degree
        columns[f"linking directories {place}: log clicks"] = total / (linking + 1)
        inside = np.bincount(
            graph.targets, weights=(group[sources] == group[graph.targets]).astype(np.float64), minlength=graph.count
        )
        columns[f"linked from its directory {place}"] = inside / degree
    return columns
