"""What a run leaves behind: tables for programs, plots, and one HTML file that needs nothing but itself."""

from __future__ import annotations

import base64
import csv
import io
import os
import platform
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jinja2
import orjson

import bowerbird
from bowerbird.lab.plots import Plot, draw_plots, measure_titles
from bowerbird.lab.runner import Run
from bowerbird.lab.summaries import MIN_SPLITS, compare, cost_of, pick
from bowerbird.lab.tables import decimals_for, make_tables, number_text, place_texts
from bowerbird.model.errors import FolderError

TEMPLATES = Path(__file__).resolve().parent / "templates"
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")
TOO_FEW = "too few splits"
VERDICTS = {True: "holds", False: "does not hold", None: "cannot say"}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a run's numbers come from."""

    on: str  # the data set's name or the folder, as it was given
    command: str
    started_s: float


def as_data(run: Run, origin: Origin) -> dict[str, Any]:
    """The one object for programs; every family has the same shape."""
    rows = [
        {
            "policy": row.policy,
            "measure": row.measure,
            "at": row.at,
            "mean": row.mean,
            "se": row.se,
            "n": row.n,
            "seconds": row.seconds,
            "peak_mb": row.peak_mb,
        }
        for row in run.summaries
    ]
    return {
        "experiment": run.family.name,
        "on": origin.on,
        "rows": rows,
        "command": origin.command,
        "version": bowerbird.__version__,
    }


def check_writable(folder: Path) -> None:
    """Raises FolderError where results could not be written, so that it is known before they are measured."""
    probe = folder / ".probe.partial"
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink()
        for place in made:  # until there are results there is nothing to see
            place.rmdir()
    except OSError as error:
        raise _cannot_write(folder, error) from error


def write_results(run: Run, origin: Origin, folder: Path) -> Path:
    """Write all files; the report is the last, so that where it is, the others are too. Returns its path."""
    data = as_data(run, origin)
    head = ("split", "policy", "measure", "at", "value")
    samples = [
        (split.split, sample.policy, sample.measure, sample.at, sample.value)
        for split in run.splits
        for sample in split.samples
    ]
    costs = [(split.split, cost.policy, cost.seconds, cost.peak_mb) for split in run.splits for cost in split.costs]
    plots, missing = _try_plots(run)
    files: dict[str, bytes] = {
        "rows.json": orjson.dumps(data, option=orjson.OPT_INDENT_2) + b"\n",
        "rows.csv": _csv(tuple(data["rows"][0]) if data["rows"] else (), (row.values() for row in data["rows"])),
        "samples.csv": _csv(head, samples),
        "costs.csv": _csv(("split", "policy", "seconds", "peak_mb"), costs),
    }
    for plot in plots:
        files |= {f"{plot.stem}.svg": plot.svg, f"{plot.stem}.png": plot.png}
    more = getattr(run.family, "files", None)
    if more is not None:
        files |= more(run.data)
    files["report.html"] = render_report(run, origin, plots, missing).encode("utf-8")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            _write_whole(folder / name, content)
        for old in {*folder.glob("plot-*.svg"), *folder.glob("plot-*.png")}:
            if old.name not in files:  # of an earlier run that had other measures
                old.unlink()
    except OSError as error:
        raise _cannot_write(folder, error) from error
    return folder / "report.html"


def _cannot_write(folder: Path, error: OSError) -> FolderError:
    return FolderError(f"{folder}: cannot be written ({error.strerror}). Say --out ELSEWHERE.")


def render_report(run: Run, origin: Origin, plots: Sequence[Plot], missing: str = "") -> str:
    """The report as one HTML page without references to anything outside it."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    family, n = run.family, len(run.splits)
    pictures = [(plot.title, base64.b64encode(plot.svg).decode("ascii")) for plot in plots]
    return environment.get_template("report.html").render(
        family=family,
        origin=origin,
        name=run.data.name,
        n=n,
        seeds=run.seeds,
        stopped=run.stopped,
        min_splits=MIN_SPLITS,
        titles=measure_titles(family, run.summaries),
        splits=", ".join(str(split.split) for split in run.splits),
        paragraphs=[text.strip() for text in family.method.split("\n\n") if text.strip()],
        facts=[(key, _fact(value)) for key, value in run.data.describe().items()],
        tables=make_tables(family, run.summaries),
        pictures=pictures,
        pairs=_pair_up(run),
        by_split=_by_split(run),
        costs=_costs(run),
        findings=[(finding, VERDICTS[finding.holds]) for finding in run.findings],
        notes=[*run.notes, *filter(None, [missing])],
        settings=_settings(run, origin),
    )


def versions() -> dict[str, str]:
    """Of what took part."""
    found = {"bowerbird": bowerbird.__version__, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


@dataclass(frozen=True, slots=True)
class PairRow:
    """A policy against the reference, in words."""

    policy: str
    difference: str
    interval: str
    above: str


@dataclass(frozen=True, slots=True)
class PairTable:
    """All policies against the reference in the headline measure."""

    reference: str
    place: str  # at which it was measured; empty for a measure without
    rows: list[PairRow]


def reference_of(run: Run) -> str | None:
    """The policy that others are compared with: the family's choice if it was run, else the first."""
    wanted = getattr(run.family, "reference", None)
    measured = [row.policy for row in run.summaries if row.measure == run.family.headline]
    return wanted if wanted in measured else next(iter(measured), None)


def _pair_up(run: Run) -> PairTable | None:
    reference = reference_of(run)
    rows = [row for row in run.summaries if row.measure == run.family.headline]
    if reference is None or len({row.policy for row in rows}) < 2:
        return None
    at = max((row.at for row in rows if row.policy == reference), key=lambda place: -1.0 if place is None else place)
    base = pick(rows, reference, run.family.headline, at)
    assert base is not None
    made = []
    for row in rows:
        if row.policy == reference or row.at != at:
            continue
        pair = compare(row, base)
        digits = decimals_for([pair.mean, row.mean])
        reach = pair.interval
        ties = f" ({pair.ties} equal)" if pair.ties else ""
        made.append(
            PairRow(
                row.policy,
                f"{pair.mean:+.{digits}f}",
                f"{reach[0]:+.{digits}f} to {reach[1]:+.{digits}f}" if reach else TOO_FEW,
                f"{pair.above} of {pair.n}{ties}",
            )
        )
    return PairTable(reference, "" if at is None else place_texts([at])[0], made)


def _by_split(run: Run) -> list[tuple[str, list[str]]]:
    """The headline measure on every split, where it has no places."""
    rows = [row for row in run.summaries if row.measure == run.family.headline and row.at is None]
    digits = decimals_for([row.mean for row in rows])
    return [(row.policy, [number_text(value, digits) for value in row.values]) for row in rows]


def _costs(run: Run) -> list[tuple[str, str, str]]:
    policies = dict.fromkeys(cost.policy for split in run.splits for cost in split.costs)
    rows = [(policy, *cost_of(run.splits, policy)) for policy in policies]
    return [
        (policy, number_text(seconds, 2 if seconds >= 0.1 else 4), number_text(peak, 0))
        for policy, seconds, peak in rows
    ]


def _settings(run: Run, origin: Origin) -> list[tuple[str, str]]:
    return [
        ("command", origin.command),
        ("begun", time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(origin.started_s))),
        ("took", f"{run.seconds:.0f} s, {run.jobs} at once" if run.jobs > 1 else f"{run.seconds:.0f} s"),
        ("policies", ", ".join(run.policies)),
        *versions().items(),
        ("machine", f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"),
    ]


def _fact(value: str | int | float) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.0f}"


def _try_plots(run: Run) -> tuple[list[Plot], str]:
    try:
        draw = getattr(run.family, "draw", None)
        return draw(run.data, run.summaries) if draw else draw_plots(run.family, run.summaries, run.data.name), ""
    except ImportError:
        return [], "There are no plots: matplotlib is not installed. Install bowerbird[lab] and run again."


def _csv(head: Sequence[str], rows: Iterable[Iterable[object]]) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(["" if value is None else value for value in row] for row in rows)
    return out.getvalue().encode("utf-8")


def _write_whole(path: Path, content: bytes) -> None:
    """Beside it, then in its place: nobody sees a half-written file."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
