"""What are change signals worth? The online user-centric policy with announcements of every quality."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bowerbird.lab.experiment import Sample
from bowerbird.lab.refresh_announcements import Announcements
from bowerbird.lab.refresh_learners import Learner
from bowerbird.lab.refresh_measures import SIGNAL_BUDGETS, signals_measure
from bowerbird.lab.refresh_scenes import RefreshScenes

RECALLS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
#: false announcements, by page and week
FALSE_RATES = (0.0, 0.01, 0.05, 0.2)
SPLITS = 3
_SEED = 6000  # of announcements, which are drawn apart from what the policy draws


def measure_signals(data: RefreshScenes, split: int) -> Iterator[Sample]:
    """Losses by recall, a policy for each rate of false signals; announcements are drawn anew for each split.

    It takes long, and differs little from split to split: the first splits are enough.
    """
    if split >= SPLITS:
        return
    for false_rate in FALSE_RATES:
        for recall in RECALLS:
            told = Announcements(data.data, recall, false_rate, _SEED + split)
            for scene in data.combinations:
                for share in SIGNAL_BUDGETS:
                    policy = Learner(data, scene, "user-centric", np.random.default_rng(split), told)
                    loss = scene.loss_bp(policy, share)
                    yield Sample(say_false_rate(false_rate), signals_measure(share, scene.name), recall, loss)


def say_false_rate(rate: float) -> str:
    """The name that a curve has.

    >>> say_false_rate(0.0), say_false_rate(0.05)
    ('no false signals', '5% false a week')
    """
    return f"{rate:.0%} false a week" if rate else "no false signals"
