"""Results: a table for people, JSON and CSV for programs, a chart."""

from __future__ import annotations

import csv
import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

OUT = Path(os.environ.get("BENCH_OUT") or Path(__file__).resolve().parent.parent / "out" / "bench")


def machine() -> dict[str, Any]:
    """Where the figures come from."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "load": [round(value, 2) for value in os.getloadavg()],
    }


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows of equal keys as aligned text."""
    names = list(rows[0])
    cells = [[_text(row[name]) for name in names] for row in rows]
    widths = [max(len(name), *(len(line[i]) for line in cells)) for i, name in enumerate(names)]
    lines = ["  ".join(name.ljust(width) for name, width in zip(names, widths, strict=True))]
    lines += ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]
    return "\n".join(line.rstrip() for line in lines)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "PASS" if value else "FAIL"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def write_json(name: str, data: Mapping[str, Any], path: Path | None = None) -> Path:
    """Keep a result."""
    target = path or OUT / f"{name}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return target


def write_csv(name: str, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Keep rows of equal keys."""
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / f"{name}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def figure(width: float = 7.0, height: float = 4.0) -> Any:
    """A chart without a screen: the figure and its axes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(width, height), layout="constrained")


def save(chart: Any, name: str) -> Path:
    """Keep a chart."""
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / f"{name}.png"
    chart.savefig(path, dpi=130)
    return path
