"""Small worlds of hubs, made by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bowerbird.lab.echo_replay import HUB, PAGE, Choice, Setting
from bowerbird.lab.echo_world import F64, I64, EchoWorld

Link = tuple[int, int, float, float, int]  # hub, page, from, to, position
Gain = tuple[int, float, float, float]  # page, from, to, clicks


def make_world(
    links: Sequence[Link], gains: Sequence[Gain], *, end_s: float = 10_000.0, old: Sequence[int] = ()
) -> EchoWorld:
    """A world that begins at 0 and is scored as a whole."""
    hub, page, begin, end, position = (np.array(column) for column in zip(*links, strict=True))
    pages = int(page.max()) + 1
    appeared = np.full(pages, np.inf)
    np.minimum.at(appeared, page, begin)
    known = np.zeros(pages, dtype=bool)
    known[list(old)] = True
    gained = sorted(gains)
    gain_page, gain_from, gain_to, clicks = (np.array(column) for column in zip(*gained, strict=True))
    return EchoWorld(
        "toy",
        0.0,
        end_s,
        0.0,
        end_s,
        tuple(f"hub {number}" for number in range(int(hub.max()) + 1)),
        np.zeros(int(hub.max()) + 1, dtype=np.int64),
        tuple(str(number) for number in range(pages)),
        appeared,
        known,
        hub.astype(np.int64),
        page.astype(np.int64),
        begin.astype(np.float64),
        end.astype(np.float64),
        position.astype(np.int64),
        gain_page.astype(np.int64),
        gain_from.astype(np.float64),
        gain_to.astype(np.float64),
        clicks.astype(np.float64),
    )


def make_news(seed: int = 0, *, hubs: int = 6, days: float = 4.0) -> EchoWorld:
    """Hubs of different rates and profits whose pages fade within hours; a link stays for a day."""
    rng = np.random.default_rng(seed)
    links: list[Link] = []
    gains: list[Gain] = []
    for hub in range(hubs):
        for _ in range(rng.poisson(days * 6 * (hub + 1))):
            at = float(rng.uniform(0, days * 86_400))
            page = len(links)
            links.append((hub, page, at, at + 86_400, 0))
            for hour in range(12):
                clicks = float(rng.poisson(20 * (1 + hub % 2 * 9) * np.exp(-hour / 4)))
                if clicks:
                    gains.append((page, at + hour * 3600, at + (hour + 1) * 3600, clicks))
    return make_world(links, gains, end_s=days * 86_400)


class Script:
    """Does what it was told to, and remembers what it was shown."""

    def __init__(self, choices: Sequence[Choice | None]) -> None:
        self.choices = list(choices)
        self.visits: list[tuple[float, int, list[int], list[int], list[int]]] = []
        self.pushes: list[tuple[float, list[tuple[int, float, float]]]] = []
        self.setting: Setting | None = None

    def __call__(self, setting: Setting, rng: np.random.Generator) -> Script:
        self.setting = setting
        return self

    def choose(self, now_s: float) -> Choice | None:
        return self.choices.pop(0) if self.choices else None

    def saw(self, now_s: float, hub: int, links: I64, fresh: I64, places: I64) -> None:
        self.visits.append((now_s, hub, links.tolist(), fresh.tolist(), places.tolist()))

    def fetched(self, now_s: float, page: int) -> None:
        pass

    def pushed(self, now_s: float, page: I64, bin_from_s: F64, clicks: F64) -> None:
        self.pushes.append((now_s, list(zip(page.tolist(), bin_from_s.tolist(), clicks.tolist(), strict=True))))


def visit(hub: int) -> Choice:
    return HUB, hub


def fetch(page: int) -> Choice:
    return PAGE, page
