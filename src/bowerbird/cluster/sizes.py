"""How many pieces tables are cut into, and what tells one input from another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bowerbird.cluster.session import SHUFFLE_PARTITIONS

if TYPE_CHECKING:
    from bowerbird.cluster.inputs import Rows

PIECE_BYTES = 32_000_000  # of input, that make a piece of the tables
FEWEST_PIECES, MOST_PIECES = 4, 20_000


def mark_inputs(*rows: Rows | None) -> list[list[str]]:
    """What a job reads, as marks that change with it."""
    return [[] if each is None else each.marks for each in rows]


def choose_partitions(spark: Any, size: int) -> int:
    """Pieces of tables: of some MB each, and at least as many as cores."""
    least = max(FEWEST_PIECES, int(spark.sparkContext.defaultParallelism))
    pieces = int(min(max(-(-size // PIECE_BYTES), least), MOST_PIECES))
    spark.conf.set(SHUFFLE_PARTITIONS, str(pieces))
    return pieces
