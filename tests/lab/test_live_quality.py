"""The measured quality of real crawls against the truth: fetched over HTTP, indexed, left to age, probed, measured."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests.parallel import map_cores

from bowerbird.lab.aged_crawl import fetched_share_of, measure_aged_crawl
from bowerbird.quality.estimate import QualityEstimate


def measure(root: Path, seed: int, rounds: int = 1, probe_share: float = 0.0) -> tuple[float, QualityEstimate]:
    share = fetched_share_of(seed)
    return measure_aged_crawl(root / str(seed), seed, fetched_share=share, rounds=rounds, probe_share=probe_share)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_interval_covers_the_truth_in_nearly_all_of_twenty_worlds(tmp_path: Path) -> None:
    runs = map_cores(partial(measure, tmp_path), range(20))
    covered = sum(found.low <= truth <= found.high for truth, found in runs)
    errors = np.array([found.quality - truth for truth, found in runs])
    widths = np.array([found.high - found.low for _, found in runs])
    # what a crawl has fetched hangs on the clock, so runs differ: an exact 95% interval misses 4 of 20 once in 60 runs,
    # 5 once in 400. The bar of 17 is judged over more worlds by benchmarks/live_quality.py
    assert covered >= 16, [(truth, found.low, found.high) for truth, found in runs]
    assert abs(errors.mean()) < 0.07
    assert widths.mean() < 0.4  # an interval from 0 to 1 would cover too
    for truth, found in runs:
        assert sum(lost for lost, _, _ in found.causes.values()) == pytest.approx(1 - found.quality)
        assert found.causes["unfetched"][0] == max(lost for lost, _, _ in found.causes.values()) or truth > 0.8


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_probes_that_come_with_the_crawl_and_in_rounds_measure_the_quality_of_now(tmp_path: Path) -> None:
    runs = map_cores(partial(measure, tmp_path, rounds=4, probe_share=0.3), range(4))
    assert sum(found.low <= truth <= found.high for truth, found in runs) >= 3
    assert abs(np.mean([found.quality - truth for truth, found in runs])) < 0.12
