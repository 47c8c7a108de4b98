"""What a page's URL and anchors say of it before it is fetched: its words, its directory, what pages like it had."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from bowerbird.appraise.frontier.graph import BoolArray, IntArray
from bowerbird.appraise.frontier.link_features import Columns, shrink
from bowerbird.model.page_words import BREAK, PageWords
from bowerbird.model.workload import Workload

FloatArray = npt.NDArray[np.float64]

HASHED = 2**16
RIDGE = 3.0
MOST_TAUGHT = 60_000  # pages that the model of names learns from
_PRIOR = 3.0  # pages that a word's or a directory's own level must outweigh


@dataclass(frozen=True, slots=True)
class Names:
    """The words of pages as matrices, made once for a crawl."""

    words: sp.csr_matrix  # pages × vocabulary, 1 where the page has the word
    spelling: sp.csr_matrix  # vocabulary × hashed runs of letters; rows of length 1
    lengths: FloatArray  # words a page, breaks included
    digits: FloatArray  # words that have a digit, a page
    asked: FloatArray | None  # by word, how often it is asked for


def read_names(words: PageWords, workload: Workload | None) -> Names:
    """Take the words of pages apart."""
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

    size = max(len(words.vocabulary), 1)
    owner = np.repeat(np.arange(len(words), dtype=np.int64), np.diff(words.starts))
    kept = words.words != BREAK
    keys = np.unique(owner[kept] * size + words.words[kept])
    matrix = sp.csr_matrix(
        (np.ones(len(keys), dtype=np.float32), (keys // size, keys % size)), shape=(len(words), size)
    )
    hashing = HashingVectorizer(
        analyzer="char_wb", ngram_range=(2, 5), n_features=HASHED, alternate_sign=False, norm=None, dtype=np.float32
    )
    vocabulary = words.vocabulary or ("",)
    spelling = TfidfTransformer(sublinear_tf=True).fit_transform(hashing.transform(vocabulary))
    digits = np.array([any(letter.isdigit() for letter in word) for word in vocabulary], dtype=np.float64)
    asked = None
    if workload is not None and len(workload):
        often = dict(zip(workload.terms, workload.term_frequency().tolist(), strict=True))
        asked = np.log1p(np.array([often.get(word, 0.0) for word in vocabulary]))
    return Names(matrix, spelling.tocsr(), np.diff(words.starts).astype(np.float64), matrix @ digits, asked)


def describe_names(names: Names, clicks: FloatArray, labelled: BoolArray, rng: np.random.Generator) -> Columns:
    """By page: how its words and spelling did on labelled pages, how common and how asked for they are."""
    logs = np.log1p(np.where(labelled, clicks, 0.0))
    level = float(logs[labelled].mean()) if labelled.any() else 0.0
    holding = names.words.T @ labelled.astype(np.float64)
    worth = shrink(names.words.T @ (logs * labelled), holding, level, _PRIOR)
    columns = {"words": names.lengths, "words with digits": names.digits}
    columns |= _sum_up(names.words, "word clicks", worth)
    columns |= {"words known": _sum_up(names.words, "", np.log1p(holding))[" mean"]}
    columns["spelling"] = _read_spelling(names, logs, labelled, rng)
    if names.asked is not None:
        columns |= _sum_up(names.words, "asked", names.asked)
    return columns


def describe_directories(groups: tuple[IntArray, ...], clicks: FloatArray, labelled: BoolArray) -> Columns:
    """By page: how the labelled pages of its directories did, shrunk."""
    known = np.where(labelled, clicks, 0.0)
    columns: Columns = {}
    for place, group in enumerate(groups):
        size = int(group.max()) + 1 if len(group) else 0
        pages = np.bincount(group[labelled], minlength=size)[group].astype(np.float64)
        columns[f"directory {place}: pages"] = pages
        for name, value in (("log clicks", np.log1p(known)), ("root clicks", np.sqrt(known))):
            total = np.bincount(group[labelled], weights=value[labelled], minlength=size)[group].astype(np.float64)
            mean = float(value[labelled].mean()) if labelled.any() else 0.0
            columns[f"directory {place}: {name}"] = shrink(total, pages, mean, _PRIOR)
    return columns


def _sum_up(words: sp.csr_matrix, name: str, values: FloatArray) -> Columns:
    """Mean, greatest and least over a page's words."""
    counts = np.diff(words.indptr)
    some = counts > 0
    mean, high, low = np.zeros(len(counts)), np.zeros(len(counts)), np.zeros(len(counts))
    if some.any():
        each, starts = values[words.indices], words.indptr[:-1][some]
        mean[some] = np.add.reduceat(each, starts) / counts[some]
        high[some] = np.maximum.reduceat(each, starts)
        low[some] = np.minimum.reduceat(each, starts)
    return {f"{name} mean": mean, f"{name} high": high, f"{name} low": low}


def _read_spelling(names: Names, logs: FloatArray, labelled: BoolArray, rng: np.random.Generator) -> FloatArray:
    """A ridge regression of log clicks on the letters of words: what pages with such names have.

    It is linear, so that each word has a value of its own, and a page the mean of its words'.
    """
    from sklearn.linear_model import Ridge

    taught = np.flatnonzero(labelled & (np.diff(names.words.indptr) > 0))
    if len(taught) < 50:
        return np.zeros(len(logs))
    if len(taught) > MOST_TAUGHT:
        taught = np.sort(rng.choice(taught, MOST_TAUGHT, replace=False))
    scale = sp.diags(1.0 / np.sqrt(np.maximum(np.diff(names.words.indptr), 1)).astype(np.float32))
    pages = scale @ names.words
    model = Ridge(alpha=RIDGE, solver="sparse_cg", tol=1e-3, max_iter=60)
    model.fit(pages[taught] @ names.spelling, logs[taught])
    by_word = names.spelling @ model.coef_
    read: FloatArray = np.asarray(pages @ by_word, dtype=np.float64) + float(model.intercept_)
    return read
