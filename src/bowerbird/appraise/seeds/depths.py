"""How many links away from the nearest of some pages is every other?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.seeds.depth_kernels import spread_depths
from bowerbird.appraise.seeds.problem import I64
from bowerbird.model.seed_study import OUT_OF_REACH
from bowerbird.model.snapshot import LinkGraph


def count_links_from(seeds: I64, links: LinkGraph, leads_on: npt.NDArray[np.bool_], ends: I64) -> npt.NDArray[np.uint8]:
    """By page the links from the nearest seed, 255 where there is no way; only pages that `leads_on` has are passed.

    `ends` by page is where redirects from it end, itself where it is none: a redirect is no link.

    >>> chain = LinkGraph(np.array([0, 1, 2, 2, 3]), np.array([1, 2, 0], np.uint32))  # 0 -> 1 -> 2, 3 -> 0
    >>> count_links_from(np.array([0]), chain, np.ones(4, np.bool_), np.arange(4)).tolist()
    [0, 1, 2, 255]
    """
    depth = np.full(len(leads_on), OUT_OF_REACH, np.uint8)
    first = np.union1d(seeds, ends[seeds])
    depth[first] = 0
    line = np.empty(len(depth), np.uint32)
    line[: len(first)] = first
    spread_depths(links.starts, links.targets, leads_on, ends, depth, line, len(first), OUT_OF_REACH)
    return depth
