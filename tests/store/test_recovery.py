"""The key property: after any history, a start finds exactly what was at hand at the last commit."""

from __future__ import annotations

import tempfile
import tracemalloc
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.stored import (
    AT,
    Image,
    Maker,
    add_and_fetch,
    fetch_of,
    image,
    make_folder,
    new_schema,
    open_repository,
)

from bowerbird.lab.postgres_server import PostgresServer
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import UrlKind, UrlState
from bowerbird.store import recovery
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.repository import Repository
from bowerbird.store.schema import open_state
from bowerbird.store.url_table import anchor_mark

VERBS = (
    *("add", "fetch", "fetch", "fetch", "links", "links", "hint", "host", "robots"),
    *("commit", "commit", "checkpoint", "reopen", "crash"),
)
TEXTS = ("", "home", "news", "über uns", "a", "b", "c", "d")


@dataclass
class Step:
    """One thing that happens to a crawl."""

    verb: str
    numbers: list[int]
    row: int
    outcome: Outcome
    state: UrlState
    kind: UrlKind
    changed: bool
    content_hash: int
    errors: int
    seconds: float
    anchors: list[int]


steps = st.builds(
    Step,
    st.sampled_from(VERBS),
    st.lists(st.integers(0, 15), min_size=1, max_size=6),
    st.integers(0, 9),
    st.sampled_from(Outcome),
    st.sampled_from(UrlState),
    st.sampled_from(UrlKind),
    st.booleans(),
    st.sampled_from([0, 1, -5, 2**63 - 1, -(2**63)]),
    st.sampled_from([0, 0, 1, 255, 300]),
    st.sampled_from([0.0, 0.125, 1.0, 4000.75]),
    st.lists(st.integers(0, len(TEXTS) - 1), min_size=6, max_size=6),
)


def url(number: int) -> str:
    return f"https://h{number % 4}.example/page/{number}"


class Crawl:
    """A repository that things happen to, and what it held at its last commit."""

    def __init__(self, folder: CrawlFolder) -> None:
        self.folder = folder
        self.repository = open_repository(folder)
        self.committed: Image = image(self.repository)
        self.now = AT
        self.repository.add_urls([url(number) for number in range(8)], at=AT)

    def close(self) -> None:
        self.repository.close()

    def happen(self, step: Step) -> None:
        self.now += step.seconds
        getattr(self, f"_{step.verb}")(step)

    def _add(self, step: Step) -> None:
        known = {url: row for row, url in enumerate(self.repository.urls(range(len(self.repository.table))))}
        urls = [url(number) for number in step.numbers]
        rows, added = self.repository.add_urls(
            urls,
            at=self.now,
            kind=[int(step.kind)] * len(urls),
            depth=[number * 20 for number in step.numbers],  # some beyond what a column holds
            hops=step.row * 40,
            source=step.row if step.row < len(known) else -1,
        )
        expected = [known.setdefault(url, len(known)) for url in urls]
        assert rows.tolist() == expected
        assert self.repository.urls(rows.tolist()) == urls
        assert added.tolist() == list(range(len(known) - len(added), len(known)))

    def _fetch(self, step: Step) -> None:
        if step.row < len(self.repository.table):
            self.repository.record(
                fetch_of(
                    step.row,
                    self.now,
                    outcome=step.outcome,
                    state=step.state,
                    changed=step.changed,
                    content_hash=step.content_hash,
                    errors=step.errors,
                    interval_s=60.0 + step.seconds,
                    not_before=self.now + step.seconds if step.errors else 0.0,
                )
            )

    def _links(self, step: Step) -> None:
        row = step.row % 3  # pages that are met again
        if row >= len(self.repository.table):
            return
        if step.changed:  # else a report that came late, or twice, or links that somebody else tells of
            self.repository.record(fetch_of(row, self.now))
        urls = [url(number) for number in dict.fromkeys(step.numbers)]
        rows, _ = self.repository.add_urls(urls, at=self.now, depth=1, source=row)
        self.repository.record_links(row, rows, self.now, more=step.errors > 0)
        texts = [TEXTS[number] for number in step.anchors[: len(rows)]]
        marks = np.array([anchor_mark(text) for text in texts], dtype=np.uint16)
        self.repository.record_anchors(rows, marks, texts)

    def _hint(self, step: Step) -> None:
        if step.row < len(self.repository.table):
            self.repository.record_hint(step.row, step.numbers[0] * 1e9, 1e9)

    def _host(self, step: Step) -> None:
        hosts = self.repository.table.hosts
        if len(hosts):
            host = step.row % len(hosts)
            hosts.columns["errors"][host] += 1
            hosts.columns["not_before"][host] = self.now + 0.3
            hosts.columns["pages"][host] += 2
            hosts.columns["duplicates"][host] += 1
            hosts.columns["last_fetch"][host] = self.now
            hosts.dirty.add(host)

    def _robots(self, step: Step) -> None:
        hosts = self.repository.table.hosts
        if len(hosts):
            host = step.row % len(hosts)
            hosts.columns["robots_at"][host] = self.now
            hosts.columns["crawl_delay_s"][host] = step.seconds
            self.repository.record_robots(host, "ok", b"User-agent: *")

    def _commit(self, step: Step) -> None:
        self.repository.commit()
        self.committed = image(self.repository)

    def _checkpoint(self, step: Step) -> None:
        self._commit(step)
        self.repository.write_checkpoint()

    def _reopen(self, step: Step) -> None:
        self._commit(step)
        self._crash(step)

    def _crash(self, step: Step) -> None:
        """Nothing is said goodbye to: what was not committed is gone, all else is there."""
        self.repository.close()
        self.repository = open_repository(self.folder)
        assert image(self.repository) == self.committed


@settings(max_examples=200, deadline=None)
@given(st.lists(steps, min_size=3, max_size=30))
def test_any_history_is_found_again(history: list[Step]) -> None:
    check_history(make_folder, history)


@settings(max_examples=40, deadline=None)
@given(history=st.lists(steps, min_size=3, max_size=30))
def test_any_history_is_found_again_in_postgres(postgres: PostgresServer, history: list[Step]) -> None:
    check_history(lambda root: make_folder(root, new_schema(postgres)), history)


def check_history(make: Maker, history: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as root:
        folder = make(Path(root))
        crawl = Crawl(folder)
        for step in history:
            crawl.happen(step)
        crawl.close()
        expected = crawl.committed
        for has_checkpoint in (True, False):
            if not has_checkpoint:
                folder.checkpoint.unlink(missing_ok=True)
            for write in (False, True):
                repository = open_repository(folder, write=write)
                assert image(repository) == expected
                check_whole(repository)
                repository.close()


def check_whole(repository: Repository) -> None:
    """What hangs together does."""
    rows = range(len(repository.table))
    urls = repository.urls(rows)
    assert [repository.table.find_url(url) for url in urls] == list(rows)
    ask = repository.connection.execute
    assert ask("SELECT coalesce(sum(fetches), 0), coalesce(sum(wire_bytes), 0) FROM totals").fetchone() == (
        repository.last_fetch_id,
        100 * repository.last_fetch_id,
    )
    in_links = [0] * len(urls)
    graph = recovery.load_graph(repository.connection, len(urls))
    for source in rows:
        links = repository.links(source)
        for target in links.targets.tolist() if links is not None else ():
            in_links[target] += 1
        assert graph.out_links(source).tolist() == (links.current().tolist() if links is not None else [])
    assert repository.table.columns["in_degree"].tolist() == in_links
    for row, marks in enumerate(repository.table.columns["anchors"].tolist()):
        assert [anchor_mark(text) for text in repository.anchors(row)] == [mark for mark in marks if mark]


def test_counters_stay_at_their_limit_in_memory_and_in_replay(
    folder: CrawlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "CHUNK_ROWS", 7)
    repository = open_repository(folder)
    repository.add_urls(["https://a.example/"], at=AT)
    repository.table.columns["fetches"][0] = repository.table.columns["changes"][0] = 65530
    repository.commit()
    repository.write_checkpoint()
    for turn in range(40):
        repository.record(fetch_of(0, AT + turn, changed=True))
    repository.commit()
    expected = image(repository)
    assert repository.table.columns["fetches"][0] == repository.table.columns["changes"][0] == 65535
    repository.close()
    again = open_repository(folder)
    assert again.replayed == 40
    assert image(again) == expected
    again.close()


def in_degrees(folder: CrawlFolder) -> list[int]:
    repository = open_repository(folder, write=False)
    found: list[int] = repository.table.columns["in_degree"].tolist()
    repository.close()
    return found


def linked(folder: CrawlFolder) -> list[int]:
    """Two pages after a checkpoint, links that no fetch brought, and a link that was known; the in-links then."""
    repository = open_repository(folder)
    first = add_and_fetch(repository, "https://a.example/0", ("https://a.example/1", "https://a.example/2"))
    repository.commit()
    repository.write_checkpoint()
    add_and_fetch(repository, "https://a.example/3", ("https://a.example/1",), AT + 1)
    repository.commit()
    repository.record_links(first, np.array([2, 3]), AT + 2, more=True)
    add_and_fetch(repository, "https://a.example/4", ("https://a.example/1", "https://a.example/3"), AT + 3)
    repository.commit()
    found: list[int] = repository.table.columns["in_degree"].tolist()
    repository.close()
    return found


def test_in_links_after_a_checkpoint_are_counted_without_reading_those_before(folder: CrawlFolder) -> None:
    expected = linked(folder)
    assert expected == [0, 3, 1, 2, 0]
    with closing(open_state(folder, write=True)) as connection:
        connection.execute("DELETE FROM links")
    assert in_degrees(folder) == expected
    folder.checkpoint.unlink()
    assert sum(in_degrees(folder)) == 0  # all are counted then


def test_in_links_are_counted_anew_where_the_checkpoint_is_too_old(folder: CrawlFolder) -> None:
    """A copy of it was put back, and what it lacks is not kept any more."""
    expected = linked(folder)
    old = folder.checkpoint.read_bytes()
    for number in range(2):
        repository = open_repository(folder)
        add_and_fetch(repository, f"https://b.example/{number}", ("https://a.example/1",), AT + 4)
        repository.commit()
        repository.write_checkpoint()
        assert repository.connection.execute("SELECT count(*) FROM new_links").fetchone() == (1,)
        repository.close()
    folder.checkpoint.write_bytes(old)
    assert in_degrees(folder) == [*(expected[:1]), expected[1] + 2, *expected[2:], 0, 0]


def test_a_page_to_be_tried_again_is_as_old_as_before(folder: CrawlFolder) -> None:
    """A refresh that failed for the moment must not wait for a whole interval."""
    repository = open_repository(folder)
    row = add_and_fetch(repository, "https://a.example/", at=AT)
    repository.record(fetch_of(row, AT + 100, outcome=Outcome.TIMEOUT, errors=1, not_before=AT + 130, content_hash=0))
    assert repository.table.columns["last_fetched"][row] == AT
    repository.record(fetch_of(row, AT + 200, outcome=Outcome.TIMEOUT, errors=0, content_hash=0))  # given up
    assert repository.table.columns["last_fetched"][row] == AT + 200
    repository.close()


def test_decisions_without_a_fetch_leave_the_fetch_history_alone(folder: CrawlFolder) -> None:
    repository = open_repository(folder)
    row = add_and_fetch(repository, "https://a.example/", at=AT)
    before = image(repository)["urls"]
    for outcome in (Outcome.ROBOTS, Outcome.FORGOTTEN, Outcome.ADDED):
        repository.record(fetch_of(row, AT + 50, outcome=outcome, interval_s=1.0, content_hash=9, changed=True))
    assert image(repository)["urls"] == before
    repository.close()


def test_a_graph_is_that_of_the_first_urls_while_a_writer_goes_on(folder: CrawlFolder) -> None:
    writer = open_repository(folder)
    add_and_fetch(writer, "https://a.example/", ("https://a.example/1", "https://a.example/2"))
    writer.commit()
    reader = open_repository(folder, write=False)
    add_and_fetch(writer, "https://a.example/9", ("https://a.example/8", "https://a.example/1"))
    writer.record(fetch_of(0, AT + 60))
    writer.record_links(0, writer.add_urls(["https://a.example/7", "https://a.example/2"], at=AT)[0], AT + 60)
    writer.commit()
    graph = recovery.load_graph(reader.connection, len(reader.table))
    assert [graph.out_links(row).tolist() for row in range(3)] == [[2], [], []]
    reader.close()
    writer.close()


def test_links_are_read_in_pieces_and_take_few_bytes(folder: CrawlFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = open_repository(folder)
    count, each = 300, 250
    repository.add_urls([f"https://a.example/{nth}" for nth in range(count + 50)], at=AT)
    rng = np.random.default_rng(1)
    for source in range(0, count, 2):
        targets = np.sort(rng.permutation(count + 50)[:each])
        repository.record_links(source, targets, AT)
    repository.commit()
    whole = recovery.load_graph(repository.connection, count)
    for chunk in (1, 5000):
        monkeypatch.setattr(recovery, "CHUNK_BYTES", chunk)
        graph = recovery.load_graph(repository.connection, count)
        assert graph.starts.tolist() == whole.starts.tolist()
        assert graph.targets.tolist() == whole.targets.tolist()
    first = repository.links(0)
    assert first is not None
    assert whole.out_links(0).tolist() == [row for row in first.targets.tolist() if row < count]
    assert len(whole.out_links(1)) == 0
    stored = recovery.count_links(repository.connection, count)
    tracemalloc.start()
    try:
        recovery.load_graph(repository.connection, count)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * stored + 100_000  # some pieces, and 8 bytes a URL
    # a writer goes on meanwhile: there may be more than was counted
    monkeypatch.setattr(recovery, "count_links", lambda connection, count: 3)
    assert recovery.load_graph(repository.connection, count).targets.tolist() == whole.targets.tolist()
    repository.close()
