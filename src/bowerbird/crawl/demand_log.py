"""The demand log of a crawl folder, opened as its settings say."""

from __future__ import annotations

from bowerbird.crawl.settings import DemandSettings
from bowerbird.demand.log import DAY_S, DemandLog
from bowerbird.demand.schema import NAME
from bowerbird.demand.visibility import Visibility, make_visibility
from bowerbird.store.folder import CrawlFolder


def open_demand(folder: CrawlFolder, settings: DemandSettings, *, write: bool) -> DemandLog:
    """The log; read from a folder that has none it is empty."""
    return DemandLog.open(
        folder.root / NAME,
        write=write,
        half_life_s=settings.half_life_days * DAY_S,
        min_occurrences=settings.min_occurrences,
    )


def choose_visibility(settings: DemandSettings, log: DemandLog) -> Visibility:
    """How likely each rank is seen, as the settings say."""
    counts = log.rank_counts() if settings.visibility == "fitted" else None
    return make_visibility(settings.visibility, k=settings.visible_ranks, counts=counts)
