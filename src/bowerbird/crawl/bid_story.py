"""The tree behind a bid as people read it: with the texts of the URLs and the queries that it speaks of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from bowerbird.appraise.policy import Policy
from bowerbird.appraise.refresh.studied import span_text
from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.settings import Settings
from bowerbird.demand.workload import build_workload
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.study import mark_queries, seal_marks
from bowerbird.model.url_state import REVISITED, UrlKind
from bowerbird.model.workload import Workload
from bowerbird.store.gains import MeasuredGain, read_gains_of
from bowerbird.store.repository import Repository

GAINS = 3  # the last, that are told


def tell_bid(policy: Policy, repository: Repository, settings: Settings, now: float, row: int) -> dict[str, Any]:
    """Why the bid of a URL is what it is, as plain data."""
    snapshot = repository.snapshot(now)
    gains = _gains_of(repository, snapshot, row)
    study = snapshot.study
    if gains or (study is not None and study.reasons is not None and len(study.reasons.query_marks)):
        # studies of new pages and gains look at so many each
        most = max(settings.frontier.max_queries, settings.quality.max_queries)
        with open_demand(repository.folder, settings.demand, write=False) as log:
            workload = build_workload(log, now, most)
        snapshot = replace(snapshot, workload=workload)
    tree: dict[str, Any] = policy.explain(snapshot, row).as_dict()
    by_refresh = str(tree.get("note")).startswith(f"by {policy.refresh.name}")  # a page may also be bid for as a hub
    if gains and by_refresh and policy.refresh.name in policy.studied:
        children = tree["children"][0].setdefault("children", [])
        children.insert(max(len(children) - 2, 0), tell_gains(gains, snapshot.workload, now))
    name_pages(tree, repository.url)
    return tree


def _gains_of(repository: Repository, snapshot: Snapshot, row: int) -> list[MeasuredGain]:
    """The last that refreshes of a page were found to gain; none where it is fetched no more."""
    pages = snapshot.pages
    if pages.state[row] not in REVISITED or pages.kind[row] != UrlKind.PAGE:
        return []
    return read_gains_of(repository.connection, row, GAINS)


def tell_gains(gains: list[MeasuredGain], workload: Workload | None, now: float) -> dict[str, Any]:
    """What past refreshes gained, newest first, with the queries that it came from; those forgotten are not named."""
    texts: dict[int, str] = {}
    if workload is not None and any(len(one.marks) for one in gains):
        marks = seal_marks(mark_queries(workload.queries), workload.mark_key).tolist()
        texts = dict(zip(marks, workload.queries, strict=True))
    children = []
    for one in gains:
        queries = []
        for mark, share in zip(one.marks.tolist(), one.shares.tolist(), strict=True):
            text = texts.get(mark)
            name = f"query '{text}'" if text is not None else "a query asked earlier"
            queries.append({"name": name, "value": share, "note": "share of the gain"})
        at = datetime.fromtimestamp(one.at, UTC).isoformat(timespec="seconds")
        words = "1 word" if one.words == 1 else f"{one.words:,} words"
        waited = f"{words} of queries changed, {span_text(one.at - one.since)} after the fetch before"
        node: dict[str, Any] = {"name": f"gain measured {at}", "value": one.gain, "note": waited}
        if queries:
            node["children"] = queries
        children.append(node)
    note = "of Q, by the last refreshes that changed what searchers ask for"
    return {"name": "gains measured", "value": len(gains), "note": note, "children": children}


def name_pages(node: dict[str, Any], url_of: Callable[[int], str]) -> None:
    """Put URLs in place of their numbers, throughout the tree."""
    if "page" in node:
        node["url"] = url_of(node.pop("page"))
        node["name"] = f"{node['name']} {node['url']}"
    for child in node.get("children", ()):
        name_pages(child, url_of)
