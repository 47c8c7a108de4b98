"""What the pages of one service share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bowerbird.serve.clicks import ClickOnce, Recorder, TokenSigner
from bowerbird.serve.dashboard_survey import Lookout
from bowerbird.serve.metrics import Metrics
from bowerbird.serve.service import Desk, SearchService
from bowerbird.store.folder import CrawlFolder


@dataclass(slots=True)
class Parts:
    """One of each, made by `create_app`. `looks` is the desk for slow looks at the whole crawl, `lookout` what they
    look from.
    """

    folder: CrawlFolder
    service: SearchService
    signer: TokenSigner
    clicked: ClickOnce
    recorder: Recorder
    metrics: Metrics
    looks: Desk
    lookout: Lookout
    now: Callable[[], float]
