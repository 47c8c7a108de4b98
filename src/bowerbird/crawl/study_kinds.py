"""The kinds of studies that a crawl goes by: which methods each has, where it is read from, and where it is put."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.policy import AUTO, HUB_STUDIED, REFRESH_STUDIED, STUDIED, Policy
from bowerbird.crawl.settings import Settings
from bowerbird.model.seed_study import METHOD as SEEDS
from bowerbird.model.seed_study import SeedStudy
from bowerbird.model.url_state import UrlKind, UrlState
from bowerbird.model.watch import METHOD as WATCH
from bowerbird.store.hub_study_file import read_hub_study
from bowerbird.store.refresh_study_file import read_refresh_study
from bowerbird.store.repository import Repository
from bowerbird.store.seed_study_file import read_seed_study
from bowerbird.store.study_file import read_study
from bowerbird.store.watch_file import read_watch

SEED_STUDIED = (SEEDS,)
WATCH_STUDIED = (WATCH,)
APART = (*SEED_STUDIED, *WATCH_STUDIED)  # which are no part of a policy
FEWEST_FETCHES = 20  # before there is anything to learn from
FEWEST_SEEDED = 200  # pages: until then what people gave is as good


class AnyStudy(Protocol):
    """What all studies have."""

    @property
    def at(self) -> float:
        """When it was made."""

    @property
    def method(self) -> str:
        """By what."""


class AnyRead(Protocol):
    """A study, or why there is none."""

    @property
    def study(self) -> AnyStudy | None:
        """None where there is none, or it cannot be used."""

    @property
    def note(self) -> str:
        """Why it cannot be used."""


#: path, seed and hashes of the crawl's URLs, with all that explains it?, a stream opened before
Read = Callable[[Path, int, npt.NDArray[np.uint64], bool, IO[bytes] | None], AnyRead]


@dataclass(frozen=True, slots=True)
class StudyKind:
    """One kind of studies."""

    name: str  # that its settings and its notes go by
    methods: tuple[str, ...]
    attribute: str  # of Repository and Snapshot
    read: Read
    fewest_pages: int = 0  # fetched, before the first
    is_bid_by: bool = True  # else it steers the crawl in another way, and its age is told apart
    waits: bool = False  # for its time also after a restart, where there is one already

    def every_s(self, settings: Settings) -> float:
        """Seconds between two."""
        return float(getattr(settings, self.name).study_every_s)

    def of(self, repository: Repository) -> Any:
        """The study that the crawl goes by; None before there is one."""
        return getattr(repository, self.attribute)

    def put(self, repository: Repository, study: AnyStudy | None) -> None:
        """Have the crawl go by it."""
        setattr(repository, self.attribute, study)
        if isinstance(study, SeedStudy):  # new pages are put in order from the nearest seed, given or chosen
            repository.table.lower_near_depth(study.depth)

    def is_ripe(self, repository: Repository) -> bool:
        """Is there enough to look at?"""
        if repository.last_fetch_id < FEWEST_FETCHES or not self.fewest_pages:
            return repository.last_fetch_id >= FEWEST_FETCHES
        columns = repository.table.columns
        fetched = (columns["state"] == UrlState.FETCHED) & (columns["kind"] == UrlKind.PAGE)
        return int(np.count_nonzero(fetched)) >= self.fewest_pages


KINDS: tuple[StudyKind, ...] = (
    StudyKind(
        "frontier",
        STUDIED,
        "study",
        lambda path, seed, hashes, whole, stream: read_study(path, seed, hashes, reasons=whole, stream=stream),
    ),
    StudyKind(
        "refresh",
        REFRESH_STUDIED,
        "refresh_study",
        lambda path, seed, hashes, whole, stream: read_refresh_study(path, seed, hashes, details=whole, stream=stream),
    ),
    StudyKind(
        "hubs",
        HUB_STUDIED,
        "hub_study",
        lambda path, seed, hashes, whole, stream: read_hub_study(path, seed, hashes, stream=stream),
    ),
    StudyKind(
        SEEDS,
        SEED_STUDIED,
        "seed_study",
        lambda path, seed, hashes, whole, stream: read_seed_study(path, seed, hashes, stream=stream),
        fewest_pages=FEWEST_SEEDED,
        is_bid_by=False,
        waits=True,
    ),
    StudyKind(
        "budget",
        WATCH_STUDIED,
        "watch",
        lambda path, seed, hashes, whole, stream: read_watch(path, seed, hashes, stream=stream),
        is_bid_by=False,
    ),
)


def kind_of(method: str) -> StudyKind:
    """The kind that a method is of; what no kind has is taken for one of new pages, which says so itself."""
    return next((kind for kind in KINDS if method in kind.methods), KINDS[0])


def methods_of(policy: Policy, settings: Settings) -> tuple[str, ...]:
    """The methods that a crawl is studied by: those of its policy, and its seeds unless that is turned off.

    What `auto` expects in clicks is watched.
    """
    seeds = SEED_STUDIED if settings.seeds.study_every_s > 0 else ()
    return (*policy.studied, *seeds, *(WATCH_STUDIED if policy.name == AUTO else ()))
