"""The tree behind a bid as people read it: with the texts of the URLs and the queries that it speaks of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bowerbird.appraise.policy import Policy
from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.settings import Settings
from bowerbird.demand.workload import build_workload
from bowerbird.store.repository import Repository


def tell_bid(policy: Policy, repository: Repository, settings: Settings, now: float, row: int) -> dict[str, Any]:
    """Why the bid of a URL is what it is, as plain data."""
    snapshot = repository.snapshot(now)
    study = snapshot.study
    if study is not None and study.reasons is not None and len(study.reasons.query_marks):
        with open_demand(repository.folder, settings.demand, write=False) as log:
            workload = build_workload(log, now, settings.frontier.max_queries)
        snapshot = replace(snapshot, workload=workload)
    tree = policy.explain(snapshot, row).as_dict()
    name_pages(tree, repository.url)
    return tree


def weigh_bid(tree: dict[str, Any], weight: float) -> dict[str, Any]:
    """The tree with the weight that its host's trap score puts on the bid, as the line is ordered by."""
    if weight == 1.0 or not tree["value"]:
        return tree
    note = "1 - 0.9·trap score: hosts whose pages repeat others come later; the price asks for the bid without it"
    factor = {"name": "weight of its host", "value": weight, "note": note}
    unweighted = {"name": "unweighted bid", "value": tree["value"], "children": tree.get("children", [])}
    return {**tree, "value": tree["value"] * weight, "children": [factor, unweighted]}


def name_pages(node: dict[str, Any], url_of: Callable[[int], str]) -> None:
    """Put URLs in place of their numbers, throughout the tree."""
    if "page" in node:
        node["url"] = url_of(node.pop("page"))
        node["name"] = f"{node['name']} {node['url']}"
    for child in node.get("children", ()):
        name_pages(child, url_of)
