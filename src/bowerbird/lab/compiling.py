"""Has the kernels of studies compiled, once on a machine: a short replay of a small made world uses them all."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numba

import bowerbird
from bowerbird.lab.holistic_made import MADE, make_world
from bowerbird.lab.holistic_policies import AUTO
from bowerbird.lab.holistic_replay import replay, warm_up

PACKAGE = Path(str(bowerbird.__file__)).parent


def compile_studies() -> None:
    """Two or three seconds, or half a minute where nothing was compiled before."""
    small = replace(MADE["breaking"], hosts=4, old_pages=120, warm_days=1.0, days=1.0, new_per_day=60.0)
    warm = warm_up(make_world("breaking", small, 0), 0)
    replay(warm, AUTO, warm.world.budgets[-1], 0)


def kernels_mark() -> str:
    """Another one whenever a kernel was changed: what was compiled before does not count then."""
    files = sorted(path for path in PACKAGE.rglob("*.py") if b"njit" in path.read_bytes())
    found = [f"{path.relative_to(PACKAGE)} {path.stat().st_mtime_ns} {path.stat().st_size}" for path in files]
    return hashlib.blake2b("\n".join([numba.__version__, *found]).encode(), digest_size=16).hexdigest()
