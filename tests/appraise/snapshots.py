"""Snapshots to appraise: any mix of states, or single pages by hand. All arrays are read-only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bowerbird.model.bid import Shape
from bowerbird.model.refresh_study import RefreshDetails, RefreshStudy
from bowerbird.model.snapshot import HostColumns, PageColumns, Snapshot
from bowerbird.model.study import REASONS, CalibrationNote, FrontierStudy, Reasons
from bowerbird.model.url_state import UrlKind, UrlState

NOW = 1_700_000_000.0


def snapshot_of(now: float = NOW, hosts_fetched: list[int] | None = None, **columns: object) -> Snapshot:
    """A snapshot from the columns that matter; the others hold what a URL just seen has."""
    (count,) = np.broadcast_shapes((1,), *(np.shape(column) for column in columns.values()))
    views = {}
    for name, kind in PageColumns.__annotations__.items():
        dtype = kind.split("np.")[1].rstrip("]")
        view = np.array(np.broadcast_to(np.asarray(columns.pop(name, 0)).astype(dtype), count))
        view.flags.writeable = False
        views[name] = view
    assert not columns, f"no such columns: {', '.join(columns)}"
    fetched = np.array(hosts_fetched or [0] * (int(views["host"].max(initial=0)) + 1), dtype=np.uint32)
    known = np.bincount(views["host"], minlength=len(fetched))
    trap = np.zeros(len(fetched), dtype=np.float32)
    for view in (fetched, known, trap):
        view.flags.writeable = False
    return Snapshot(now, PageColumns(**views), HostColumns(known, fetched, trap))


def random_snapshot(
    seed: int,
    count: int,
    states: tuple[UrlState, ...] = tuple(UrlState),
    kinds: tuple[UrlKind, ...] = tuple(UrlKind),
) -> Snapshot:
    """Any URLs of these states and kinds, with extreme values among them."""
    rng = np.random.default_rng(seed)
    state = rng.choice([int(state) for state in states], count)
    fetches = np.where(state == UrlState.NEW, rng.integers(0, 2, count), rng.integers(1, 65536, count))
    hosts_fetched = rng.choice([0, 1, 50, 1000, 2**32 - 1], 7).tolist()
    snapshot = snapshot_of(
        NOW,
        hosts_fetched,
        host=rng.integers(0, 7, count),
        state=state,
        kind=rng.choice([int(kind) for kind in kinds], count),
        depth=rng.choice([0, 1, 2, 7, 255], count),
        first_seen=NOW - 1e6,
        last_fetched=np.where(fetches > 0, NOW - rng.choice([-3600.0, 0.0, 1.5, 1e4, 1e8], count), 0.0),
        last_changed=np.where(fetches > 0, NOW - 5e6, 0),
        fetches=fetches,
        changes=rng.integers(0, 1 + np.minimum(fetches, 100)),
        errors=rng.choice([0, 1, 255], count),
        in_degree=rng.choice([0, 1, 2, 1000, 2**32 - 1], count),
        interval_s=rng.choice([0.0, 60.0, 604800.0, 3.1e7], count),
        hint_modified=rng.choice([0, int(NOW) - 100], count),
    )
    study = random_study(rng, snapshot)
    return replace(snapshot, study=study, refresh_study=random_refresh_study(rng, snapshot))


def random_study(rng: np.random.Generator, snapshot: Snapshot, method: str = "rw-eg") -> FrontierStudy:
    """Of about half of the rows; those after it, and the hosts after the first five, were not known then."""
    count = len(snapshot.pages) // 2
    worth = np.where(rng.random(count) < 0.2, np.nan, rng.exponential(2.0, count)).astype(np.float32)
    rows = np.flatnonzero(~np.isnan(worth))
    sources = rng.integers(-1, count, (len(rows), REASONS)).astype(np.int32)
    reasons = Reasons(
        rows,
        sources,
        rng.random((len(rows), REASONS)).astype(np.float32),
        np.full((len(rows), REASONS), -1, dtype=np.int32),
        np.full((len(rows), REASONS), np.nan, dtype=np.float32),
        np.zeros(0, dtype=np.uint64),
    )
    host_worth = np.array([0.5, np.nan, 0.0, 3.0, 1e6], dtype=np.float32)
    note = CalibrationNote("calibrated", 100, 50.0, "by 50 clicks on 20 of 100 pages")
    score = rng.random(count).astype(np.float32)
    return FrontierStudy(snapshot.now - 60.0, method, count, worth, score, host_worth, 0.25, note, reasons)


def random_refresh_study(
    rng: np.random.Generator, snapshot: Snapshot, method: str = "user-centric", *, listens: bool = True
) -> RefreshStudy:
    """Of about half of the rows; those after it, and the hosts after the first five, were not known then."""
    count = len(snapshot.pages) // 2
    none = rng.random(count) < 0.2

    def column(values: np.ndarray) -> np.ndarray:
        return np.where(none, np.nan, values).astype(np.float32)

    changes = 10.0 ** rng.uniform(-9, -3, count)
    interval = 10.0 ** rng.uniform(1, 8, count)
    settled = rng.random(count) < 0.3
    gained = -np.expm1(-changes * interval) - changes * interval * np.exp(-changes * interval)
    settled |= gained < 1e-12
    details = RefreshDetails(*(column(rng.random(count)) for _ in range(4)))
    return RefreshStudy(
        at=snapshot.now - 60.0,
        method=method,
        count=count,
        amplitude=column(np.where(settled, 1.0, 1.0 / np.maximum(gained, 1e-12))),
        rate_per_s=column(np.where(settled, 1.0 / interval, changes)),
        shape=np.where(settled | none, int(Shape.LINEAR), int(Shape.SATURATING)).astype(np.uint8),
        interval_s=column(interval),
        changes_per_s=column(changes),
        host_interval_s=np.array([86400.0, np.nan, 60.0, 1e6, 1e7], dtype=np.float32),
        default_interval_s=604800.0,
        longest_s=1e8,
        recall=(np.array([0.8, 0.0, 1.0, 0.5, 0.99]) if listens else np.zeros(0)).astype(np.float32),
        false_rate_per_s=(np.array([0.0, 1e-6, 1e-9, 1e-3, 0.0]) if listens else np.zeros(0)).astype(np.float32),
        price=1e-3,
        budget_per_s=count / 604800.0,
        details=details,
        info={"pages": float(count)},
    )
