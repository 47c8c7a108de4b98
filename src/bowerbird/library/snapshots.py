"""A Snapshot of tables: pages, the links between them, clicks on them, queries."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier.graph import graph_of_links, make_graph
from bowerbird.library.arrow_names import Names
from bowerbird.library.column_names import CLICKS, PAGES, SOURCES, TARGETS
from bowerbird.library.plain_names import join_columns, list_names
from bowerbird.library.tables import OpenTable, Table, open_table
from bowerbird.library.workloads import workload_of
from bowerbird.model.errors import ConfigError, TableError
from bowerbird.model.snapshot import HostColumns, LinkGraph, PageColumns, Snapshot
from bowerbird.model.url_state import REVISITED, UrlKind, UrlState
from bowerbird.model.workload import Workload

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
LAST_SECOND = 2.0**32 - 1
#: whole numbers that a table of pages may have, with the most that each can be
COUNTS = {"depth": 2**8 - 1, "errors": 2**8 - 1, "fetches": 2**16 - 1, "changes": 2**16 - 1, "in_degree": 2**32 - 1}
LONGEST_S = 1e10


def snapshot_of(
    pages: Table,
    *,
    now: float,
    links: Table | None = None,
    clicks: Table | None = None,
    queries: Table | Workload | None = None,
) -> Snapshot:
    """What is known at a time; row i of the snapshot is row i of `pages`, which names every page once.

    Besides its name (page) a page may have a state, kind, host, depth, first_seen, last_fetched, last_changed,
    hint_modified, fetches, changes, errors, in_degree and interval_s. Times are seconds since 1970 UTC or times.
    Without a state, pages with a last_fetched are fetched and the others new.

    >>> pages = {"page": ["http://a/", "http://a/x"], "last_fetched": [1000.0, None]}
    >>> snapshot_of(pages, now=2000.0).pages.state.tolist()
    [1, 0]
    """
    if not 0 < now <= LAST_SECOND:
        raise ConfigError(f"now {now}: must be a time in seconds since 1970 UTC, such as time.time().")
    table = open_table("pages", pages)
    columns = [table.names(PAGES)]
    told: F64 = np.zeros(0)
    if links is not None:
        linking = open_table("links", links)
        columns += [linking.names(SOURCES), linking.names(TARGETS)]
    if clicks is not None:
        clicking = open_table("clicks", clicks)
        columns.append(clicking.names(PAGES))
        told = clicking.numbers(CLICKS)
    rows, host = find_rows(columns, ("pages", *(("links", "links") if links is not None else ()), "clicks"))
    state = _read_states(table)
    last_fetched = _check_fetched(table, state, now)
    is_page, kinds = _read_kinds(table)
    graph = None
    in_degree = np.zeros(table.count, dtype=np.int64)
    if links is not None:
        whole = make_graph(rows[1], rows[2], table.count)
        graph = LinkGraph(whole.starts, whole.targets)
        crawled = is_page & np.isin(state, (UrlState.FETCHED, UrlState.REDIRECT))
        in_degree = graph_of_links(graph, crawled).in_degree
    if table.has("host"):
        host = join_columns([table.names(("host",))]).columns[0].astype(np.uint32)
    counts = {name: table.numbers((name,), most=most, whole=True) for name, most in COUNTS.items() if table.has(name)}
    first_seen = _read_times(table, "first_seen", np.where(last_fetched > 0, last_fetched, now), now)
    return Snapshot(
        now,
        PageColumns(
            host=_fix(host, np.uint32),
            state=_fix(state, np.uint8),
            kind=_fix(kinds, np.uint8),
            depth=_fix(counts.get("depth", np.zeros(table.count)), np.uint8),
            first_seen=_fix(first_seen, np.uint32),
            last_fetched=_fix(last_fetched, np.float64),
            last_changed=_fix(_read_times(table, "last_changed", last_fetched, now), np.uint32),
            fetches=_fix(counts.get("fetches", np.isin(state, REVISITED)), np.uint16),
            changes=_fix(counts.get("changes", np.zeros(table.count)), np.uint16),
            errors=_fix(counts.get("errors", np.zeros(table.count)), np.uint8),
            in_degree=_fix(counts.get("in_degree", in_degree), np.uint32),
            interval_s=_fix(_read_intervals(table), np.float32),
            hint_modified=_fix(_read_times(table, "hint_modified", np.zeros(table.count), LAST_SECOND), np.uint32),
            source=_fix(np.full(table.count, -1), np.int32),
        ),
        _count_hosts(host, state),
        links=graph,
        workload=queries if queries is None or isinstance(queries, Workload) else workload_of(queries),
        clicks=None if clicks is None else _fix(np.bincount(rows[-1], told, table.count), np.float64),
    )


def find_rows(columns: list[Names | list[str]], tables: tuple[str, ...]) -> tuple[list[I64], npt.NDArray[np.uint32]]:
    """Columns of names as rows of the first one, which has each name once; and the hosts of the rows."""
    joined = join_columns(columns)
    count = len(joined.columns[0])
    twice = np.flatnonzero(joined.columns[0] != np.arange(count))
    if len(twice):
        row = int(twice[0])
        (name,) = joined.names_of(joined.columns[0][[row]])
        raise TableError(f"{tables[0]}: row {row}: {name!r} comes a second time. Name each page once.")
    for column, what in zip(joined.columns, tables, strict=False):
        unknown = np.flatnonzero(column >= count)
        if len(unknown):
            (name,) = joined.names_of(column[unknown[:1]])
            raise TableError(
                f"{what}: row {unknown[0]}: {name!r} is not known. Add a row for it to {tables[0]}, or leave it out."
            )
    return joined.columns, joined.host[:count]


def _read_states(table: OpenTable) -> I64:
    if table.has("state"):
        return _read_kind_of(table, "state", UrlState)
    if not table.has("last_fetched"):
        return np.full(table.count, int(UrlState.NEW))
    seen = table.times(("last_fetched",))
    return np.where(seen > 0, int(UrlState.FETCHED), int(UrlState.NEW))


def _read_kinds(table: OpenTable) -> tuple[npt.NDArray[np.bool_], I64]:
    kinds = _read_kind_of(table, "kind", UrlKind) if table.has("kind") else np.full(table.count, int(UrlKind.PAGE))
    return kinds == UrlKind.PAGE, kinds


def _read_kind_of(table: OpenTable, name: str, kinds: type[IntEnum]) -> I64:
    """A column of names of states or kinds, or of their numbers."""
    known = {kind.name.lower(): int(kind) for kind in kinds} | {str(int(kind)): int(kind) for kind in kinds}
    cells = list_names(table.names((name,)))
    odd = next((row for row, cell in enumerate(cells) if cell.lower() not in known), None)
    if odd is not None:
        names = ", ".join(kind.name.lower() for kind in kinds)
        raise TableError(f"{table.what}: row {odd}: {name} is {cells[odd][:60]!r}. It must be one of {names}.")
    return np.array([known[cell.lower()] for cell in cells], dtype=np.int64)


def _check_fetched(table: OpenTable, state: I64, now: float) -> F64:
    """When each page was fetched last, 0 = never; those that were must say it."""
    seen = _read_times(table, "last_fetched", np.zeros(table.count), now)
    missing = np.flatnonzero(np.isin(state, REVISITED) & (seen <= 0))
    if len(missing):
        row = int(missing[0])
        was = UrlState(int(state[row])).name.lower()
        raise TableError(
            f"{table.what}: row {row}: its state is {was}, but last_fetched is empty. Say when it was fetched."
        )
    return seen


def _read_times(table: OpenTable, name: str, default: F64, latest: float) -> F64:
    """Times, with the default where a cell is empty or there is no column."""
    if not table.has(name):
        return default
    found = table.times((name,))
    late = np.flatnonzero(found > latest)
    if len(late):
        raise TableError(
            f"{table.what}: row {late[0]}: {name} is {found[late[0]]:.0f}, which lies after now ({latest:.0f}). "
            "Mend it, or take a later now."
        )
    return np.where(np.isnan(found), default, found)


def _read_intervals(table: OpenTable) -> F64:
    """0 where a page has no interval of its own."""
    return table.numbers(("interval_s",), most=LONGEST_S) if table.has("interval_s") else np.zeros(table.count)


def _count_hosts(host: npt.NDArray[np.uint32], state: I64) -> HostColumns:
    count = int(host.max()) + 1 if len(host) else 0
    return HostColumns(
        _fix(np.bincount(host, minlength=count), np.int64),
        _fix(np.bincount(host[state == UrlState.FETCHED], minlength=count), np.uint32),
        _fix(np.zeros(count), np.float32),
    )


def _fix(column: npt.NDArray[Any], kind: type[np.generic]) -> npt.NDArray[Any]:
    """A column that nobody changes."""
    fixed = np.array(column, dtype=kind)
    fixed.flags.writeable = False
    return fixed
