"""Numba kernel of the clairvoyant bound: the best times to fetch one page, all known in advance, at given prices."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]


@numba.njit(cache=True, nogil=True)
def plan_pages(starts: I64, window: I64, kept_by: F64, left: F64, kept_first: F64, price: F64, fetches: F64) -> float:
    """Clicks less prices of the best plans of all pages; adds the fetches of these plans by window.

    Page i may be fetched at the moments starts[i]…starts[i + 1] - 1, in their order. At each it has lost all but
    `kept_by` of its clicks by the changes since the one before; `left` are its clicks from then to the end, were it
    fresh; before any fetch it gets `kept_first` of them.
    """
    total = 0.0
    longest = 0
    for page in range(len(starts) - 1):
        longest = max(longest, starts[page + 1] - starts[page])
    best = np.empty(longest + 1)
    after = np.empty(longest + 1, np.int64)
    for page in range(len(starts) - 1):
        first, end = starts[page], starts[page + 1]
        count = end - first
        if count == 0:
            continue
        best[count] = 0.0
        # from the last moment back; place -1 is the page as it is at the beginning
        for place in range(count - 1, -2, -1):
            kept = 1.0 if place >= 0 else kept_first[page]
            got, top, then = 0.0, -np.inf, count
            at = place if place >= 0 else 0
            if place < 0:
                top, then = best[0], 0
                kept *= kept_by[first]
            while at < count:
                here = left[first + at]
                following = left[first + at + 1] if at + 1 < count else 0.0
                got += kept * (here - following)
                at += 1
                value = got + best[at]
                if value > top:
                    top, then = value, at
                if at < count:
                    kept *= kept_by[first + at]
            if place >= 0:
                best[place] = top - price[window[first + place]]
                after[place] = then
            else:
                total += top
                place_now = then
                while place_now < count:
                    fetches[window[first + place_now]] += 1.0
                    place_now = after[place_now]
    return total
