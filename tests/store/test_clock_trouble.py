"""A clock that was ahead once: what it wrote counts as now, and waits are no longer than they are ever set."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.store.stored import AT, add_and_fetch, fetch_of, image, make_folder, open_repository

from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import UrlState
from bowerbird.store.clock_trouble import MOMENT_S, bring_back, set_back_waits
from bowerbird.store.repository import Repository

YEAR_S = 365 * 86_400.0
HOST_S, PAGE_S = 1000.0, 4000.0
AHEAD = AT + YEAR_S


def with_both(root: Path) -> Repository:
    """One host and two pages of each time: fetched well, and in trouble."""
    repository = open_repository(make_folder(root))
    for host, at, wait_s in (("a", AT - 100.0, 300.0), ("b", AHEAD, 300.0)):
        add_and_fetch(repository, f"https://{host}.example/", at=at)
        row = int(repository.add_urls([f"https://{host}.example/bad"], at=at)[0][0])
        failed = {"outcome": Outcome.TIMEOUT, "state": UrlState.NEW, "errors": 1, "not_before": at + wait_s}
        repository.record(fetch_of(row, at, content_hash=0, **failed))
        hosts = repository.table.hosts
        number = hosts[f"https://{host}.example"]
        for name, value in (("last_fetch", at), ("robots_at", at), ("not_before", at + wait_s)):
            hosts.columns[name][number] = value
        hosts.dirty.add(number)
    repository.commit()
    return repository


def times(repository: Repository, name: str) -> list[float]:
    return [float(value) for value in repository.table.columns[name]]


def host_times(repository: Repository, name: str) -> list[float]:
    return [float(value) for value in repository.table.hosts.columns[name]]


def test_what_lies_in_the_future_counts_as_now_and_real_waits_stay(tmp_path: Path) -> None:
    repository = with_both(tmp_path)
    assert bring_back(repository.table, AT, HOST_S, PAGE_S) == 2 + 1
    assert times(repository, "last_fetched") == [AT - 100.0, 0.0, AT - MOMENT_S, 0.0]
    assert times(repository, "first_seen") == pytest.approx([AT - 100, AT - 100, AT, AT], abs=2)
    assert times(repository, "not_before") == pytest.approx([0, AT + 200, 0, AT + PAGE_S], abs=1)
    assert host_times(repository, "last_fetch") == [AT - 100.0, AT - MOMENT_S]
    assert host_times(repository, "robots_at") == [AT - 100.0, AT - MOMENT_S]
    assert host_times(repository, "not_before") == [AT + 200.0, AT + HOST_S]
    before = image(repository)
    assert bring_back(repository.table, AT, HOST_S, PAGE_S) == 0
    assert image(repository) == before
    repository.close()


def test_where_the_clock_is_set_back_waits_last_as_long_as_was_meant(tmp_path: Path) -> None:
    """Else a host in trouble would be asked again and again: no failure counts before its wait is over."""
    repository = with_both(tmp_path)
    repository.table.hosts.dirty.clear()
    set_back_waits(repository.table, AHEAD, YEAR_S)
    assert times(repository, "not_before") == pytest.approx([0, AT, 0, AT + 300], abs=1)
    assert host_times(repository, "not_before") == [AT, AT + 300.0]  # that of the first was over, and is
    assert repository.table.hosts.dirty == {0, 1}
    repository.close()


def test_it_is_written_with_the_next_commit_and_checkpoint_and_found_again_without(tmp_path: Path) -> None:
    repository = with_both(tmp_path)
    repository.close()
    for _ in range(2):  # a crash before anything was written: the next start sees to it as well
        repository = open_repository(repository.folder)
        assert bring_back(repository.table, AT, HOST_S, PAGE_S) == 3
        repository.close()
    repository = open_repository(repository.folder)
    bring_back(repository.table, AT, HOST_S, PAGE_S)
    repository.commit()
    repository.write_checkpoint()
    kept = image(repository)
    repository.close()
    repository = open_repository(repository.folder)  # as after kill -9
    assert image(repository) == kept
    assert bring_back(repository.table, AT + 50.0, HOST_S, PAGE_S) == 0
    repository.close()
