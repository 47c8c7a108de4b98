"""Logs of any size as what is asked and clicked now: `queries fade`."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from bowerbird.cli.engine import Engine, engine_options, local_path, say
from bowerbird.cli.table_files import give_result, is_uri, table_options
from bowerbird.cli.values import DURATION
from bowerbird.demand.events import normalise_query
from bowerbird.demand.records import BadLine, parse_time
from bowerbird.model.errors import ConfigError

if TYPE_CHECKING:
    from bowerbird.cluster.inputs import Rows

DAY_S = 86_400.0


@click.command("fade")
@click.argument("log", metavar="LOG")
@click.option("--clicks", is_flag=True, help="The log is of clicks: page, time, clicks.")
@click.option("--at", "at_text", default=None, metavar="TIME", help="Frequencies as of then.  [default: now]")
@click.option("--half-life", type=DURATION, default="30d", show_default=True, help="Time in which a weight halves.")
@click.option(
    "--min-count",
    type=click.FloatRange(min=0),
    default=None,
    help="Leave out what was counted less often.  [default: 2; clicks: 0]",
)
@table_options(0)
@engine_options
def fade_command(
    log: str,
    clicks: bool,
    at_text: str | None,
    half_life: float,
    min_count: float | None,
    count: int,
    out: str | None,
    as_json: bool,
    engine: Engine,
) -> None:
    """Add up a log into frequencies that fade, without a crawl folder: for `sketches`, `rank` and other programs.

    The log has the columns query, time and count (with --clicks page, time and clicks), as TSV, CSV or Parquet. A time
    is a date, a date with a time of day, or Unix seconds. A count of an earlier time weighs half for each half-life
    that has passed since; equal queries are one, as in a crawl's own log. The result has the columns query, frequency,
    count, or page, clicks, count; most frequent first.
    """
    try:
        now = time.time() if at_text is None else parse_time(at_text)
    except BadLine as error:
        raise ConfigError(f"--at: {error}. Write 2026-01-31, 2026-01-31T12:00:00Z or Unix seconds.") from None
    engine.check_tables(("--out", out))
    least = min_count if min_count is not None else 0.0 if clicks else 2.0
    words = ["bowerbird", "queries", "fade", log, *["--clicks"] * clicks, "--at", f"{now:.3f}"]
    words += ["--half-life", f"{half_life:g}s", "--min-count", f"{least:g}", "-n", str(count), *engine.words()]
    if engine.is_spark:
        columns = _by_spark(engine, log, now, half_life, least, clicks, count, out)
    else:
        columns = _by_hand(log, now, half_life, least, clicks, count)
    give_result({"at": now}, columns, out, as_json, words)


def _by_hand(log: str, now: float, half_life_s: float, least: float, clicks: bool, count: int) -> dict[str, list[Any]]:
    from bowerbird.cli.graph_columns import read_rows
    from bowerbird.demand.tally import fade_all
    from bowerbird.library.column_names import CLICKS, FREQUENCIES, PAGES, QUERIES, TIMES

    path = local_path(log, "LOG")
    assert path is not None
    names, amounts = (PAGES, CLICKS) if clicks else (QUERIES, FREQUENCIES)
    read = read_rows(path, (names, TIMES, amounts), trimmed=True)
    for note in read.notes:
        say(note)
    times = np.array([_seconds(text) for text in read.names[1].dictionary.to_pylist()])[read.names[1].rows]
    texts = read.names[0].dictionary.to_pylist()
    texts = texts if clicks else [normalise_query(text) for text in texts]
    kept = np.flatnonzero(~np.isnan(times) & np.array([bool(text) for text in texts])[read.names[0].rows])
    if bad := int(np.isnan(times).sum()):
        say(_tell_bad(log, bad, len(times)))
    spelled = [texts[row] for row in read.names[0].rows[kept].tolist()]
    sums = fade_all(spelled, times[kept], read.amounts[kept], now, half_life_s)
    rows = sorted((-faded, text, total) for text, (total, faded) in sums.items() if total >= least)[: count or None]
    return {
        names[0]: [text for _, text, _ in rows],
        amounts[0]: [-faded for faded, _, _ in rows],
        "count": [total for _, _, total in rows],
    }


def _seconds(text: str) -> float:
    try:
        return parse_time(text)
    except BadLine:
        return float("nan")


def _tell_bad(log: str, bad: int, rows: int) -> str:
    """Raises ConfigError where most times are none."""
    told = f"{log}: {bad:,} of {rows:,} times are neither numbers nor dates"
    if bad * 2 > rows:
        raise ConfigError(f"{told}. Its columns must be query (or page), time, count, by name or in this order.")
    return f"{told}; left out."


def _by_spark(
    engine: Engine, log: str, now: float, half_life_s: float, least: float, clicks: bool, count: int, out: str | None
) -> dict[str, list[Any]]:
    with engine.session(("--out", out)) as (spark, _):
        from bowerbird.cluster.fading import fade_logs
        from bowerbird.cluster.results import take_rows

        frame, told = fade_logs(spark, log, now, half_life_s, least, clicks=clicks)
        name, amount, _ = frame.columns
        take = partial(take_rows, frame, ((amount, True), (name, False)), count, out)
        if out is not None and is_uri(out):  # a log that is none must not overwrite a former result: it is read before
            told.counted.count()
            _tell_of(log, told)
            return take()
        columns = take()
        _tell_of(log, told)
    return columns


def _tell_of(log: str, told: Rows) -> None:
    """After a job: what was left out. Raises ConfigError or InputFileError where that is most."""
    for note in told.check():
        say(note)
    bad = told.observation.get["untimed"]
    if bad:
        say(_tell_bad(log, int(bad), int(told.observation.get["rows"])))
