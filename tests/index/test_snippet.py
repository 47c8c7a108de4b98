from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bowerbird.index.analysis import SEPARATOR, prepare, tokenize
from bowerbird.index.snippet import SNIPPET_CHARS, Highlighter, make_snippet


def _marked(text: str, query: str) -> tuple[str, list[str]]:
    snippet, ranges = make_snippet(prepare(text), Highlighter.of(tokenize(query)))
    return snippet, [snippet[start:end] for start, end in ranges]


def test_whole_words_only_in_any_case() -> None:
    assert _marked("The cat, a CAT, concatenates cats.", "cat") == (
        "The cat, a CAT, concatenates cats.",
        ["cat", "CAT"],
    )


def test_window_with_most_words_wins() -> None:
    text = "red " + "filler words here " * 100 + "a red fast car drives " + "more filler words " * 100
    snippet, marked = _marked(text, "red car fast")
    assert marked == ["red", "fast", "car"]
    assert snippet.startswith("… ") and snippet.endswith(" …")
    assert len(snippet) <= SNIPPET_CHARS + 4


def test_accents_and_ligatures() -> None:
    assert _marked("Une Crème brûlée", "creme brulee")[1] == ["Crème", "brûlée"]
    assert _marked("In der Hauptstraße 5", "hauptstrasse")[1] == ["Hauptstraße"]


def test_unspaced_scripts() -> None:
    snippet, marked = _marked("私は東京に住んでいます。", "東京")
    assert snippet == "私は東京に住んでいます。"
    assert marked == ["東京"]


def test_without_a_match_the_description_or_the_beginning() -> None:
    highlighter = Highlighter.of(["nothing"])
    assert make_snippet("Some text.", highlighter, otherwise="About it.") == ("About it.", ())
    assert make_snippet("Some text.", None) == ("Some text.", ())
    beginning, ranges = make_snippet("word " * 200, highlighter)
    assert beginning.endswith(" …") and len(beginning) <= SNIPPET_CHARS + 2 and ranges == ()


@given(st.text(max_size=400), st.text(max_size=20))
def test_ranges_lie_in_the_snippet(text: str, query: str) -> None:
    snippet, ranges = make_snippet(prepare(text), Highlighter.of(tokenize(query)))
    assert SEPARATOR not in snippet
    assert all(0 <= start < end <= len(snippet) for start, end in ranges)
    assert list(ranges) == sorted(ranges)
