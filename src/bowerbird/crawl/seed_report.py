"""The seeds of a crawl as people and programs read them: what each adds, what they cover, what the choice changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from bowerbird.model.seed_study import SeedStudy


def _clock_text(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def change_text(study: SeedStudy) -> str:
    """What a choice changed, in one line."""
    links = "1 link" if study.hops == 1 else f"{study.hops} links"
    covers = "it covers" if len(study.row) == 1 else "they cover"
    before = f"the {'one' if len(study.before) == 1 else 'ones'} before {study.before_share:.1%}"
    return (
        f"seeds: {len(study.row):,} chosen, {len(study.added):,} new, {len(study.dropped):,} dropped; "
        f"{covers} {study.share:.1%} of the value within {links}, {before}"
    )


def report_seeds(study: SeedStudy, now: float, urls_of: Callable[[Sequence[int]], list[str]]) -> dict[str, Any]:
    """All that is known of the current choice, and what the choices before it changed."""
    every = [*study.row.tolist(), *study.added.tolist(), *study.dropped.tolist()]
    urls = dict(zip(every, urls_of(every), strict=True))
    table = zip(study.row.tolist(), study.pages.tolist(), study.value.tolist(), strict=True)
    data: dict[str, Any] = {
        "at": _clock_text(study.at),
        "age_s": max(now - study.at, 0.0),
        "k": study.k,
        "hops": study.hops,
        "unit": study.unit,
        "seeds": [{"url": urls[row], "pages": pages, "value": value} for row, pages, value in table],
        "covered_pages": study.covered_pages,
        "covered_value": study.covered_value,
        "pages": study.all_pages,
        "value": study.all_value,
        "share": study.share,
        "before_value": study.before_value,
        "before_share": study.before_share,
        "added": [urls[row] for row in study.added.tolist()],
        "dropped": [urls[row] for row in study.dropped.tolist()],
        "kept": len(study.kept),
        "bound": None,
        "samples": int(float(study.info.get("samples", 0.0))),
        "note": str(study.info.get("note", "")),
        "seconds": float(study.info.get("seconds", 0.0)),
        "history": [{**asdict(change), "at": _clock_text(change.at)} for change in study.history],
    }
    if study.bound is not None:
        data["bound"] = {"value": study.bound[0], "confidence": study.bound[1]}
    return data


def summary_text(report: dict[str, Any]) -> str:
    """The choice without its age: how many, what they cover, and what the last change was."""
    seeds, hops = len(report["seeds"]), report["hops"]
    covers = f"{seeds:,} seed{' covers' if seeds == 1 else 's cover'} {report['share']:.1%} of the value"
    text = f"{covers} within {hops} link{'' if hops == 1 else 's'}"
    if not report["history"]:
        return f"{text}: those that people gave"
    last = report["history"][-1]
    was = last["before_value"] / last["all_value"] if last["all_value"] > 0 else 0.0
    became = last["value"] / last["all_value"] if last["all_value"] > 0 else 0.0
    return (
        f"{text}; last change {last['at']}: {last['added']:,} new, {last['dropped']:,} dropped, "
        f"{was:.1%} to {became:.1%}"
    )


def tell_seed(study: SeedStudy | None, row: int) -> dict[str, Any] | None:
    """What a page adds as a seed; None for what is none."""
    place = -1 if study is None else study.place(row)
    if study is None or place < 0:
        return None
    return {
        "place": place + 1,
        "of": len(study.row),
        "pages": int(study.pages[place]),
        "value": float(study.value[place]),
        "share": float(study.value[place]) / study.all_value if study.all_value > 0 else 0.0,
        "unit": study.unit,
        "hops": study.hops,
    }


def seed_text(seed: dict[str, Any]) -> str:
    """The same in words.

    >>> seed_text({"place": 2, "of": 10, "pages": 7, "value": 8.5, "share": 0.05, "unit": "clicks", "hops": 5})
    'seed 2 of 10: adds 7 pages and 5.0% of the value (8.5 clicks) within 5 links'
    """
    pages = f"{seed['pages']:,} page{'' if seed['pages'] == 1 else 's'}"
    links = f"{seed['hops']} link{'' if seed['hops'] == 1 else 's'}"
    return (
        f"seed {seed['place']} of {seed['of']}: adds {pages} and {seed['share']:.1%} of the value "
        f"({seed['value']:,.4g} {seed['unit']}) within {links}"
    )
