"""Numba kernels of interest: clicks and exposure into bins of age, and how likely a decay makes what was seen."""

from __future__ import annotations

import math

import numba
import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
F32 = npt.NDArray[np.float32]
I64 = npt.NDArray[np.int64]


@numba.njit(cache=True, nogil=True)
def enter_clicks(
    hub: I64,
    half: I64,
    from_s: F64,
    to_s: F64,
    clicks: F64,
    pages: F64,
    edges: F64,
    decay: float,
    into: F32,
    exposed: F32,
) -> None:
    """Clicks of pages watched from one age to another, shared out among the bins in between as interest fades.

    What is watched in part counts in part. Ages beyond the last edge are nobody's.
    """
    bins = len(edges) - 1
    for r in range(len(hub)):
        begin, end = max(from_s[r], 0.0), to_s[r]
        if not (end > begin and hub[r] >= 0):
            continue
        k = np.searchsorted(edges, begin, side="right") - 1
        while k < bins and edges[k] < end:
            low, high = max(begin, edges[k]), min(end, edges[k + 1])
            exposed[hub[r], half[r], k] += pages[r] * (high - low) / (edges[k + 1] - edges[k])
            came = -math.exp(-decay * (low - begin)) * math.expm1(-decay * (high - low))
            into[hub[r], half[r], k] += clicks[r] * came / -math.expm1(-decay * (end - begin))
            k += 1


@numba.njit(cache=True, nogil=True)
def seen_shares(decay: F64, exposed: F32, edges: F64, out: F64) -> None:
    """By hub and half the pages seen, each by the share of its clicks that comes at the ages it was watched."""
    bins = len(edges) - 1
    for i in range(len(decay)):
        out[0, i] = out[1, i] = 0.0
        for k in range(bins):
            a, b = exposed[i, 0, k], exposed[i, 1, k]
            if a > 0.0 or b > 0.0:
                part = math.exp(-decay[i] * edges[k]) * -math.expm1(-decay[i] * (edges[k + 1] - edges[k]))
                out[0, i] += a * part
                out[1, i] += b * part


@numba.njit(cache=True, nogil=True)
def decay_scores(log_decay: F64, into: F32, exposed: F32, edges: F64, score: F64, information: F64) -> None:
    """By hub how the likelihood of its clicks' ages moves with log(mu), and how sharply, whatever the profit.

    Given their number, clicks fall into bins in proportion to n_b·w_b, w_b = exp(-mu·e_b) - exp(-mu·e_b+1).
    """
    bins = len(edges) - 1
    for i in range(len(log_decay)):
        mu = math.exp(log_decay[i])
        clicks = ours = total = first = second = 0.0
        for k in range(bins):
            n = float(exposed[i, 0, k]) + float(exposed[i, 1, k])
            if n <= 0.0:
                continue
            width = edges[k + 1] - edges[k]
            q = math.exp(-mu * width)
            w = math.exp(-mu * edges[k]) * -math.expm1(-mu * width)
            # dlog(w)/dlog(mu)
            slope = mu * (q * width / -math.expm1(-mu * width) - edges[k])
            c = float(into[i, 0, k]) + float(into[i, 1, k])
            clicks += c
            ours += c * slope
            total += n * w
            first += n * w * slope
            second += n * w * slope * slope
        if clicks > 0.0 and total > 0.0:
            mean = first / total
            score[i] = ours - clicks * mean
            information[i] = clicks * max(second / total - mean * mean, 0.0)
        else:
            score[i] = information[i] = 0.0
