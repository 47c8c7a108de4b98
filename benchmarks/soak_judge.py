"""What a soak has shown: growth of memory, starvation, kills. A verdict is None where the soak cannot say."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from reporting import table, write_json
from soak_checks import Kill
from soak_watch import KIND_NAMES

F64 = npt.NDArray[np.float64]
URL_BYTES = 150.0  # the bar of frontier.py for a known URL, for those who look
GROWTH_MOST = 1e6  # bytes an hour beyond that: less cannot be told from how memory is handed out
NOISE_MOST = (
    3e6  # bytes an hour: with a wider interval, that reaches to 0 besides, an estimate above the bar is no proof
)
FEWEST = 8  # samples to spare of a fit
WARM_S = 600.0  # no growth is judged before: kernels, caches and pools of memory fill up
ALIKE = 0.999  # squared correlation of URLs and hours, from which b and c cannot be told apart
LATER = 1.0 / 3.0  # of a stretch is left out at least
WINDOWS = 10
LOTS = ("lot: frontier", "lot: announced", "lot: fetched", "lot: shown", "lot: hubs")
#: kind -> the lots that explore it
EXPLORED_BY = {"new": LOTS[:2], "refresh": LOTS[2:4], "hub": LOTS[4:]}
FEWEST_EXPECTED = 10.0  # explorations in a window: with fewer, none may be chance
WAIT_MOST = 1.5  # times what is promised: a due page may have to wait for its host, and for its turn at the price


def judge(
    samples: list[dict[str, Any]],
    kills: list[Kill],
    about: dict[str, Any],
    links: dict[str, float],
    urls: dict[str, float],
) -> dict[str, Any]:
    """All verdicts; `links` and `urls` say what this very web costs: a worker by links, a coordinator by URLs."""
    rows = [row for row in samples if "coordinator_own" in row]
    fits = {
        "coordinator": fit_growth(rows, "coordinator_own", urls["bytes_a_url"]),
        "workers": fit_growth(rows, "workers_own", links["bytes_a_url"]),
    }
    serve = [{**row, "stretch": 0, "stretch_s": row["seconds"]} for row in rows if "serve_own" in row]
    fits["serve"] = fit_growth(serve, "serve_own", URL_BYTES)
    windows = tabulate_windows(samples, about["options"]["probe_share"])
    waits = judge_waits(samples)
    checks = [check for kill in kills for check in kill.checks]
    verdicts = {
        "memory": all_of(fit["passed"] for fit in fits.values()),
        "every kind in every window": all_of(window["passed"] for window in windows[1:]),
        "no page or hub left alone": all_of(one["passed"] for one in waits),
        "kills": all_of(check["ok"] for check in checks),
        "nothing else went wrong": not about["incidents"],
    }
    return {
        **about,
        "verdicts": verdicts,
        "passed": all_of(verdicts.values()),
        "memory": fits,
        "links": links,
        "urls": urls,
        "windows": windows,
        "waits": waits,
        "checks": checks,
        "kills": [
            {"at_s": kill.at - samples[0]["at"] + samples[0]["seconds"], "back_s": kill.back_s} for kill in kills
        ],
        "cpu": cpu_shares(samples),
        "samples": samples,
    }


def all_of(verdicts: Any) -> bool | None:
    """False where one is; None where of one, or of any, nothing could be said."""
    found = list(verdicts)
    if any(one is False for one in found):
        return False
    return True if found and all(found) else None


def later_parts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of the longest stretches between kills what comes after their beginning: caches fill then."""
    length = {row["stretch"]: row["stretch_s"] for row in rows}
    longest = max(length.values(), default=0.0)
    return [
        row
        for row in rows
        if length[row["stretch"]] >= 0.5 * longest and row["stretch_s"] >= max(length[row["stretch"]] * LATER, WARM_S)
    ]


def fit_growth(rows: list[dict[str, Any]], name: str, url_bytes: float) -> dict[str, Any]:
    """Memory = a + b·URLs + c·hours with an `a` for each stretch; and c alone with b = `url_bytes`, what one may take.

    It is the process's own memory: the index that is mapped, and lent by the system, is left out.

    URLs grow with time, so b and c of one fit may take each other's place: the verdict is by c alone.
    """
    rows = later_parts(rows)
    stretches = sorted({row["stretch"] for row in rows})
    spare = len(rows) - len(stretches) - 2
    if spare < FEWEST:
        return {"samples": len(rows), "passed": None, "why": "too short"}
    y = np.array([row[name] for row in rows])
    urls = np.array([row["known"] for row in rows], dtype=np.float64)
    hours = np.array([row["seconds"] for row in rows]) / 3600.0
    own = np.array([[row["stretch"] == one for one in stretches] for row in rows], dtype=np.float64)
    out: dict[str, Any] = {"samples": len(rows), "stretches": len(stretches), "mean_mb": float(y.mean()) / 1e6}
    if can_tell_apart(urls, hours, own):
        both, error = least_squares(np.column_stack([urls, hours, own]), y)
        out["b_bytes_a_url"] = interval(both[0], error[0])
        out["c_mb_an_hour"] = interval(both[1] / 1e6, error[1] / 1e6)
    alone, error = least_squares(np.column_stack([hours, own]), y - url_bytes * urls)
    out["url_bytes"] = url_bytes
    out["beyond_urls_mb_an_hour"] = interval(alone[0] / 1e6, error[0] / 1e6)
    fetches = np.array([sum(row["fetches"].values()) for row in rows], dtype=np.float64)
    rate = least_squares(np.column_stack([hours, own]), fetches)[0][0]
    out["bytes_a_fetch"] = float(alone[0] / rate) if rate > 0.0 else None
    out["passed"] = judge_growth(float(alone[0]), 1.96 * float(error[0]))
    if out["passed"] is None:
        out["why"] = "too noisy"
    return out


def judge_growth(growth: float, half: float) -> bool | None:
    """Bytes an hour and half of their 95% interval: level where both are below the bar. None where it is too noisy."""
    if growth <= GROWTH_MOST:
        return True if half <= GROWTH_MOST else None
    return None if half > NOISE_MOST and growth <= half else False


def can_tell_apart(urls: F64, hours: F64, own: F64) -> bool:
    """Do URLs and hours go different ways within stretches? Else b and c are whatever rounding makes of them."""
    mine = [column - own @ (own.T @ column / own.sum(axis=0)) for column in (urls, hours)]
    return bool(mine[0].std() > 0 and np.corrcoef(*mine)[0, 1] ** 2 < ALIKE)


def least_squares(x: F64, y: F64) -> tuple[F64, F64]:
    """Estimates and their errors, these by Newey and West: what is left over is alike from one minute to the next."""
    found = np.linalg.lstsq(x, y, rcond=None)[0]
    left = y - x @ found
    inverse = np.linalg.pinv(x.T @ x)
    scores = x * left[:, None]
    middle = scores.T @ scores
    lags = max(round(len(y) ** (1 / 3)), 1)
    for lag in range(1, lags + 1):
        part = scores[lag:].T @ scores[:-lag]
        middle += (1.0 - lag / (lags + 1)) * (part + part.T)
    middle *= len(y) / max(len(y) - x.shape[1], 1)
    return found, np.sqrt(np.maximum(np.diag(inverse @ middle @ inverse), 0.0))


def interval(value: float, error: float) -> list[float]:
    """The estimate, and 95% of where it may be."""
    return [float(value), float(value - 1.96 * error), float(value + 1.96 * error)]


def tabulate_windows(samples: list[dict[str, Any]], probe_share: float) -> list[dict[str, Any]]:
    """Fetches and explorations by tenths of the run."""
    end = samples[-1]["seconds"]
    edges = [0.0] + [end * (number + 1) / WINDOWS for number in range(WINDOWS)]
    at = [0.0] + [row["seconds"] for row in samples]
    fetched = [Counter()] + [Counter(row["fetches"]) for row in samples]
    explored = [Counter()] + [Counter(row["explored"]) for row in samples]
    named = sorted({name for row in samples for name in row["explored"]} | set(LOTS))
    out = []
    for number in range(WINDOWS):
        first, last = (int(np.searchsorted(at, edge + 1e-6, side="right")) - 1 for edge in edges[number : number + 2])
        last = len(at) - 1 if number == WINDOWS - 1 else last
        fetches = {name: fetched[last][name] - fetched[first][name] for name in KIND_NAMES}
        explorations = {name: explored[last][name] - explored[first][name] for name in named}
        inside = [row for row, when in zip(samples, at[1:], strict=True) if at[first] < when <= at[last]]
        frontier = min((row["states"]["new"] for row in inside), default=0)
        announced = min((row.get("announced", 0) for row in inside), default=0)
        missing = [
            name
            for name, lots in EXPLORED_BY.items()
            if not fetches[name] and not any(explorations[lot] for lot in lots) and (name != "new" or frontier)
        ]
        expected = probe_share * sum(fetches.values()) / 4.0  # of each lot, at least
        if expected >= FEWEST_EXPECTED:
            there = {"lot: frontier": frontier, "lot: announced": announced}
            missing += [name for name in LOTS if there.get(name, 1) and not explorations[name]]
        enough = number > 0 and sum(fetches.values()) >= 100 and probe_share * sum(fetches.values()) >= FEWEST_EXPECTED
        out.append(
            {
                "window": number + 1,
                **fetches,
                **explorations,
                "missing": ", ".join(missing) or "-",
                "passed": (not missing) if enough else None,
            }
        )
    return out


def judge_waits(samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The longest that anything was left alone, against the promise at that moment."""
    out = []
    for name in ("refresh", "hub"):
        rows = [(row["seconds"], row["price"], row["waits"][name]) for row in samples if name in row["waits"]]
        if not rows:
            continue
        at, price, worst = max(rows, key=lambda one: one[2]["longest_s"] / one[2]["promised_s"])
        ratio = worst["longest_s"] / worst["promised_s"]
        reached = any(one["promised_s"] < when for when, _, one in rows)  # else the run was too short to wait so long
        out.append(
            {
                "of": "pages" if name == "refresh" else "feeds and sitemaps",
                "at_s": round(at),
                "waited_s": worst["longest_s"],
                "longest_interval_s": worst["interval_s"],
                "price": price,
                "promised_s": worst["promised_s"],
                "ratio": ratio,
                "over": worst["over"],
                "of_all": worst["count"],
                "longest_ever_s": max(one["longest_s"] for _, _, one in rows),
                "passed": ratio <= WAIT_MOST if reached else None,
            }
        )
    return out


def cpu_shares(samples: list[dict[str, Any]]) -> dict[str, float]:
    """Cores in use, the mean over the run."""
    last = samples[-1]
    shares = {name: last.get(f"{name}_cpu_s", 0.0) / last["seconds"] for name in ("crawl", "serve", "world", "soak")}
    return {**shares, "all": sum(shares.values())}


def report(result: dict[str, Any], out: Path, *, as_json: bool) -> None:
    """Files, and a summary for people."""
    write_json("soak", result, out / "soak.json")
    draw(result, out / "soak.png")
    if as_json:
        print(json.dumps({name: value for name, value in result.items() if name != "samples"}, indent=1))
        return
    samples = result["samples"]
    last = samples[-1]
    print(
        f"{last['virtual_days']:.1f} virtual days, {last['known']:,} known URLs, "
        f"{sum(last['fetches'].values()):,} fetches, {last['clicks']:,} clicks; cores: "
        + ", ".join(f"{name} {share:.2f}" for name, share in result["cpu"].items())
    )
    print("\nMemory, later part of the longest stretches (bytes a URL, MB an hour with 95%, bytes a fetch)")
    for name, fit in result["memory"].items():
        told = {
            key: [float(f"{v:.3g}") for v in value] if isinstance(value, list) else value for key, value in fit.items()
        }
        print(f"  {name:12} {told}")
    print("\nFetches by tenths of the run\n" + table([_plain(row) for row in result["windows"]]))
    if result["waits"]:
        print("\nLeft alone for longest\n" + table([_plain(row) for row in result["waits"]]))
    if result["checks"]:
        print("\nKills\n" + table(result["checks"]))
    words = {True: "PASS", False: "FAIL", None: "cannot say: too short, or too noisy"}
    print("\n" + "\n".join(f"{name}: {words[verdict]}" for name, verdict in result["verdicts"].items()))
    print(f"Results: {out}")


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: "-" if value is None else value for name, value in row.items()}


def draw(result: dict[str, Any], path: Path) -> None:
    """Memory beside known URLs; fetches by kind; the price."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    samples = result["samples"]
    minutes = [row["seconds"] / 60 for row in samples]
    chart, (memory, fetches, price) = pyplot.subplots(3, 1, figsize=(8, 9), sharex=True, layout="constrained")
    for name in ("coordinator", "workers", "studies", "serve"):
        own = "rss" if name == "studies" else "own"
        memory.plot(minutes, [row.get(f"{name}_{own}", np.nan) / 1e6 for row in samples], label=name)
    memory.set_ylabel("MB of its own (studies: resident)")
    memory.set_ylim(bottom=0)
    memory.legend(loc="lower left")
    beside = memory.twinx()
    beside.plot(minutes, [row["known"] for row in samples], color="grey", linestyle=":")
    beside.set_ylabel("known URLs (dotted)")
    beside.set_ylim(bottom=0)
    for name in KIND_NAMES:
        counts = np.array([row["fetches"].get(name, 0) for row in samples], dtype=np.float64)
        span = np.maximum(np.diff(minutes, prepend=0.0), 1e-9)
        fetches.plot(minutes, np.diff(counts, prepend=0.0) / span, label=name)
    fetches.set_ylabel("fetches a minute")
    fetches.set_ylim(bottom=0)
    fetches.legend(loc="upper right")
    price.plot(minutes, [row["price"] for row in samples], label="units")
    price.set_ylabel("price in units")
    other = price.twinx()
    other.plot(minutes, [row["price"] * row["unit"] for row in samples], color="grey", linestyle=":")
    other.set_ylabel("in clicks (dotted)")
    price.set_xlabel("minutes")
    for axes in (memory, fetches, price):
        for kill in result["kills"]:
            axes.axvline(kill["at_s"] / 60, color="red", linewidth=0.7)
    chart.savefig(path, dpi=130)
    pyplot.close(chart)
