"""What a coordinator asks of those who fetch for it, be they its own processes or workers on other machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from bowerbird.crawl.report import Failure, Job, Report, WorkerSetup
from bowerbird.schedule.leases import Lease, LeaseBook
from bowerbird.store.url_table import UrlTable


class Hand(Protocol):
    """One worker."""

    outstanding: int


class Workforce(Protocol):
    """Workers by number."""

    syncs: bool
    """Is what they report on the disk by then? Else the coordinator sees to it."""

    @property
    def workers(self) -> Mapping[int, Hand]:
        """Those who work now."""

    @property
    def unsettled(self) -> int:
        """Reports taken that the next commit settles."""

    def begin(self, setup: WorkerSetup) -> None:
        """Tell them what they work for."""

    def restore(self, table: UrlTable) -> Iterable[tuple[int, Lease]]:
        """Leases, by token, that an earlier coordinator gave and that are not over."""

    def send(self, number: int, jobs: list[Job], leases: LeaseBook) -> None:
        """Hand jobs to a worker; they are in the book."""

    def receive(self, timeout_s: float) -> tuple[list[Report], list[Failure]]:
        """Wait for reports at most that long."""

    def settle(self, tokens: list[int]) -> None:
        """In a commit: these leases are over, and what was received is durable with it."""

    def settled(self) -> None:
        """That commit has succeeded."""

    def widen(self, seeds: tuple[str, ...]) -> None:
        """The scope grows by these seeds."""

    def untell(self, hashes: list[int]) -> None:
        """These URLs were not taken."""

    def lost(self) -> list[int]:
        """Workers that are gone, with all they hold; once each."""

    def start_one(self) -> object:
        """In place of one that was lost."""

    def end_if_silent(self, number: int, since: float) -> None:
        """A worker whose lease expired and that has said nothing since then hangs."""

    def close(self, patience_s: float = ...) -> None:
        """The run is over."""
