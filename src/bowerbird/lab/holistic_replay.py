"""Replaying a policy in a holistic world, step by step, from the end of one warm start that all policies share."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import numpy as np

from bowerbird.lab.holistic_crawl import KINDS, HolisticCrawl
from bowerbird.lab.holistic_policies import Chooser, Clairvoyant, WarmStart, make_chooser
from bowerbird.lab.holistic_world import BOOL, F64, I64, HolisticWorld

#: fetches that bid up to so many times the price of their step are at the margin
MARGIN = 1.5
#: share of the measured time after which those count: before, the crawl has yet to learn what its fetches gain
SETTLED = 0.5
#: of a world, by directory: chance that strikes a directory strikes it whatever the seed
PARTS = 20


@dataclass(frozen=True)
class Replay:
    """What came of it. Arrays by step are of the measured time."""

    world: HolisticWorld
    clicks: F64  # by step, that searchers got
    spent: F64  # by step and kind: fetches
    margin_parts: F64  # gained and bid at the margin in the later part, by kind and part of the world
    bid: F64  # by kind: clicks that fetches bid, all together
    realised: F64  # by kind: clicks that they gained at the margin, by the truth
    marginal_bid: F64  # by kind, of fetches at the margin in the later part
    marginal_realised: F64
    marginal_count: F64

    @property
    def fetches(self) -> float:
        """All of them."""
        return float(self.spent.sum())

    @property
    def quality(self) -> F64:
        """By step, clicks got of those there were to be had."""
        ideal = self.world.ideal[self.world.warm_steps :]
        return self.clicks / np.maximum(ideal, 1e-300)


def warm_up(world: HolisticWorld, seed: int) -> HolisticCrawl:
    """The crawl as it is when the measured time begins."""
    crawl = HolisticCrawl(world, seed)
    _run(crawl, WarmStart(), world.warm_per_step, world.warm_steps, seed)
    return crawl


def replay(warm: HolisticCrawl, policy: str, budget: float, seed: int) -> Replay:
    """Go on from a warm crawl, which stays as it is, with a budget of the world's."""
    world = warm.world
    crawl = copy.deepcopy(warm, {id(world): world})
    steps = world.steps - world.warm_steps
    return _run(crawl, make_chooser(policy), world.fetches_per_step(budget), steps, seed)


def kinds_left(crawl: HolisticCrawl, taken: I64) -> BOOL:
    """By kind, whether any of it is left when these are taken: else the last of them is at no margin."""
    others = np.ones(crawl.count, np.bool_)
    others[taken] = False
    return np.bincount(crawl.kinds()[others], minlength=len(KINDS)) > 0


def _run(crawl: HolisticCrawl, chooser: Chooser, per_step: float, steps: int, seed: int) -> Replay:
    world = crawl.world
    clicks, spent = np.zeros(steps), np.zeros((steps, len(KINDS)))
    sums, parts = np.zeros((5, len(KINDS))), np.zeros((2, len(KINDS), PARTS))
    telling = isinstance(chooser, Clairvoyant)  # it knows which pages are worth a fetch
    credit = 0.0
    for step in range(steps):
        if step % world.study_steps == 0:
            chooser.study(crawl, seed)
        credit += per_step
        fetches = int(credit + 1e-9)
        credit -= fetches
        if fetches:
            choice = chooser.choose(crawl, fetches)
            kinds = (crawl.kinds()[choice.rows] if choice.kinds is None else choice.kinds).tolist()
            price, left = choice.price, kinds_left(crawl, choice.rows)
            for row, bid, kind in zip(choice.rows.tolist(), choice.bids.tolist(), kinds, strict=True):
                spent[step, kind] += 1
                if math.isfinite(bid):
                    gained = crawl.gain_of_page(row) + crawl.gain_of_visit(row, price, telling=telling)
                    sums[:2, kind] += bid, gained
                    if bid <= MARGIN * price and step >= SETTLED * steps and left[kind]:
                        sums[2:, kind] += bid, gained, 1.0
                        parts[:, kind, int(world.group[crawl.page[row]]) % PARTS] += gained, bid
                crawl.fetch(row)
        clicks[step] = crawl.pass_step()
    return Replay(world, clicks, spent, parts, *sums)
