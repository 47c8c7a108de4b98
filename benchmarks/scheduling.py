"""What deciding costs: the scheduler with everything on, beside what a page costs the crawler otherwise.

A crawl of a million known URLs in virtual time, at 500 pages a second: bids of all kinds in clicks (policy auto), with
news that hubs announced, pages that are hubs, and corrections by a watch; the auction, lots of every kind, leases with
terms for the journal, bids of what was fetched and found, and the appraisal of every URL that comes round in between.
It is compared with the CPU that a page costs a whole crawl, as `throughput.py` measures it on that machine
(`--crawl-ms`); reading alone, in the same process, shows how fast the machine is at the moment.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bowerbird.crawl.heap import settle_heap
from corpus import make_corpus
from reporting import machine, table, write_json

DAY_S = 86400.0
NOW = 1_800_000_000.0
HOSTS, HUBS, NEWS = 20_000, 10_000, 50_000
FETCHED = 0.4
LINKS = 8  # URLs found a page, on average: as many bids
STEP_S = 0.1
LOTS = 0.01  # of the fetches, by default
#: name -> upper bound
BARS = {"share of a crawl's CPU": 0.05}


def draw(count: int, seed: int = 1) -> Any:
    """A snapshot of a crawl with so many URLs, with its studies."""
    from bowerbird.model.bid import Shape
    from bowerbird.model.factors import Factors
    from bowerbird.model.hub_study import HOURS, PARTS, HubColumns, HubStudy, InterestCurve
    from bowerbird.model.refresh_study import RefreshStudy
    from bowerbird.model.snapshot import HostColumns, PageColumns, Snapshot
    from bowerbird.model.study import CalibrationNote, FrontierStudy
    from bowerbird.model.url_state import UrlKind, UrlState

    rng = np.random.default_rng(seed)
    hubs = np.sort(rng.choice(count, min(HUBS, count // 10), replace=False))
    fetched = rng.random(count) < FETCHED
    fetched[hubs] = True
    kind = np.zeros(count, np.uint8)
    kind[hubs[::2]] = UrlKind.FEED  # the others are pages, too
    news = np.flatnonzero(~fetched)[:: max(count // NEWS // 2, 1)]
    news_hub = rng.integers(0, len(hubs), len(news))
    source = np.full(count, -1, np.int32)
    source[news] = hubs[news_hub]
    age = np.where(fetched, rng.exponential(5 * DAY_S, count), 0.0)
    given = {
        "host": np.minimum(HOSTS * rng.random(count) ** 2, HOSTS - 1).astype(np.uint32),
        "state": np.where(fetched, int(UrlState.FETCHED), int(UrlState.NEW)).astype(np.uint8),
        "kind": kind,
        "last_fetched": np.where(fetched, NOW - age, 0.0),
        "first_seen": (NOW - rng.exponential(20 * DAY_S, count)).astype(np.uint32),
        "source": source,
    }
    kinds = {name: text.split("np.")[1].rstrip("]") for name, text in PageColumns.__annotations__.items()}
    pages = PageColumns(**{name: given.get(name, np.zeros(count, dtype)) for name, dtype in kinds.items()})
    worth = np.where(fetched, np.nan, rng.lognormal(-5, 2, count)).astype(np.float32)
    note = CalibrationNote("calibrated", 1000, 500.0, "made up")
    frontier = FrontierStudy(
        NOW - 60,
        "informed",
        count,
        worth,
        np.nan_to_num(worth),
        np.full(HOSTS, 0.01, np.float32),
        0.01,
        note,
        info={"exposed_s": 10 * DAY_S},
    )
    known = fetched & (kind == UrlKind.PAGE)

    def column(values: Any) -> Any:
        return np.where(known, values, np.nan).astype(np.float32)

    changes = np.exp(rng.normal(np.log(1 / (20 * DAY_S)), 1.5, count))
    refresh = RefreshStudy(
        at=NOW - 60,
        method="user-centric",
        count=count,
        amplitude=column(1.0),
        rate_per_s=column(1 / (7 * DAY_S)),
        shape=np.full(count, int(Shape.LINEAR), np.uint8),
        interval_s=column(7 * DAY_S),
        changes_per_s=column(changes),
        host_interval_s=np.full(HOSTS, 7 * DAY_S, np.float32),
        default_interval_s=7 * DAY_S,
        longest_s=140 * DAY_S,
        recall=np.full(HOSTS, 0.8, np.float32),
        false_rate_per_s=np.full(HOSTS, 1e-7, np.float32),
        price=1.0,
        budget_per_s=float(known.sum()) / (7 * DAY_S),
        gain=column(rng.lognormal(-10, 2, count) / changes),
        stale_loss=column(rng.lognormal(-10, 2, count)),
        most_changes=column(rng.uniform(2.0, 20.0, count)),
        host_cost=rng.uniform(0.4, 1.0, HOSTS).astype(np.float32),
        clicks_per_s=0.5,
        info={"pages": float(known.sum())},
    )
    n, f4 = len(hubs), np.float32
    rate = (rng.lognormal(0, 1.5, n) / DAY_S).astype(f4)
    columns = HubColumns(
        row=hubs,
        kind=np.ones(n, np.uint8),
        visits=np.full(n, 9),
        found=np.full(n, 9),
        turned=np.zeros(n, np.int64),
        missed=np.zeros(n, f4),
        period_s=np.zeros(n, f4),
        rate_per_s=rate,
        drawn_per_s=rate,
        profit=rng.lognormal(-3, 1, n).astype(f4),
        decay_per_s=np.full(n, 1 / DAY_S, f4),
        left=np.full(n, 0.9, f4),
        amplitude=np.full(n, 10.0, f4),
        bid_rate_per_s=np.full(n, 1 / DAY_S, f4),
        shape=np.full(n, int(Shape.SATURATING), np.uint8),
        interval_s=np.full(n, DAY_S / 4, f4),
    )
    nothing = np.zeros(0, np.int64)
    study = HubStudy(
        at=NOW - 60,
        method="echo",
        count=count,
        hubs=columns,
        page_row=news,
        page_hub=news_hub,
        page_factor=rng.lognormal(0, 0.5, len(news)).astype(f4),
        curve=InterestCurve(np.zeros(0, f4), np.zeros(0, f4), 1.0, 1 / DAY_S),
        by_clicks=True,
        mean_profit=0.05,
        price=1.0,
        budget_per_s=4 * n / DAY_S,
        longest_s=20 * DAY_S,
        cover_hub=nothing,
        cover_share=np.zeros(0, f4),
        pattern=rng.uniform(0.5, 1.5, HOURS).astype(f4),
        page_spread=np.linspace(0.2, 1.8, PARTS).astype(f4),
    )
    factors = Factors(new=0.8, announced=1.2, refresh=0.9, hub=1.1, feed_cost=0.8, sitemap_cost=1.3)
    hosts = HostColumns(np.zeros(HOSTS, np.int64), np.zeros(HOSTS, np.uint32), np.zeros(HOSTS, np.float32))
    return Snapshot(NOW, pages, hosts, study=frontier, refresh_study=refresh, hub_study=study, factors=factors)


class Clocked:
    """As much of a repository as the market asks for."""

    def __init__(self, snapshot: Any) -> None:
        from types import SimpleNamespace

        self.whole = snapshot
        pages = snapshot.pages
        columns = {name: getattr(pages, name) for name in ("host", "state", "kind")}
        columns["not_before"] = np.zeros(len(pages), np.float64)
        self.table = SimpleNamespace(columns=_Columns(columns, len(pages)))

    def meta(self, key: str) -> None:
        """Nothing is left of an earlier run."""

    def snapshot(self, now: float) -> Any:
        """What is known, at another time."""
        return replace(self.whole, now=now)


class _Columns(dict[str, Any]):
    def __init__(self, columns: dict[str, Any], count: int) -> None:
        super().__init__(columns)
        self.count = count


def schedule(count: int, rate_per_s: float, seconds: float) -> dict[str, float]:
    """CPU seconds a page of deciding, over so many virtual seconds."""
    from bowerbird.appraise.hubs.studied import fresh_pages
    from bowerbird.appraise.policy import make_policy
    from bowerbird.crawl.dispatch import LotTurns
    from bowerbird.crawl.market import Market
    from bowerbird.model.url_state import FetchKind
    from bowerbird.schedule.leases import Lease, LeaseBook
    from bowerbird.schedule.lottery import Lottery
    from bowerbird.schedule.politeness import HostGate

    snapshot = draw(count)
    repository = Clocked(snapshot)
    policy = make_policy("auto")
    rng = np.random.default_rng(2)
    gate = HostGate(1.0, 1)
    market = Market(repository, policy, gate, rate_per_s, NOW)  # type: ignore[arg-type]  # as much of one as it needs
    began = time.process_time()
    market.open(NOW)
    opened = time.process_time() - began
    policy.terms(repository.snapshot(NOW), np.arange(10))  # compiled
    pages, study = snapshot.pages, snapshot.hub_study
    lottery, leases = Lottery(LOTS, np.random.default_rng(3)), LeaseBook()
    turns = LotTurns(repository, gate)  # type: ignore[arg-type]  # as much of one as it needs
    lottery.follow(study.hubs.row, fresh_pages(snapshot, study.page_row))
    now, fetched, drawn, began = NOW, 0, 0, time.process_time()
    while now < NOW + seconds:
        now += STEP_S
        wanted = int(rate_per_s * STEP_S)
        lottery.draw(pages.state, pages.kind, now, turns)
        waiting = np.fromiter(lottery.waiting, np.int64, len(lottery.waiting))
        able = waiting[gate.are_free(pages.host[waiting].astype(np.int64), now)]
        picks = [
            market.auction.take(row, now, now + 60.0) for row in able.tolist() if gate.is_free(pages.host[row], now)
        ]
        for pick in picks:
            del lottery.waiting[pick.row]
        drawn += len(picks)
        picks += market.pick(now, wanted - len(picks))
        rows = np.array([pick.row for pick in picks], dtype=np.int64)
        lottery.owe(len(rows))
        if len(rows):
            told = policy.terms(repository.snapshot(now), rows)
            tokens = [
                leases.open(Lease(pick.row, pick.host, 0, FetchKind.NEW, now, now + 60.0, pick.value, 1.0, why))
                for pick, why in zip(picks, told, strict=True)
            ]
            market.auction.hold(rows, now + 60.0)
            for pick, token in zip(picks, tokens, strict=True):
                gate.give_back(pick.host, now)
                leases.close(token)
            pages.state[rows], pages.last_fetched[rows] = 1, now
            market.bid(rows, now, offer=False)
            market.note_linked(rng.integers(0, count, LINKS * len(rows)))
            fetched += len(rows)
        market.follow_studies(now)
        market.observe(now)
        market.keep_up(now, hungry=len(rows) < wanted)
    spent = time.process_time() - began
    return {"ms a page": 1e3 * spent / max(fetched, 1), "fetched": float(fetched), "drawn": drawn, "opening, s": opened}


def read_pages(count: int) -> float:
    """CPU seconds a page of what a worker does with it."""
    from bowerbird.page.charset import sniff_charset
    from bowerbird.page.html import parse_html
    from bowerbird.page.shingles import sketch_text

    bodies = [path.read_bytes() for path in sorted(make_corpus(count).rglob("*.html"))[:count]]
    took = []
    for _ in range(2):  # the first compiles
        began = time.process_time()
        for body in bodies:
            sketch_text(parse_html(body, sniff_charset(body, "text/html"), max_links=5000).text)
        took.append((time.process_time() - began) / len(bodies))
    return took[-1]


def main() -> None:
    """Measure, print, write."""
    settle_heap()  # as a crawl does
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--rate", type=float, default=500.0, help="pages a second")
    parser.add_argument("--seconds", type=float, default=60.0, help="virtual seconds")
    parser.add_argument("--crawl-ms", type=float, default=1.53, help="CPU a page of a crawl, from throughput.py")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    decided = schedule(options.urls, options.rate, options.seconds)
    reading_ms = 1e3 * read_pages(600)
    share = decided["ms a page"] / options.crawl_ms
    bar = BARS["share of a crawl's CPU"]
    rows = [
        {"what": "deciding, ms a page", "value": decided["ms a page"], "bar": "", "met": ""},
        {"what": "reading alone, ms a page", "value": reading_ms, "bar": "", "met": ""},
        {"what": "deciding by a crawl's CPU", "value": share, "bar": f"< {bar}", "met": share < bar},
        {"what": "pages decided on", "value": decided["fetched"], "bar": "", "met": ""},
        {"what": "of these drawn by lot", "value": decided["drawn"], "bar": "", "met": ""},
        {"what": "opening the crawl, s", "value": decided["opening, s"], "bar": "", "met": ""},
    ]
    print(table(rows))
    write_json(
        "scheduling",
        {"machine": machine(), "urls": options.urls, "share": share, "bound": bar, "rows": rows},
        options.out,
    )


if __name__ == "__main__":
    main()
