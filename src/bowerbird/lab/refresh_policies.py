"""Policies of the refresh experiments: called each week with the state of the replay and the budget in pages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bowerbird.lab.refresh_data import FloatArray, RefreshData
from bowerbird.lab.refresh_replay import Policy, Replay
from bowerbird.lab.refresh_terms import I64

SHAPES = ("linear", "area", "saturating")


def refresh_none(state: Replay, budget: int) -> I64:
    """Never fetch a page again."""
    return np.zeros(0, dtype=np.int64)


def refresh_oracle(state: Replay, budget: int) -> I64:
    """The pages whose refresh gains most this week, exactly: no crawler can know them."""
    return take_best(state.gains(), budget)


def uniform(count: int, rng: np.random.Generator) -> Policy:
    """All pages in turn, in a random order."""
    order = rng.permutation(count)

    def choose(state: Replay, budget: int) -> I64:
        chosen: I64 = order[(np.arange(budget) + (state.week - 1) * budget) % count]
        return chosen

    return choose


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is known or believed of each page."""

    growth: FloatArray  # [UC05]: the mean of dQ/(t - LastRefresh), per week
    changes: FloatArray  # a week
    loss: FloatArray  # of Q in each week in which one change is missed


def in_sample(data: RefreshData, gains: FloatArray) -> Forecast:
    """[UC05] parameters as the paper fitted them: from all weeks of the replay itself; `gains` by version.

    The refreshes over which dQ/(t - LastRefresh) is averaged are one at each update, LastRefresh the update before or
    week 0: the reading under which the losses come near the reference. With a refresh every week, changed or not, the
    mean would be the sum of the gains over the weeks.
    """
    later = np.flatnonzero(data.week > 0)
    page = data.page[later]
    since = (data.week[later] - data.week[later - 1]).astype(np.float64)
    updates = np.bincount(page, minlength=data.count).astype(np.float64)
    growth = np.bincount(page, weights=gains[later] / since, minlength=data.count) / np.maximum(updates, 1.0)
    loss = np.bincount(page, weights=gains[later], minlength=data.count) / np.maximum(updates, 1.0)
    return Forecast(growth, updates / data.weeks, loss)


def priority(forecast: Forecast, age_weeks: npt.ArrayLike, shape: str) -> FloatArray:
    """[UC05] P(p, t): linear delta·tau; [BEYOND] area delta·tau²/2, saturating (q/Delta)·g(Delta·tau)."""
    age = np.asarray(age_weeks, dtype=np.float64)
    if shape == "linear":
        return forecast.growth * age
    if shape == "area":
        return forecast.growth * age**2 / 2
    if shape == "saturating":
        passed = forecast.changes * age
        value = forecast.loss / np.maximum(forecast.changes, 1e-12) * (1.0 - (1.0 + passed) * np.exp(-passed))
        return np.where(forecast.changes > 0, value, 0.0)
    raise ValueError(f"no shape {shape!r}: one of {', '.join(SHAPES)}")


def user_centric(forecast: Forecast, shape: str = "linear") -> Policy:
    """Fetch the pages of the highest priority."""

    def choose(state: Replay, budget: int) -> I64:
        return take_best(priority(forecast, state.week - state.refreshed, shape), budget)

    return choose


def take_best(values: FloatArray, budget: int) -> I64:
    """The pages of the highest values, of equal ones those of lower paths."""
    return np.argsort(-values, kind="stable")[:budget]
