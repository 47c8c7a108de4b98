"""What fetches of each kind gained, by what had been expected of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Factors:
    """By which expected gains of each kind are multiplied, and what a visit costs; 1 while nothing else is known."""

    new: float = 1.0
    refresh: float = 1.0
    announced: float = 1.0  # new pages, by the interest in those of their hub
    hub: float = 1.0
    feed_cost: float = 1.0  # of a visit to a feed, in fetches of new pages
    sitemap_cost: float = 1.0


#: those that are costs
COSTS = ("feed_cost", "sitemap_cost")
