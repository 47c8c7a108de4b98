"""Re-appraising known pages at size: five million fetched pages with their visits, to bids for all of them.

Timed are the parts of a study that depend on the method and what a running crawl does with it: the forecast from past
visits and priors, the method's bids, the price that uses the budget, and the bids of every row read off the study with
what sites say of changes. Reading the folder is not timed. One process, kernels loaded; the best of some repeats.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from reporting import machine, table, write_json

DAY_S = 86400.0
NOW = 1_800_000_000.0
HOSTS = 50_000
VISITS = 3.0  # a page, on average
DATED = 0.4  # share of pages that a sitemap or feed dates
REPEATS = 3

#: name -> upper bound
BARS = {"seconds": 5.0}


def draw(pages: int, seed: int = 1) -> tuple[Any, Any, Any]:
    """Inputs of so many pages, where they are, and a snapshot of the crawl that has them and no others."""
    from bowerbird.appraise.refresh.inputs import RefreshInputs
    from bowerbird.appraise.refresh.study import KnownPages
    from bowerbird.model.snapshot import HostColumns, PageColumns, Snapshot
    from bowerbird.model.url_state import UrlState

    rng = np.random.default_rng(seed)
    host = np.minimum(HOSTS * rng.random(pages) ** 3, HOSTS - 1).astype(np.int64)
    heads = [host]
    for parts in (3, 3, 2):  # the groupings of a live study: host, two parts of the path, directory, depth
        heads.append(number(heads[-1] * parts + np.minimum(parts * rng.random(pages) ** 2, parts - 1).astype(np.int64)))
    rate = np.exp(rng.normal(np.log(1 / (20 * DAY_S)), 1.5, pages) + rng.normal(0, 1, HOSTS)[host])
    visits = rng.poisson(VISITS, pages)
    starts = np.zeros(pages + 1, dtype=np.int64)
    np.cumsum(visits, out=starts[1:])
    total = int(starts[-1])
    interval = rng.exponential(7 * DAY_S, total) + 60.0
    changed = rng.random(total) < -np.expm1(-np.repeat(rate, visits) * interval)
    stake = np.where(rng.random(pages) < 0.2, rng.pareto(1.1, pages), 0.0)
    stake /= stake.sum()
    gain = np.where(changed, np.repeat(stake, visits) * rng.exponential(0.05, total), 0.0)
    gain[changed & (rng.random(total) < 0.1)] = np.nan  # nobody measured
    age = rng.exponential(7 * DAY_S, pages)
    hint = np.where(rng.random(pages) < DATED, NOW - rng.exponential(20 * DAY_S, pages), 0.0)
    inputs = RefreshInputs(
        now_s=NOW,
        starts=starts,
        interval_s=interval,
        changed=changed,
        shift=np.where(changed, rng.random(total), 0.0),
        gain=gain,
        stake=stake,
        views=stake,
        levels=(*heads, rng.integers(0, 6, pages)),
        hint_age_s=np.where(hint > 0, NOW - hint, np.nan),
        cost=rng.uniform(0.6, 1.0, HOSTS)[host],
    )
    columns = {
        "host": host.astype(np.uint32),
        "state": np.full(pages, int(UrlState.FETCHED), np.uint8),
        "last_fetched": NOW - age,
        "interval_s": np.full(pages, 7 * DAY_S, np.float32),
        "hint_modified": hint.astype(np.uint32),
    }
    kinds = {name: text.split("np.")[1].rstrip("]") for name, text in PageColumns.__annotations__.items()}
    whole = {
        name: columns.get(name, np.zeros(pages if name not in columns else 0, kind)) for name, kind in kinds.items()
    }
    hosts = HostColumns(np.zeros(HOSTS, np.int64), np.zeros(HOSTS, np.uint32), np.zeros(HOSTS, np.float32))
    snapshot = Snapshot(NOW, PageColumns(**whole), hosts)
    return inputs, KnownPages(np.arange(pages), host, pages, HOSTS), snapshot


def number(groups: Any) -> Any:
    """Group numbers without gaps."""
    return np.unique(groups, return_inverse=True)[1].astype(np.int64)


def measure(pages: int, method: str) -> dict[str, float]:
    """Seconds of each part."""
    from dataclasses import replace

    from bowerbird.appraise.policy import make_policy
    from bowerbird.appraise.refresh.bids import RefreshOptions
    from bowerbird.appraise.refresh.clearing import clear_price
    from bowerbird.appraise.refresh.forecast import forecast_pages
    from bowerbird.appraise.refresh.methods import METHODS
    from bowerbird.appraise.refresh.signals import SignalQuality
    from bowerbird.appraise.refresh.study import RefreshPlan, study_refreshes
    from bowerbird.crawl.market import REBID_CHUNK

    signals = SignalQuality(np.full(HOSTS, 8.0), np.full(HOSTS, 2.0), np.full(HOSTS, 1.0), np.full(HOSTS, 1e8))
    plan = RefreshPlan(7 * DAY_S)
    policy = make_policy(method)
    inputs, known, snapshot = draw(2000)
    warm = study_refreshes(inputs, method, known, plan, signals)
    policy.appraise(replace(snapshot, refresh_study=warm), np.arange(2000))

    inputs, known, snapshot = draw(pages)
    budget = pages / plan.interval_s
    offered = np.where(np.isnan(inputs.hint_age_s), 0.0, signals.recall[known.hosts])
    false_rate = signals.false_rate_per_s[known.hosts]
    forecast, forecast_s = timed(lambda: forecast_pages(inputs))
    bids, method_s = timed(lambda: METHODS[method](inputs, forecast, RefreshOptions(budget)))
    _, price_s = timed(
        lambda: clear_price(
            bids,
            budget * float(inputs.cost.mean()),
            shortest_s=plan.shortest_s,
            longest_s=plan.explored_s,
            cost=inputs.cost,
            recall=offered if bids.listens else None,
            false_rate_per_s=false_rate if bids.listens else None,
        )
    )
    study, study_s = timed(lambda: study_refreshes(inputs, method, known, plan, signals))
    snapshot = replace(snapshot, refresh_study=study)

    def appraise() -> None:
        for first in range(0, pages, REBID_CHUNK):
            policy.appraise(snapshot, np.arange(first, min(first + REBID_CHUNK, pages)))

    _, appraise_s = timed(appraise)
    return {
        "forecast": forecast_s,
        "method": method_s,
        "price": price_s,
        "whole study": study_s,
        "appraise all rows": appraise_s,
        "seconds": study_s + appraise_s,
        "cpu": cpu_of(lambda: study_refreshes(inputs, method, known, plan, signals)) + cpu_of(appraise),
    }


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """The result, and the least that it took."""
    times = []
    result = None
    for _ in range(REPEATS):
        began = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - began)
    return result, min(times)


def cpu_of(work: Callable[[], Any]) -> float:
    """Seconds of all cores that it takes: what others do on the machine moves that less."""
    began = time.process_time()
    work()
    return time.process_time() - began


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=5_000_000)
    parser.add_argument("--method", action="append", help="of refreshing; several may be given [user-centric]")
    parser.add_argument("--json", type=Path, default=None, help="keep the result here")
    options = parser.parse_args()
    found = {method: measure(options.pages, method) for method in options.method or ["user-centric"]}
    rows = [{"method": method, **{f"{name} s": value for name, value in one.items()}} for method, one in found.items()]
    print(table(rows))
    worst = max(one["seconds"] for one in found.values())
    peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{options.pages:,} pages; peak {peak_gb:.1f} GB; bar {BARS['seconds']:g} s:", worst <= BARS["seconds"])
    data = {"pages": options.pages, "methods": found, "peak_gb": peak_gb, "bars": BARS, "machine": machine()}
    print(write_json("appraisal", data, options.json))


if __name__ == "__main__":
    main()
