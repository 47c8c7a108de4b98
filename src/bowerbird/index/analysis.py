"""How text becomes the words that are indexed; one way for all languages, without stemming.

A word is a run of letters and digits, without accents where a plain letter stands for it, in lower case,
of at most 80 bytes (40 letters of Greek, Cyrillic or Arabic). Scripts that do not put spaces between words
(Chinese, Japanese, Thai, Khmer…) are indexed letter by letter; a query in them becomes a phrase.
"""

from __future__ import annotations

import re
import unicodedata

import tantivy

MAX_WORD_BYTES = 80
#: Put around each letter of an unspaced script. Not a letter, so the analyser splits there; never shown.
SEPARATOR = "\x01"

_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]+"
)
#: First bytes of the UTF-8 forms of those letters, and of the accents that can be composed with a letter.
#: Deleting all others is a quick test: most texts have none of them.
LEADS = bytes([0xCC, 0xCD, 0xE0, 0xE1, *range(0xE3, 0xEA), 0xEF, 0xF0])
_OTHER_BYTES = bytes(b for b in range(256) if b not in LEADS)


def build_analyzer() -> tantivy.TextAnalyzer:
    """The analyser of every text field."""
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(tantivy.Filter.ascii_fold())
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.remove_long(MAX_WORD_BYTES + 1))
        .build()
    )


_ANALYZER = build_analyzer()


def prepare(text: str) -> str:
    """The text in the form that is given to the engine: valid, composed (NFC), unspaced scripts separated."""
    if SEPARATOR in text:
        text = text.replace(SEPARATOR, " ")
    if text.isascii():
        return text
    try:
        encoded = text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        encoded = text.encode("utf-8", "ignore")
        text = encoded.decode()
    if encoded.translate(None, _OTHER_BYTES):
        text = _UNSPACED.sub(_separate, unicodedata.normalize("NFC", text))
    return text


def restore(prepared: str) -> str:
    """The text as people read it, from its prepared form."""
    return prepared.replace(SEPARATOR, "")


def tokenize(text: str) -> list[str]:
    """The words of a text, exactly as the index has them.

    >>> tokenize("Crème brûlée, 2nd e-mail")
    ['creme', 'brulee', '2nd', 'e', 'mail']
    >>> tokenize("東京 Tokyo")
    ['東', '京', 'tokyo']
    """
    words: list[str] = _ANALYZER.analyze(prepare(text))
    return words


def _separate(run: re.Match[str]) -> str:
    return SEPARATOR + SEPARATOR.join(run.group()) + SEPARATOR
