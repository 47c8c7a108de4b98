"""Small sites for tests of the refresh experiments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from bowerbird.lab.refresh_data import QuerySet, RefreshData, make_queries
from bowerbird.lab.refresh_terms import TermNumbers

WORDS = ("red", "blue", "car", "bus")


@dataclass(frozen=True)
class Toy:
    """Texts as lists of words, by page and week; a page's text of a week is that of the week before unless given."""

    texts: list[list[list[str] | None]]  # page, week; that of week 0 is not None
    in_links: list[int]
    queries: dict[tuple[str, ...], float]

    @property
    def weeks(self) -> int:
        """After week 0."""
        return len(self.texts[0]) - 1

    def words(self, page: int, week: int) -> list[str]:
        """The text that is live at the end of a week."""
        return next(text for text in self.texts[page][week::-1] if text is not None)

    def data(self) -> RefreshData:
        """As the experiment has it."""
        terms = TermNumbers()
        keys = [
            (page, week) for page, row in enumerate(self.texts) for week, text in enumerate(row) if text is not None
        ]
        starts, tokens = terms.read([" ".join(self.texts[page][week] or []) for page, week in keys])
        queries: QuerySet = make_queries(terms, [" ".join(query) for query in self.queries], self.queries.values())
        first = np.searchsorted([page for page, _ in keys], np.arange(len(self.texts) + 1)).astype(np.int64)
        return RefreshData(
            "toy",
            tuple(f"p{page:03}" for page in range(len(self.texts))),
            first,
            np.array([week for _, week in keys], dtype=np.int16),
            starts,
            tokens,
            np.array(self.in_links, dtype=np.int64),
            {"web": queries},
            self.weeks,
        )


@st.composite
def toys(draw: st.DrawFn) -> Toy:
    """Sites with few words, so that there are many ties."""
    pages, weeks = draw(st.integers(1, 7)), draw(st.integers(1, 4))
    text = st.lists(st.sampled_from(WORDS), max_size=6)
    row = st.tuples(text, *[st.none() | text for _ in range(weeks)]).map(list)
    query = st.sets(st.sampled_from(WORDS), min_size=1, max_size=3).map(lambda words: tuple(sorted(words)))
    return Toy(
        draw(st.lists(row, min_size=pages, max_size=pages)),
        draw(st.lists(st.integers(0, 3), min_size=pages, max_size=pages)),
        draw(st.dictionaries(query, st.integers(1, 5).map(float), min_size=1, max_size=6)),
    )
