"""Why a visit to a hub bids what it does, in units of clicks: terms that multiply to the bid, and what they rest on."""

from __future__ import annotations

import math

import numpy as np

from bowerbird.appraise.budget.costs import cost_of_fetches
from bowerbird.appraise.hubs.discovery import mean_pattern
from bowerbird.appraise.hubs.due import values_at
from bowerbird.appraise.hubs.studied import NO_NEWS_CLICKED, half_life_text, tell_decay, tell_missed, tell_rate
from bowerbird.appraise.refresh.studied import span_text
from bowerbird.model.bid import Bids, Shape, Term, saturating_gain
from bowerbird.model.factors import Factors
from bowerbird.model.hub_study import HubKind, HubStudy
from bowerbird.model.snapshot import Snapshot

DAY_S = 86400.0
ALIKE = 1e-3


def tell_visit(snapshot: Snapshot, study: HubStudy, place: int, free: Bids) -> Term:
    """What a visit now gains, in units: lam·tau·hours·P·g(mu·tau)/(mu·tau), times factor, 1/cost and what is kept.

    `free` is the bid by the gain, whatever bounds say.
    """
    hubs = study.hubs
    last = float(snapshot.pages.last_fetched[hubs.row[place]])
    age = max(snapshot.now - last, 0.0)
    decay, drawn = float(hubs.decay_per_s[place]), float(hubs.drawn_per_s[place])
    hours = float(mean_pattern(study.pattern, np.array([last]), snapshot.now)[0])
    profit = "P: clicks of a new page over its life, in units"
    if not study.by_clicks:
        profit += f"; {NO_NEWS_CLICKED}"
    faded = saturating_gain(decay * age) / (decay * age) if decay * age > 0 else 0.0
    terms = [
        Term("new_pages_since", drawn * age, f"lam times {span_text(age)}", (tell_rate(study, place),)),
        Term("hours_since", hours, "new pages of all hubs in the hours since the last visit, by those of mean hours"),
        Term("units_per_new_page", float(hubs.profit[place]), profit),
        Term(
            "gained_by_coming_now",
            faded,
            f"of their clicks: half of the interest is gone after {half_life_text(decay)}",
        ),
    ]
    factors = snapshot.factors
    if factors is not None and factors.hub != 1.0:
        terms.append(
            Term("factor", factors.hub, "what visits that bid near the price have found, by what was expected of them")
        )
    one = hubs.row[[place]]
    (cost,) = cost_of_fetches(snapshot.pages, one, snapshot.refresh_study, factors or Factors()).tolist()
    if cost != 1.0:
        terms.append(Term("1/cost", 1.0 / cost, f"a visit costs {cost:.3g} usual fetches"))
    product = math.prod(float(term.value) for term in terms)
    value = float(values_at(free, snapshot.now)[0])
    if free.shape[0] != Shape.SATURATING:  # the study has set it by its age
        value *= hours
    kept = value / product if product > 0 else 1.0
    if abs(kept - 1.0) > ALIKE:
        terms.append(
            Term("kept", kept, "of that, what counts, and is left after the fetches of its new pages are paid for")
        )
    return Term(
        "gain of a visit",
        value,
        "in units: the terms multiply to it",
        (*terms, _tell_basis(snapshot, study, place, age)),
    )


def hold_back(tree: Term, bids: Bids, shortest_s: float, now: float) -> Term:
    """The bid of a hub that was visited a moment ago: it grows evenly to the end of the shortest interval."""
    bid = bids.bid(0)
    children = (
        Term(
            "age/shortest interval", bid.rate * max(now - bid.since, 0.0), f"visited {span_text(now - bid.since)} ago"
        ),
        Term("bid at its end", bid.amplitude, "what a visit gains by then, 1 at most"),
        tree,
    )
    note = f"nothing is due before the shortest interval, {span_text(shortest_s)}: until then it bids by its age"
    return Term("held back", bid.value(now), note, children)


def _tell_basis(snapshot: Snapshot, study: HubStudy, place: int, age_s: float) -> Term:
    hubs = study.hubs
    children = (
        Term("age_s", age_s, "since the last visit"),
        tell_decay(study, place),
        *tell_missed(study, place),
        Term("interval_s", float(hubs.interval_s[place]), "the age at which it gains 1, the price without a budget"),
        Term("study_age_s", max(snapshot.now - study.at, 0.0), f"by {study.method}, of {len(hubs):,} hubs"),
    )
    return Term("kind", HubKind(int(hubs.kind[place])).label, "what is known of it", children)
