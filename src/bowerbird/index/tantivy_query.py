"""A parsed query as the engine understands it: every clause in any field, its scores added up by weight."""

from __future__ import annotations

import tantivy

from bowerbird.index.query import Clause, ParsedQuery

FIELD_WEIGHTS = {"title": 3.0, "anchors": 2.0, "url_words": 1.5, "text": 1.0}
_MUST, _SHOULD, _NOT = tantivy.Occur.Must, tantivy.Occur.Should, tantivy.Occur.MustNot


def drop_surrogates(text: str) -> str:
    """The text without what cannot be encoded."""
    return text if text.isascii() else text.encode("utf-8", "ignore").decode()


def _anywhere(schema: tantivy.Schema, clause: Clause) -> tantivy.Query:
    """The clause in any field, its scores in them added up by weight."""
    words: list[str | tuple[int, str]] = list(clause.words)
    return tantivy.Query.boolean_query(
        [
            (
                _SHOULD,
                tantivy.Query.boost_query(
                    tantivy.Query.term_query(schema, name, words[0], "freq")
                    if len(words) == 1
                    else tantivy.Query.phrase_query(schema, name, words),
                    weight,
                ),
            )
            for name, weight in FIELD_WEIGHTS.items()
        ]
    )


def _one_of(schema: tantivy.Schema, name: str, values: tuple[str, ...]) -> tantivy.Query:
    terms = [(_SHOULD, tantivy.Query.term_query(schema, name, drop_surrogates(value), "basic")) for value in values]
    return tantivy.Query.const_score_query(tantivy.Query.boolean_query(terms), 0.0)


def _conditions(schema: tantivy.Schema, parsed: ParsedQuery) -> list[tuple[tantivy.Occur, tantivy.Query]]:
    parts = [(_NOT, _anywhere(schema, clause)) for clause in parsed.unwanted]
    if parsed.sites:
        parts.append((_MUST, _one_of(schema, "site", parsed.sites)))
    if parsed.unwanted_sites:
        parts.append((_NOT, _one_of(schema, "site", parsed.unwanted_sites)))
    if parsed.languages:
        parts.append((_MUST, _one_of(schema, "language", parsed.languages)))
    return parts


def every_clause(schema: tantivy.Schema, parsed: ParsedQuery) -> tantivy.Query:
    """Pages with all that is wanted."""
    wanted = [(_MUST, _anywhere(schema, clause)) for clause in parsed.wanted]
    return tantivy.Query.boolean_query(wanted + _conditions(schema, parsed))


def some_clause(
    schema: tantivy.Schema, parsed: ParsedQuery, loose: tuple[Clause, ...], strict: tantivy.Query
) -> tantivy.Query:
    """Pages with some of it, beyond those that have all."""
    some = tantivy.Query.boolean_query([(_SHOULD, _anywhere(schema, clause)) for clause in loose])
    return tantivy.Query.boolean_query([(_MUST, some), (_NOT, strict), *_conditions(schema, parsed)])
