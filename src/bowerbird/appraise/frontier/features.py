"""All that is known of a page before it is fetched, as numbers; of a hidden page as if it had never been fetched."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier.graph import IntArray
from bowerbird.appraise.frontier.inputs import Inputs
from bowerbird.appraise.frontier.link_features import describe_linking_groups, describe_links
from bowerbird.appraise.frontier.name_features import Names, describe_directories, describe_names, read_names
from bowerbird.appraise.frontier.neighbours import MOST_PAGES, describe_neighbours

_HIGHEST = 1e30


@dataclass(frozen=True, slots=True)
class Features:
    """One row a page, in the order asked for."""

    names: tuple[str, ...]
    values: npt.NDArray[np.float32]


def describe_pages(inputs: Inputs, rows: IntArray, names: Names | None) -> Features:
    """Describe `rows`, which are neither crawled nor labelled in these inputs. `names` is of `read_names`."""
    known, clicks = inputs.known, inputs.clicks
    columns = describe_links(inputs.graph, clicks, known, inputs.clicks_scale)
    if names is not None:
        columns |= describe_names(names, clicks, known, inputs.rng)
    columns |= describe_directories((inputs.host.astype(np.int64), *inputs.groups), clicks, known)
    if inputs.groups:
        wide, narrow = inputs.groups[:2][-1], inputs.groups[-1]
        columns |= describe_linking_groups(inputs.graph, (wide, narrow), clicks, known)
    # up to its fetch: after that time brings clicks, and would give them away
    asked_at = inputs.now if inputs.asked_at is None else inputs.asked_at
    columns["days known"] = np.maximum(asked_at - inputs.first_seen, 0.0) / 86400.0
    chosen = {name: column[rows] for name, column in columns.items()}
    if inputs.graph.count <= MOST_PAGES:  # which hiding does not change: lessons and frontier are described alike
        chosen |= describe_neighbours(inputs.graph, clicks, known, rows, inputs.rng)
    table = np.column_stack(list(chosen.values())) if chosen else np.zeros((len(rows), 0))
    finite = np.nan_to_num(table, posinf=_HIGHEST, neginf=-_HIGHEST)
    return Features(tuple(chosen), finite.astype(np.float32))


def take_names(inputs: Inputs) -> Names | None:
    """The words of pages taken apart, once for all that is hidden later."""
    return None if inputs.words is None else read_names(inputs.words, inputs.workload)
