"""Has the kernels of studies compiled, once on a machine: a short replay of a small made world uses them all."""

from __future__ import annotations

from dataclasses import replace

from bowerbird.lab.holistic_made import MADE, make_world
from bowerbird.lab.holistic_policies import AUTO
from bowerbird.lab.holistic_replay import replay, warm_up


def compile_studies() -> None:
    """Two or three seconds, or half a minute where nothing was compiled before."""
    small = replace(MADE["breaking"], hosts=4, old_pages=120, warm_days=1.0, days=1.0, new_per_day=60.0)
    warm = warm_up(make_world("breaking", small, 0), 0)
    replay(warm, AUTO, warm.world.budgets[-1], 0)
