"""The Snapshot: an immutable columnar view of what is known at a time. The live store makes one; so does a lab."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bowerbird.model.factors import Factors
from bowerbird.model.hub_study import HubStudy
from bowerbird.model.refresh_study import RefreshStudy
from bowerbird.model.seed_study import SeedStudy
from bowerbird.model.study import FrontierStudy
from bowerbird.model.workload import Workload

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PageColumns:
    """One row per known URL; row number = URL number. Read-only views."""

    host: npt.NDArray[np.uint32]
    state: npt.NDArray[np.uint8]
    kind: npt.NDArray[np.uint8]
    depth: npt.NDArray[np.uint8]
    first_seen: npt.NDArray[np.uint32]
    last_fetched: npt.NDArray[np.float64]
    last_changed: npt.NDArray[np.uint32]
    fetches: npt.NDArray[np.uint16]
    changes: npt.NDArray[np.uint16]
    errors: npt.NDArray[np.uint8]
    in_degree: npt.NDArray[np.uint32]
    interval_s: npt.NDArray[np.float32]
    hint_modified: npt.NDArray[np.uint32]
    source: npt.NDArray[np.int32]  # the URL that led here, -1 = none

    def __len__(self) -> int:
        return len(self.state)


@dataclass(frozen=True, slots=True)
class HostColumns:
    """One row per host (an origin: scheme, name and port)."""

    known: npt.NDArray[np.int64]  # URLs known of the host
    fetched: npt.NDArray[np.uint32]  # pages fetched of it
    trap_score: npt.NDArray[np.float32]  # share of its pages that were near-duplicates, 0…1

    def __len__(self) -> int:
        return len(self.known)


def weigh_hosts(trap_score: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """What bids of hosts are multiplied by for their place in line, 0.1…1: those that mostly repeat others come later.

    >>> weigh_hosts(np.array([0.0, 0.5, 1.0], dtype=np.float32)).round(3).tolist()
    [1.0, 0.550000011920929, 0.10000000149011612]
    """
    return np.asarray(1.0 - 0.9 * trap_score, dtype=np.float32)


@dataclass(frozen=True, slots=True)
class LinkGraph:
    """Links between URLs in CSR form: the out-links of row i are `targets[starts[i]:starts[i + 1]]`."""

    starts: IntArray
    targets: npt.NDArray[np.uint32]

    def out_links(self, row: int) -> npt.NDArray[np.uint32]:
        """URL numbers that row links to."""
        return self.targets[self.starts[row] : self.starts[row + 1]]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What an appraiser may know."""

    now: float
    pages: PageColumns
    hosts: HostColumns
    links: LinkGraph | None = None
    workload: Workload | None = None
    clicks: npt.NDArray[np.float64] | None = None  # decayed; by URL row; later rows have none
    study: FrontierStudy | None = None  # of the frontier as it was some time ago
    refresh_study: RefreshStudy | None = None  # of the fetched pages as they were some time ago
    hub_study: HubStudy | None = None  # of the pages and files that announce others
    seed_study: SeedStudy | None = None  # of the pages from which most is reached
    factors: Factors | None = None  # by which expected gains are corrected
    price: float = 0.0  # clicks that a fetch has to gain; 0 = not known
