"""The memory that is left, as far as the system tells."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

MEMORY = Path("/proc/meminfo")
GROUP = Path("/sys/fs/cgroup")


def free_memory() -> int:
    """Bytes that this process could still take; without end where nobody tells."""
    found = [1 << 62]
    with suppress(OSError, ValueError):
        lines = MEMORY.read_text(encoding="ascii").splitlines()
        found += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    with suppress(OSError, ValueError):  # "max" is no number: no limit
        limit, used = ((GROUP / name).read_text(encoding="ascii") for name in ("memory.max", "memory.current"))
        found.append(int(limit) - int(used))
    return max(min(found), 0)
