"""What a page is worth to a crawl that begins: by rule, or in expected clicks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.seeds.problem import F64

PAGE, SPAM, CLICKED = 1.0, -10.0, 10.0


def page_weights(
    count: int,
    *,
    clicked: npt.ArrayLike | None = None,
    spam: npt.ArrayLike | None = None,
    uncrawled_links: npt.ArrayLike | None = None,
    uniqueness: float = 1.0,
) -> F64:
    """[SEED09] w = 1, of spam -10, of clicked pages 10; plus (links to uncrawled pages)·P_uniq.

    `clicked` and `spam` are masks by page; spam is spam, clicked or not.

    >>> page_weights(3, clicked=[1, 1, 0], spam=[0, 1, 0], uncrawled_links=[2, 0, 4], uniqueness=0.5)
    array([ 11., -10.,   3.])
    """
    weight = np.full(count, PAGE)
    if clicked is not None:
        weight[np.asarray(clicked, np.bool_)] = CLICKED
    if spam is not None:
        weight[np.asarray(spam, np.bool_)] = SPAM
    if uncrawled_links is not None:
        weight += _unseen(uncrawled_links, uniqueness)
    return weight


def click_weights(
    clicks: npt.ArrayLike, uncrawled_links: npt.ArrayLike, uniqueness: float, clicks_per_page: float | None = None
) -> F64:
    """[BEYOND] Expected clicks of a page, and of what its links to uncrawled pages lead to: c + links·P_uniq·mean c.

    `clicks_per_page` stands for the mean where that is known better.

    >>> click_weights([8.0, 0.0], [0, 2], 0.5).tolist()
    [8.0, 4.0]
    """
    found = np.asarray(clicks, np.float64)
    mean = (float(found.mean()) if len(found) else 0.0) if clicks_per_page is None else clicks_per_page
    weight: F64 = found + _unseen(uncrawled_links, uniqueness) * mean
    return weight


def uniqueness_of(fetched: int, unique: int) -> float:
    """[SEED09] P_uniq: the share of URLs that turned out new pages, once fetched; 1/2 as long as nothing is known.

    >>> uniqueness_of(98, 49)
    0.5
    """
    if not 0 <= unique <= fetched:
        raise ValueError(f"{unique} unique pages of {fetched} fetched URLs")
    return (unique + 1.0) / (fetched + 2.0)


def _unseen(uncrawled_links: npt.ArrayLike, uniqueness: float) -> F64:
    if not 0 <= uniqueness <= 1:
        raise ValueError(f"uniqueness is {uniqueness}; it is a probability, from 0 to 1")
    found: F64 = np.asarray(uncrawled_links, np.float64) * uniqueness
    return found
