"""`seeds --engine spark`: graphs that do not fit one machine."""

from __future__ import annotations

import time
from typing import Any

from bowerbird.cli.engine import Engine, say
from bowerbird.model.errors import ConfigError


def seeds_by_spark(
    engine: Engine,
    paths: tuple[str, str | None, str | None, str | None],
    k: int,
    hops: int,
    samples: int | None,
    seed: int,
) -> dict[str, Any]:
    """The same facts as of the local engine."""
    began = time.perf_counter()
    with engine.session() as (spark, root):
        from bowerbird.appraise.seeds.methods import VOID
        from bowerbird.cluster.seeds import MOST_SAMPLES, MOST_SEEDS, SAMPLES, SeedPaths, SeedWish, choose_seeds

        if k > MOST_SEEDS:
            raise ConfigError(f"-k {k}: --engine spark chooses at most {MOST_SEEDS:,} seeds.")
        if samples is not None and samples > MOST_SAMPLES:
            raise ConfigError(f"--samples {samples}: --engine spark takes at most {MOST_SAMPLES:,}.")
        wish = SeedWish(k, hops, samples or SAMPLES, seed)
        found = choose_seeds(spark, SeedPaths(*paths), wish, root, engine.choice().partitions, say)
    for note in found.notes:
        say(note)
    choice, rows = found.choice, []
    pages, value = 0, 0.0
    for name, more, worth in zip(found.names, choice.pages.tolist(), choice.value.tolist(), strict=True):
        pages, value = pages + more, value + worth
        row = {"page": name, "pages": more, "value": worth, "covered_pages": pages, "covered_value": value}
        rows.append(row)
    data: dict[str, Any] = {
        "method": "greedy",
        "engine": engine.name,
        "hops": hops,
        "pages": found.pages,
        "links": found.links,
        "unit": "weight" if any(paths[1:]) else "pages",
        "value": found.positive,
        "seeds": rows,
        "covered_pages": pages,
        "covered_value": value,
        "samples": choice.samples,
        "seconds": round(time.perf_counter() - began, 3),
        "notes": [*choice.notes, *([VOID] if found.has_negative else [])],
    }
    if choice.bound is not None:
        data["bound"] = {"value": choice.bound.value, "confidence": choice.bound.confidence}
        if value > 0 and choice.bound.value > 0:
            data["at_least_of_the_best"] = min(value / choice.bound.value, 1.0)
    return data
