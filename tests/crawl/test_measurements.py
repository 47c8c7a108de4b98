from __future__ import annotations

from pathlib import Path

import pytest

from bowerbird.crawl.measurements import NAME, Measurement, keep_measurement, read_quality
from bowerbird.model.errors import FolderError
from bowerbird.store.folder import CrawlFolder


def test_measurements_are_kept_in_the_order_of_time(tmp_path: Path) -> None:
    folder = CrawlFolder(tmp_path)
    assert read_quality(folder) == []
    later = Measurement(20.0, 0.9, 0.85, 0.94, 400, 100, 0.8, {"rose": 0.1})
    earlier = Measurement(10.0, 0.5, 0.4, 0.6, 200)
    keep_measurement(folder, later)
    keep_measurement(folder, earlier)
    assert read_quality(folder) == [earlier, later]
    assert read_quality(folder, since=15.0) == [later]
    assert read_quality(folder, limit=1) == [later]
    assert read_quality(folder, limit=5) == [earlier, later]
    assert read_quality(folder, since=25.0, limit=1) == []
    keep_measurement(folder, Measurement(20.0, 0.95, 0.9, 1.0, 500))
    assert [made.quality for made in read_quality(folder)] == [0.5, 0.95]


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"no database" * 100)
    with pytest.raises(FolderError, match=r"quality\.db.*Move it away"):
        read_quality(CrawlFolder(tmp_path))
