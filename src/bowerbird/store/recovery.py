"""From the database back to the columns: what a start reads, whether after a stop or after a crash."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

import numpy as np
import numpy.typing as npt
import xxhash

from bowerbird.model.outcome import DECISIONS_WITHOUT_FETCH
from bowerbird.model.snapshot import LinkGraph
from bowerbird.store.checkpoint import Mark
from bowerbird.store.columns import Columns
from bowerbird.store.connection import Connection
from bowerbird.store.hashtable import note_anchors
from bowerbird.store.links import OutLinks
from bowerbird.store.url_table import HostTable, UrlTable, anchor_mark

CHUNK_ROWS = 200_000
CHUNK_BYTES = 4_000_000  # of links
LINKED_COMMITS = 64  # read at a time for their new links
GRAPH_ROWS = 16  # pages, read at a time for their links
#: of a row of the journal, what `apply_fetches` goes by
APPLIED = "url, outcome, fetched_at, changed, content_hash, state, errors, interval_s, not_before"


def load_hosts(connection: Connection, hosts: HostTable) -> None:
    """Read the hosts table."""
    rows = connection.execute(
        "SELECT origin, coalesce(robots_at, 0), coalesce(crawl_delay_s, 0), errors, not_before, pages, duplicates,"
        " last_fetch FROM hosts ORDER BY id"
    ).fetchall()
    for row in rows:
        hosts[row[0]]
    if rows:
        values = list(zip(*rows, strict=True))
        names = ("robots_at", "crawl_delay_s", "errors", "not_before", "pages", "duplicates", "last_fetch")
        for name, column in zip(names, values[1:], strict=True):
            hosts.columns[name][:] = column
    hosts.dirty.clear()


def store_hosts(connection: Connection, hosts: HostTable, robots: Mapping[int, tuple[str, bytes]]) -> None:
    """Write the hosts that changed; inside the caller's transaction."""
    columns = hosts.columns
    connection.executemany(
        "INSERT INTO hosts (id, origin, domain, robots_at, crawl_delay_s, errors, not_before, pages, duplicates,"
        " last_fetch) VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT (id) DO UPDATE SET robots_at = excluded.robots_at,"
        " crawl_delay_s = excluded.crawl_delay_s, errors = excluded.errors, not_before = excluded.not_before,"
        " pages = excluded.pages, duplicates = excluded.duplicates, last_fetch = excluded.last_fetch",
        (
            (
                host,
                hosts.origins[host],
                hosts.domain(host),
                float(columns["robots_at"][host]),
                float(columns["crawl_delay_s"][host]),
                int(columns["errors"][host]),
                float(columns["not_before"][host]),
                int(columns["pages"][host]),
                int(columns["duplicates"][host]),
                float(columns["last_fetch"][host]),
            )
            for host in hosts.dirty
        ),
    )
    connection.executemany(
        "UPDATE hosts SET robots_status = ?, robots_body = ? WHERE id = ?",
        ((status, body, host) for host, (status, body) in robots.items()),
    )


def replay(connection: Connection, table: UrlTable, mark: Mark, default_interval_s: float) -> int:
    """Bring columns that stand at `mark` up to the database's last commit; the number of the last with new links."""
    _replay_urls(connection, table, mark, default_interval_s)
    _replay_fetches(connection, table, mark)
    last_links = _replay_links(connection, table, mark)
    _replay_anchors(connection, table, mark)
    for rows in connection.scan("SELECT url, modified FROM hints", rows=CHUNK_ROWS):
        which, stamps = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
        table.columns["hint_modified"][which] = stamps
    return last_links


def _replay_urls(connection: Connection, table: UrlTable, mark: Mark, default_interval_s: float) -> None:
    columns = table.columns
    query = "SELECT hash, host, kind, depth, hops, first_seen, source FROM urls WHERE id >= ? ORDER BY id"
    for rows in connection.scan(query, (mark.urls,), CHUNK_ROWS):
        first = columns.count
        columns.extend(len(rows))
        hashes, hosts, kinds, depths, hops, seen, sources = zip(*rows, strict=True)
        part = slice(first, columns.count)
        columns["hash"][part] = np.array(hashes, dtype=np.int64).view(np.uint64)
        columns["host"][part] = hosts
        columns["kind"][part] = kinds
        columns["depth"][part] = np.minimum(np.array(depths), 255)
        columns["hops"][part] = np.minimum(np.array(hops), 255)
        columns["first_seen"][part] = seen
        columns["source"][part] = sources
        columns["interval_s"][part] = default_interval_s


def _replay_fetches(connection: Connection, table: UrlTable, mark: Mark) -> None:
    columns = table.columns
    query = f"SELECT {APPLIED} FROM fetches WHERE id > ? ORDER BY id"
    for rows in connection.scan(query, (mark.fetch,), CHUNK_ROWS):
        apply_fetches(columns, *(np.array(column) for column in zip(*rows, strict=True)))


def apply_fetches(
    columns: Columns,
    url: npt.NDArray[np.int64],
    outcome: npt.NDArray[np.int64],
    at: npt.NDArray[np.float64],
    changed: npt.NDArray[np.int64],
    content: npt.NDArray[np.int64],
    state: npt.NDArray[np.int64],
    errors: npt.NDArray[np.int64],
    interval: npt.NDArray[np.float64],
    not_before: npt.NDArray[np.float64],
) -> None:
    """Have URLs stand as these rows of the journal say.

    Where a URL comes twice, numpy's assignment keeps the later row, as the order of the journal asks.
    """
    columns["state"][url] = state
    columns["not_before"][url] = np.ceil(not_before)
    columns["errors"][url] = np.minimum(errors, 255)
    real = ~np.isin(outcome, DECISIONS_WITHOUT_FETCH)
    columns["interval_s"][url[real]] = interval[real]
    settled = real & (errors == 0)
    columns["last_fetched"][url[settled]] = at[settled]
    _count(columns["fetches"], url[real])
    moved = real & (changed > 0)
    _count(columns["changes"], url[moved])
    columns["last_changed"][url[moved]] = at[moved]
    full = real & (content != 0)
    columns["content_hash"][url[full]] = content[full]


def _count(column: npt.NDArray[np.uint16], rows: npt.NDArray[np.int64]) -> None:
    """Add one per occurrence, saturating."""
    which, times = np.unique(rows, return_counts=True)
    column[which] = np.minimum(column[which].astype(np.int64) + times, 65535)


def _replay_links(connection: Connection, table: UrlTable, mark: Mark) -> int:
    """Count the links that are new since the mark: of all there are, that is few. The number of the last commit of any.

    Where it is not known which they are, all are counted: the columns are made anew, or the checkpoint is of a time
    from which on they were not kept.
    """
    first, last = connection.execute("SELECT coalesce(min(id), 1), coalesce(max(id), 0) FROM new_links").fetchone()
    if not first - 1 <= mark.links <= last:
        _recount_in_degree(connection, table)
        return int(last)
    in_degree = table.columns["in_degree"]
    query = "SELECT targets FROM new_links WHERE id > ? ORDER BY id"
    for rows in connection.scan(query, (mark.links,), LINKED_COMMITS):
        targets = np.frombuffer(b"".join(blob for (blob,) in rows), dtype="<u4")
        np.add.at(in_degree, targets, 1)
    return int(last)


def drop_counted_links(connection: Connection, mark: Mark) -> None:
    """A checkpoint has counted these; the last of them stays, to tell how far it was."""
    connection.execute("DELETE FROM new_links WHERE id < ?", (mark.links,))


def _recount_in_degree(connection: Connection, table: UrlTable) -> None:
    """Count in-links anew from the links that are stored."""
    in_degree = np.zeros(table.columns.count, dtype=np.int64)
    for rows in connection.scan("SELECT targets FROM links"):
        targets = np.frombuffer(b"".join(blob for (blob,) in rows), dtype="<u4")
        in_degree += np.bincount(targets, minlength=len(in_degree))
    table.columns["in_degree"][:] = in_degree


def _replay_anchors(connection: Connection, table: UrlTable, mark: Mark) -> None:
    query = "SELECT target, text FROM anchors WHERE id > ? ORDER BY id"
    for rows in connection.scan(query, (mark.anchor,), CHUNK_ROWS):
        targets = np.array([row[0] for row in rows], dtype=np.int64)
        marks = np.array([anchor_mark(str(row[1])) for row in rows], dtype=np.uint16)
        note_anchors(table.columns.whole("anchors"), targets, marks, np.empty(len(rows), dtype=np.bool_))


def history_at(connection: Connection, seed: int, mark: Mark) -> str:
    """A fingerprint of what the database holds at a mark: another crawl, or another past of this one, has another."""
    places = (
        ("SELECT url, first_seen FROM urls WHERE id = ?", mark.urls - 1),
        ("SELECT url, fetched_at, outcome FROM fetches WHERE id = ?", mark.fetch),
        ("SELECT target, text FROM anchors WHERE id = ?", mark.anchor),
    )
    found = [connection.execute(question, (number,)).fetchone() for question, number in places]
    return xxhash.xxh3_128_hexdigest(repr((seed, found)).encode())


def load_graph(connection: Connection, count: int) -> LinkGraph:
    """All current links between the first `count` URLs as CSR, 4 bytes each; a writer may have added more since."""
    starts = np.zeros(count + 1, dtype=np.int64)
    targets, used = np.empty(count_links(connection, count), dtype=np.uint32), 0
    sources: list[int] = []
    blobs: list[bytes] = []
    held = 0

    def take() -> None:
        nonlocal targets, used, held
        if not blobs:
            return
        found = np.frombuffer(b"".join(blobs), dtype="<u4")
        inside = found < count
        owner = np.repeat(np.array(sources, dtype=np.int64), [len(blob) // 4 for blob in blobs])[inside]
        if len(owner):
            some = np.bincount(owner - owner[0])
            starts[1 + owner[0] : 1 + owner[0] + len(some)] += some
        if used + len(owner) > len(targets):
            targets = np.concatenate([targets[:used], np.empty(len(owner) + len(targets) // 8, dtype=np.uint32)])
        targets[used : used + len(owner)] = found[inside]
        used, held = used + len(owner), 0
        sources.clear()
        blobs.clear()

    for row in chain.from_iterable(
        connection.scan("SELECT * FROM links WHERE source < ? ORDER BY source", (count,), GRAPH_ROWS)
    ):
        all_current = row[4] is None  # no link was last seen at another time than the page
        sources.append(row[0])
        blobs.append(row[2] if all_current else OutLinks.decode(*row).current().tobytes())
        held += len(blobs[-1])
        if held > CHUNK_BYTES:
            take()
    take()
    np.cumsum(starts, out=starts)
    # a view keeps the memory of what is not current: worth a copy only where that is much
    return LinkGraph(starts, targets[:used] if used > 0.8 * len(targets) else targets[:used].copy())


def count_links(connection: Connection, count: int) -> int:
    """Links that are stored of the first `count` URLs, those no longer current too."""
    sizes = connection.execute("SELECT coalesce(sum(length(targets)), 0) FROM links WHERE source < ?", (count,))
    return int(sizes.fetchone()[0]) // 4
