"""What was expected of fetches and what they gained, for people and programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from bowerbird.crawl.moments import clock_text
from bowerbird.model.watch import NEAR_KINDS, KindWatch, Watch


def report_watch(watch: Watch) -> dict[str, Any]:
    """One object: kinds of fetches, those who expected, and the factors that follow."""
    near = str(watch.info.get(NEAR_KINDS, "")).split()
    return {
        "at": clock_text(watch.at),
        "kinds": [{**_tell(kind), "by_near": kind.name in near} for kind in watch.kinds],
        "appraisers": [_tell(kind) for kind in watch.appraisers],
        "factors": asdict(watch.factors),
        "info": watch.info,
        "margins": [
            {**_tell(kind), "surely_off": kind.surely_off, "cannot_tell": kind.cannot_tell} for kind in watch.margins
        ],
    }


def _tell(kind: KindWatch) -> dict[str, Any]:
    return {**asdict(kind), "drifts": kind.drifts, "too_little": kind.too_little}
