"""The seeds of a crawl as people and programs read them: what each adds, what they cover, what the choice changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from bowerbird.crawl.moments import clock_text
from bowerbird.model.seed_study import SeedChange, SeedStudy


def _links_text(hops: int) -> str:
    return "1 link" if hops == 1 else f"{hops} links"


def change_text(study: SeedStudy) -> str:
    """What a choice changed, in one line; nothing, perhaps."""
    values = study.covered_value, study.before_value, study.all_value
    return _change_text(study, SeedChange(study.at, *values, len(study.added), len(study.dropped)))


def last_change_text(study: SeedStudy) -> str:
    """The last change that led to a choice, which may have been made earlier."""
    return _change_text(study, study.history[-1]) if study.history else change_text(study)


def _change_text(study: SeedStudy, change: SeedChange) -> str:
    share, before = _shares(change.value, change.before_value, change.all_value)
    return (
        f"seeds: {len(study.row):,} chosen beside {len(study.given):,} given, {change.added:,} new, "
        f"{change.dropped:,} dropped; together they cover {share} of the value within {_links_text(study.hops)}, "
        f"{before} before"
    )


def _shares(value: float, before: float, everything: float) -> tuple[str, str]:
    whole = everything if everything > 0 else float("inf")
    return f"{value / whole:.1%}", f"{before / whole:.1%}"


def report_seeds(study: SeedStudy, now: float, urls_of: Callable[[Sequence[int]], list[str]]) -> dict[str, Any]:
    """All that is known of the current choice, and what the choices before it changed."""
    every = [*study.row.tolist(), *study.added.tolist(), *study.dropped.tolist()]
    urls = dict(zip(every, urls_of(every), strict=True))
    table = zip(study.row.tolist(), study.pages.tolist(), study.value.tolist(), strict=True)
    data: dict[str, Any] = {
        "at": clock_text(study.at),
        "age_s": max(now - study.at, 0.0),
        "k": study.k,
        "hops": study.hops,
        "unit": study.unit,
        "seeds": [{"url": urls[row], "pages": pages, "value": value} for row, pages, value in table],
        "given": len(study.given),
        "given_pages": study.given_pages,
        "given_value": study.given_value,
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
        "history": [{**asdict(change), "at": clock_text(change.at)} for change in study.history],
    }
    if study.bound is not None:
        data["bound"] = {"value": study.bound[0], "confidence": study.bound[1]}
    return data


def summary_text(report: dict[str, Any]) -> str:
    """The choice without its age: how many, what they cover, and what the last change was."""
    text = (
        f"{len(report['seeds']):,} chosen beside {report['given']:,} given; together they cover "
        f"{report['share']:.1%} of the value within {_links_text(report['hops'])}"
    )
    if not report["history"]:
        return f"{text}: no others are worth a change"
    last = report["history"][-1]
    became, was = _shares(last["value"], last["before_value"], last["all_value"])
    return f"{text}; last change {last['at']}: {last['added']:,} new, {last['dropped']:,} dropped, {was} to {became}"


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
    return (
        f"seed {seed['place']} of {seed['of']}: adds {pages} and {seed['share']:.1%} of the value "
        f"({seed['value']:,.4g} {seed['unit']}) within {_links_text(seed['hops'])}"
    )
