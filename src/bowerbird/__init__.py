"""Bowerbird: a web crawler that spends every fetch where it gains searchers most.

The names below are for other programs, and stay: docs/python.md. Each is loaded when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bowerbird.appraise.appraiser import Appraiser
    from bowerbird.appraise.policy import Policy, RefreshSettings, make_policy
    from bowerbird.library.bidding import Appraisal, bid
    from bowerbird.library.ranking import Ranking, rank
    from bowerbird.library.snapshots import snapshot_of
    from bowerbird.library.studies import study
    from bowerbird.library.tables import Table
    from bowerbird.library.workloads import workload_of
    from bowerbird.model.bid import Bid, Bids, Shape, Term
    from bowerbird.model.errors import BowerbirdError, ConfigError, PolicyError, TableError
    from bowerbird.model.snapshot import HostColumns, LinkGraph, PageColumns, Snapshot
    from bowerbird.model.study import CalibrationNote
    from bowerbird.model.url_state import UrlKind, UrlState
    from bowerbird.model.workload import Workload

__version__ = "0.1.0"

__all__ = [
    "Appraisal",
    "Appraiser",
    "Bid",
    "Bids",
    "BowerbirdError",
    "CalibrationNote",
    "ConfigError",
    "HostColumns",
    "LinkGraph",
    "PageColumns",
    "Policy",
    "PolicyError",
    "Ranking",
    "RefreshSettings",
    "Shape",
    "Snapshot",
    "Table",
    "TableError",
    "Term",
    "UrlKind",
    "UrlState",
    "Workload",
    "bid",
    "make_policy",
    "rank",
    "snapshot_of",
    "study",
    "workload_of",
]

if not TYPE_CHECKING:  # a type checker knows the names; with this it would take any name for one of them
    _HOMES = {
        "appraise.appraiser": ("Appraiser",),
        "appraise.policy": ("Policy", "RefreshSettings", "make_policy"),
        "library.bidding": ("Appraisal", "bid"),
        "library.ranking": ("Ranking", "rank"),
        "library.snapshots": ("snapshot_of",),
        "library.studies": ("study",),
        "library.tables": ("Table",),
        "library.workloads": ("workload_of",),
        "model.bid": ("Bid", "Bids", "Shape", "Term"),
        "model.errors": ("BowerbirdError", "ConfigError", "PolicyError", "TableError"),
        "model.snapshot": ("HostColumns", "LinkGraph", "PageColumns", "Snapshot"),
        "model.study": ("CalibrationNote",),
        "model.url_state": ("UrlKind", "UrlState"),
        "model.workload": ("Workload",),
    }

    def __getattr__(name: str) -> object:
        home = next((home for home, names in _HOMES.items() if name in names), None)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        found = getattr(import_module(f"{__name__}.{home}"), name)
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
