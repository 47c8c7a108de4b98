from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.index.protocol import Document
from bowerbird.index.scoring import PageScorer, length_steps, stored_length
from bowerbird.index.tantivy_index import TantivyIndex
from bowerbird.index.tantivy_query import FIELD_WEIGHTS

WORDS = ["ape", "bear", "cat", "dog", "eel", "fox", "kite", "lynx", "mole", "newt", "owl", "pig"]
texts = st.lists(st.sampled_from(WORDS), max_size=120).map(" ".join)
pages = st.lists(
    st.tuples(texts, texts.map(lambda text: text[:60]), texts.map(lambda text: text[:40])), min_size=2, max_size=12
)


def document(page: int, text: str, title: str, anchors: str) -> Document:
    return Document(page, f"http://a.example/{page}", title, text, anchors, f"a example {page}", "a.example", "en", 0.0)


@settings(max_examples=25, deadline=None)
@given(pages)
def test_a_page_scores_as_the_engine_scores_it(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[str, str, str]]
) -> None:
    index = TantivyIndex.open(tmp_path_factory.mktemp("index"), write=True)
    documents = [document(page, *fields) for page, fields in enumerate(drawn)]
    for each in documents:
        index.add(document(each.page, "html the a aardvark", "html", "html the"))  # soon no document has these words
    index.commit()
    for each in documents:
        index.add(each, replace=True)
    index.remove(len(documents))
    index.commit()
    scorer = PageScorer(index, WORDS, FIELD_WEIGHTS)
    ours = np.zeros((len(documents), len(WORDS)))
    for each in documents:
        fields = {"title": each.title, "text": each.text, "anchors": each.anchors, "url_words": each.url_words}
        scored = scorer.score(fields)
        ours[each.page, scored.words] = scored.scores
    theirs = np.zeros_like(ours)
    for number, word in enumerate(WORDS):
        found, scores, total = index.top_scores([word], 100)
        assert total == len(found)
        theirs[found, number] = scores
    index.close()
    assert np.allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_pages_with_all_words_are_ranked_by_the_sum_of_their_scores(tmp_path: Path) -> None:
    index = TantivyIndex.open(tmp_path / "index", write=True)
    for page, text in enumerate(["kite lynx", "kite kite lynx lynx", "kite", "lynx owl"]):
        index.add(document(page, text, "", ""))
    index.commit()
    scorer = PageScorer(index, WORDS, FIELD_WEIGHTS)
    found, scores, total = index.top_scores(["kite", "lynx"], 10)
    assert (sorted(found.tolist()), total) == ([0, 1], 2)
    best = scorer.score({"text": "kite kite lynx lynx", "url_words": "a example 1"})
    assert scores[0] == pytest.approx(best.scores[:2].sum(), rel=1e-5)
    assert index.top_scores([], 10)[2] == 0
    index.close()


def test_an_index_without_pages_has_statistics_too(tmp_path: Path) -> None:
    index = TantivyIndex.open(tmp_path / "index", write=False)
    assert (index.document_count(), index.average_length("text")) == (0, 0.0)
    assert len(PageScorer(index, WORDS, FIELD_WEIGHTS).score({"text": "kite"}).words) == 0


@given(st.integers(0, 3_000_000))
def test_a_length_is_kept_as_the_step_below(words: int) -> None:
    kept = stored_length(words)
    assert kept <= words
    assert words - kept <= max(words, 8) / 8
    assert (np.diff(length_steps()) > 0).all()
    assert kept in set(length_steps().tolist())
