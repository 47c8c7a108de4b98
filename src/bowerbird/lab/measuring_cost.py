"""What a policy costs: time by the wall clock, and the most memory that the process held while it ran."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bowerbird.lab.experiment import Cost

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
#: in a unit of 1024 bytes, except where the system counts bytes
_MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(slots=True)
class Meter:
    """Has the cost once its block has ended."""

    policy: str
    seconds: float = 0.0
    peak_mb: float = 0.0

    @property
    def cost(self) -> Cost:
        """What the block took."""
        return Cost(self.policy, self.seconds, self.peak_mb)


@contextmanager
def measured(policy: str) -> Iterator[Meter]:
    """Measure a block, also one that fails.

    >>> with measured("sorting") as meter:
    ...     _ = sorted(range(1000))
    >>> meter.cost.policy, meter.cost.seconds > 0, meter.cost.peak_mb > 1
    ('sorting', True, True)
    """
    meter = Meter(policy)
    _forget_peak()
    began = time.perf_counter()
    try:
        yield meter
    finally:
        meter.seconds = time.perf_counter() - began
        meter.peak_mb = read_peak_mb()


def read_peak_mb() -> float:
    """The most resident memory of this process since the peak was forgotten; where that cannot be, of its life."""
    try:
        for line in _STATUS.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    except (OSError, ValueError, IndexError):
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MAXRSS_UNIT / 1e6


def _forget_peak() -> None:
    """Linux counts the peak anew after this; elsewhere a policy's peak is that of the process so far."""
    try:
        _CLEAR.write_text("5", encoding="ascii")
    except OSError:
        pass
