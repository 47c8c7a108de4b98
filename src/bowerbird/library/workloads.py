"""Queries with their frequencies, of a table or a file, as a workload."""

from __future__ import annotations

from collections.abc import Iterable

from bowerbird.demand.workload import words_of
from bowerbird.library.column_names import FREQUENCIES, QUERIES
from bowerbird.library.plain_names import list_names
from bowerbird.library.tables import Table, open_table
from bowerbird.model.errors import TableError
from bowerbird.model.workload import Workload, make_workload


def sum_queries(texts: Iterable[str], amounts: Iterable[float]) -> dict[str, float]:
    """Frequencies by query; one that is named twice counts with the sum.

    >>> sum_queries(["car", " car ", " "], [2.0, 1.0, 9.0])
    {'car': 3.0}
    """
    total: dict[str, float] = {}
    for text, amount in zip(texts, amounts, strict=True):
        if text.strip():
            total[text.strip()] = total.get(text.strip(), 0.0) + amount
    return total


def workload_of(queries: Table) -> Workload:
    """What searchers ask, of a table with the columns query and frequency.

    >>> workload_of({"query": ["red car", "car"], "frequency": [3, 2]}).terms
    ('car', 'red')
    """
    table = open_table("queries", queries)
    total = sum_queries(list_names(table.names(QUERIES)), table.numbers(FREQUENCIES).tolist())
    workload = make_workload(list(total), total.values(), words_of)
    if not len(workload):
        raise TableError("queries: none of them has a word to look for. Give queries of letters or digits.")
    return workload
