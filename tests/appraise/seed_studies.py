"""Choices of seeds by hand, for tests."""

from __future__ import annotations

import numpy as np

from bowerbird.model.seed_study import OUT_OF_REACH, SeedStudy


def seed_study(rows: list[int], count: int, **values: object) -> SeedStudy:
    """A choice of these rows; each adds a page worth 1, and reaches nothing else."""
    depth = np.full(count, OUT_OF_REACH, np.uint8)
    depth[rows] = 0
    columns: dict[str, object] = {
        "at": 1_700_000_000.0,
        "method": "seeds",
        "count": count,
        "k": 10,
        "hops": 5,
        "row": np.array(rows, np.int64),
        "pages": np.ones(len(rows), np.int64),
        "value": np.ones(len(rows)),
        "all_pages": count,
        "all_value": float(count),
        "unit": "clicks",
        "given": np.zeros(0, np.int64),
        "given_pages": 0,
        "given_value": 0.0,
        "before": np.zeros(0, np.int64),
        "before_value": 0.0,
        "depth": depth,
    }
    return SeedStudy(**{**columns, **values})  # type: ignore[arg-type]  # a test says what it needs
