from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import tantivy
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.index.analysis import MAX_WORD_BYTES, build_analyzer, prepare, restore, tokenize


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Crème BRÛLÉE", ["creme", "brulee"]),
        ("cre\u0300me", ["creme"]),  # decomposed
        ("Straße ÆON İstanbul", ["strasse", "aeon", "istanbul"]),
        ("foo_bar e-mail don't 3.14", ["foo", "bar", "e", "mail", "don", "t", "3", "14"]),
        ("a_b.c\x01d", ["a", "b", "c", "d"]),
        ("日本語 and ภาษา", ["日", "本", "語", "and", "ภ", "า", "ษ", "า"]),
        ("Юлия Ελλάδα", ["юлия", "ελλάδα"]),
        ("x" * MAX_WORD_BYTES + " " + "y" * (MAX_WORD_BYTES + 1), ["x" * MAX_WORD_BYTES]),
        ("bad \ud800surrogate", ["bad", "surrogate"]),
        ("", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert tokenize(text) == words


def _indexed_words(texts: list[str]) -> list[set[str]]:
    """What a real index holds for each text: its term dictionary, filtered by document."""
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("n", indexed=True, fast=True)
    builder.add_text_field("text", tokenizer_name="words", index_option="position")
    schema = builder.build()
    index = tantivy.Index(schema)
    index.register_tokenizer("words", build_analyzer())
    with index.writer(15_000_000, 1) as writer:
        for number, text in enumerate(texts):
            writer.add_document(tantivy.Document.from_dict({"n": number, "text": prepare(text)}, schema))
        writer.commit()
    index.reload()
    searcher = index.searcher()
    return [
        {
            term
            for term, _ in searcher.terms_with_prefix(
                "text", "", filter_query=tantivy.Query.term_query(schema, "n", number)
            )
        }
        for number in range(len(texts))
    ]


@given(st.lists(st.text(max_size=60), min_size=1, max_size=20))
def test_tokens_are_those_of_a_real_index(texts: list[str]) -> None:
    assert _indexed_words(texts) == [set(tokenize(text)) for text in texts]


def test_tokens_of_real_pages_are_those_of_a_real_index(shared_data: Path) -> None:
    with gzip.open(shared_data / "mdn" / "base.jsonl.gz", "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"][:3000] for line, _ in zip(lines, range(100), strict=False)]
    assert _indexed_words(texts) == [set(tokenize(text)) for text in texts]


@given(st.text())
def test_prepared_text_is_read_as_it_was(text: str) -> None:
    shown = restore(prepare(text))
    assert restore(prepare(shown)) == shown
    assert tokenize(shown) == tokenize(text)
