"""Seeds site by site: each gets as many as it is important, and is covered by links of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numba
import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier.graph import FrontierGraph
from bowerbird.appraise.seeds.methods import DEFAULT_METHOD, SeedOptions, bound_optimum, choose_seeds, fits_exactly
from bowerbird.appraise.seeds.problem import F64, I64, Bound, Choice, SeedProblem
from bowerbird.appraise.seeds.reach_kernels import U32


def apportion(importance: npt.ArrayLike, seeds: int, most: npt.ArrayLike) -> I64:
    """[SEED09] Seeds by site in proportion to its importance: whole shares first, then the largest remainders.

    No site gets more than `most`, its pages; what it cannot take goes to the others. Ties go to the lower number.

    >>> apportion([6.0, 3.0, 1.0], 4, [10, 10, 10]).tolist()
    [3, 1, 0]
    """
    weight, room = np.asarray(importance, np.float64), np.asarray(most, np.int64).copy()
    if len(weight) != len(room):
        raise ValueError(f"{len(weight)} sites are important, {len(room)} have pages")
    if not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise ValueError("importance must be finite and not below 0")
    found = np.zeros(len(weight), np.int64)
    left = min(seeds, int(room[weight > 0].sum()))
    while left > 0:
        open_ = (weight > 0) & (found < room)
        share = np.where(open_, weight, 0.0)
        quota = left * (share / share.sum())
        whole = np.minimum(np.floor(quota + 1e-9).astype(np.int64), room - found)
        if (whole < np.floor(quota + 1e-9)).any():  # full sites first; the others share what is left once more
            full = whole < np.floor(quota + 1e-9)
            found[full] = room[full]
            left -= int(whole[full].sum())
            continue
        found += whole
        left -= int(whole.sum())
        able = np.flatnonzero(open_ & (found < room))
        order = able[np.argsort(-np.round((quota - whole)[able], 9), kind="stable")][:left]
        found[order] += 1
        left -= len(order)
    return found


def split_sites(problem: SeedProblem, site: npt.ArrayLike) -> Iterator[tuple[I64, SeedProblem]]:
    """For each site by number: its pages, ascending, and the problem of those alone, without links between sites."""
    of = np.asarray(site, np.int64)
    graph = problem.graph
    if of.shape != (graph.count,):
        raise ValueError(f"{len(of)} pages have sites, but there are {graph.count} pages")
    if not graph.count:
        return
    order = np.argsort(of, kind="stable")
    sizes = np.bincount(of)
    firsts = np.concatenate([[0], np.cumsum(sizes)])
    local = np.empty(graph.count, np.int64)
    local[order] = np.arange(graph.count) - np.repeat(firsts[:-1], sizes)
    starts = np.zeros(graph.count + 1, np.int64)
    targets = np.empty(graph.edges, np.uint32)
    kept = _keep_inner(graph.starts, graph.targets, of, order, local, starts, targets)
    targets = targets[:kept]
    for number in range(len(sizes)):
        low, high = int(firsts[number]), int(firsts[number + 1])
        if low == high:
            continue
        pages = order[low:high]
        part = slice(int(starts[low]), int(starts[high]))
        inner = FrontierGraph(np.ones(high - low, np.bool_), starts[low : high + 1] - starts[low], targets[part])
        yield pages, SeedProblem(inner, problem.weight[pages], problem.hops)


def choose_by_site(
    problem: SeedProblem,
    site: npt.ArrayLike,
    seeds: npt.ArrayLike,
    method: str = DEFAULT_METHOD,
    options: SeedOptions | None = None,
    *,
    bounded: bool = True,
) -> Choice:
    """[SEED09] Per-site selection: `seeds` by site, each site for itself; the seeds that add most come first.

    Seeds of a site stay in their order, for each adds to those before it. The bound is the sum of the sites' bounds: on
    the best with as many seeds for each site. Those told from samples share the doubt that is allowed, so that all of
    them hold together as surely as one would.
    """
    wanted = np.asarray(seeds, np.int64)
    of = np.asarray(site, np.int64)
    told = options or SeedOptions()
    if not bounded:
        told = replace(told, rounds=0)
    parts: list[tuple[I64, Choice]] = []
    best, unsure, notes = 0.0, 0.0, dict[str, None]()
    fits, told = _decide(problem, of, wanted, told) if bounded else ({}, told)
    for pages, inner in split_sites(problem, of):
        number = int(of[pages[0]])
        k = int(wanted[number])
        if k == 0:
            continue
        if number in fits:
            told = replace(told, exact_work=np.inf if fits[number] else 0.0)
        choice = choose_seeds(inner, k, method, told)
        parts.append((pages[choice.seeds], choice))
        notes.update(dict.fromkeys(f"in some sites {note}" for note in choice.notes))
        if bounded:
            bound = bound_optimum(inner, k, choice, told)
            best += bound.value
            unsure += 1.0 - bound.confidence
    bound_of_all = Bound(best, max(1.0 - unsure, 0.0)) if bounded else None
    if not parts:
        return Choice(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), bound_of_all)
    chosen = Choice(
        np.concatenate([pages for pages, _ in parts]),
        np.concatenate([choice.pages for _, choice in parts]),
        np.concatenate([choice.value for _, choice in parts]),
        bound_of_all,
        max(choice.samples for _, choice in parts),
        tuple(notes),
    )
    least = np.concatenate([np.minimum.accumulate(choice.value) for _, choice in parts])
    order = np.argsort(-least, kind="stable")
    return replace(chosen, seeds=chosen.seeds[order], pages=chosen.pages[order], value=chosen.value[order])


def _decide(problem: SeedProblem, of: I64, wanted: I64, told: SeedOptions) -> tuple[dict[int, bool], SeedOptions]:
    """By site with seeds, whether it is counted exactly; and the confidence that each of the others must have."""
    fits = {
        int(of[pages[0]]): fits_exactly(inner, told)
        for pages, inner in split_sites(problem, of)
        if wanted[of[pages[0]]] > 0
    }
    sampled = sum(not exactly for exactly in fits.values())
    return fits, replace(told, confidence=1.0 - (1.0 - told.confidence) / max(sampled, 1))


def site_importance(weight: F64, site: npt.ArrayLike, count: int) -> F64:
    """The value of each site's pages, of those above zero."""
    return np.bincount(np.asarray(site, np.int64), weights=np.maximum(weight, 0.0), minlength=count).astype(np.float64)


@numba.njit(cache=True, nogil=True)
def _keep_inner(starts: I64, targets: U32, site: I64, order: I64, local: I64, new_starts: I64, new_targets: U32) -> int:
    """Rows by site, without links to other sites; targets by their place in the site."""
    at = 0
    for place in range(len(order)):
        page = order[place]
        for k in range(starts[page], starts[page + 1]):
            target = targets[k]
            if site[target] == site[page]:
                new_targets[at] = local[target]
                at += 1
        new_starts[place + 1] = at
    return at
