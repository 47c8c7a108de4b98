"""Tables of other programs: what can be read, and what is said of the rest."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.library.arrow_names import encode_names, number_hosts, order_by_appearance
from bowerbird.library.plain_names import join_columns, list_names, number_origins
from bowerbird.library.tables import open_names, open_table
from bowerbird.model.errors import TableError

Maker = Callable[[dict[str, list[Any]]], Any]


class OnlyInterchange:
    """A data frame of an older library."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self._table = pa.table(columns)

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any:
        return self._table.__dataframe__(nan_as_null, allow_copy)


MAKERS: dict[str, Maker] = {
    "lists": dict,
    "tuples": lambda columns: {name: tuple(column) for name, column in columns.items()},
    "arrays": lambda columns: {name: np.array(column) for name, column in columns.items()},
    "objects": lambda columns: {name: np.array(column, dtype=object) for name, column in columns.items()},
    "pandas": pd.DataFrame,
    "pandas-categories": lambda columns: pd.DataFrame(columns).astype({"page": "category"}),
    "pandas-objects": lambda columns: pd.DataFrame(columns).astype({"page": object}),
    "polars": pl.DataFrame,
    "polars-categories": lambda columns: pl.DataFrame(columns).with_columns(pl.col("page").cast(pl.Categorical)),
    "arrow": pa.table,
    "arrow-large": lambda columns: pa.table({**columns, "page": pa.array(columns["page"], pa.large_string())}),
    "arrow-chunks": lambda columns: pa.concat_tables([pa.table(columns).slice(0, 1), pa.table(columns).slice(1)]),
    "arrow-reader": lambda columns: pa.table(columns).to_reader(),
    "interchange": OnlyInterchange,
    "series": lambda columns: {name: pl.Series(column) for name, column in columns.items()},
    "mixed": lambda columns: {"page": pa.array(columns["page"]), "clicks": pd.Series(columns["clicks"])},
}
COLUMNS: dict[str, list[Any]] = {"page": ["b", "a", "b", "é/1"], "clicks": [3.0, 0.5, 2.0, 0.0]}


@pytest.mark.parametrize("kind", MAKERS)
def test_every_kind_of_table_is_read_alike(kind: str) -> None:
    table = open_table("clicks", MAKERS[kind](COLUMNS))
    assert table.count == 4
    assert list_names(table.names(("page",))) == COLUMNS["page"]
    assert table.numbers(("clicks",)).tolist() == COLUMNS["clicks"]


@pytest.mark.parametrize("kind", sorted(MAKERS))
def test_names_are_numbered_as_they_come_up(kind: str) -> None:
    joined = join_columns([open_table("clicks", MAKERS[kind](COLUMNS)).names(("page",)), ["x", "a"]])
    assert [column.tolist() for column in joined.columns] == [[0, 1, 0, 2], [3, 1]]
    assert joined.names_of(np.arange(4)) == ["b", "a", "é/1", "x"]


def test_a_dictionary_in_another_order_does_not_change_the_numbers() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([2, 0, 2], pa.uint8()), pa.array(["a", "unused", "b"]))
    joined = join_columns([encode_names(pa.chunked_array([column])), ["a"]])
    assert joined.names_of(joined.columns[0]) == ["b", "a", "b"]
    assert joined.columns[0].tolist() == [0, 1, 0]


@given(st.lists(st.lists(st.integers(0, 5)), min_size=1, max_size=4))
def test_the_order_of_appearance_is_that_of_a_dictionary(columns: list[list[int]]) -> None:
    seen = list(dict.fromkeys(number for column in columns for number in column))
    dense = {number: place for place, number in enumerate(sorted(seen))}
    arrays = [np.array([dense[number] for number in column], dtype=np.int64) for column in columns]
    assert order_by_appearance(arrays, len(seen)).tolist() == [dense[number] for number in seen]


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
URLS = st.builds(lambda host, path: f"https://{host}/{path}", st.sampled_from(["a", "b", "B:80", "a\nb"]), NAMES)


@given(st.lists(NAMES | URLS, min_size=1, max_size=20))
def test_with_arrow_and_without_it_names_and_hosts_are_the_same(names: list[str]) -> None:
    plain = join_columns([names, names[:1]])
    arrow = join_columns([encode_names(pa.chunked_array([pa.array(names)])), names[:1]])
    assert [column.tolist() for column in plain.columns] == [column.tolist() for column in arrow.columns]
    assert plain.names_of(plain.columns[0]) == arrow.names_of(arrow.columns[0]) == names
    assert number_origins(names).tolist() == number_hosts(pa.array(names)).tolist()


def test_whole_numbers_are_names_too() -> None:
    for column in ([7, 30, 7], np.array([7, 30, 7]), pa.array([7, 30, 7]), pd.Series([7, 30, 7], dtype="category")):
        assert list_names(open_names("crawled", {"page": column}, ("page",))) == ["7", "30", "7"]


def test_names_by_themselves_are_a_column() -> None:
    for names in (["a", "b"], ("a", "b"), np.array(["a", "b"]), pd.Series(["a", "b"]), pl.Series(["a", "b"])):
        assert list_names(open_names("crawled", names, ("page", "url"))) == ["a", "b"]
    for table in ({"url": ["a", "b"]}, pd.DataFrame({"url": ["a", "b"]}), pa.table({"url": ["a", "b"]})):
        assert list_names(open_names("crawled", table, ("page", "url"))) == ["a", "b"]


def test_columns_are_found_by_other_names_and_in_large_letters() -> None:
    table = open_table("clicks", {"URL": ["a"], "Views": [2], "more": [None]})
    assert (table.find(("page", "url")), table.find(("clicks", "views"))) == ("URL", "Views")


MOMENT = datetime(2024, 5, 6, 7, 8, 9, 500_000, tzinfo=UTC)
HERE = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    "column",
    [
        [MOMENT.timestamp(), None],
        [MOMENT, None],
        [MOMENT.astimezone(HERE), None],
        [MOMENT.replace(tzinfo=None), None],
        np.array([MOMENT.timestamp(), np.nan]),
        np.array([MOMENT.replace(tzinfo=None), "NaT"], dtype="datetime64[ms]"),
        pa.array([MOMENT, None]),
        pa.array([MOMENT, None], pa.timestamp("ns", "Europe/Zagreb")),
        pa.array([MOMENT.replace(tzinfo=None), None], pa.timestamp("ms")),
        pd.Series([MOMENT, pd.NaT]),
        pl.Series([MOMENT, None]),
    ],
)
def test_times_of_any_type_are_seconds(column: Any) -> None:
    times = open_table("pages", {"at": column}).times(("at",))
    assert times[0] == MOMENT.timestamp()
    assert np.isnan(times[1])


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (None, "clicks: a NoneType is no table. Give a table of PyArrow, Polars or pandas"),
        (["a", "b"], "clicks: a list is no table"),
        ({}, "clicks: has no column page (or url); it has none. Rename"),
        ({"pagina": ["a"], "clicks": [1]}, "clicks: has no column page (or url); it has pagina, clicks. Rename"),
        ({"page": ["a"]}, "clicks: has no column clicks; it has page."),
        ({"page": ["a", "b"], "clicks": [1]}, "clicks: its columns are not of one length: page 2, clicks 1."),
        ({"page": ["a", None], "clicks": [1, 2]}, "clicks: row 1: page is empty. Leave such rows out."),
        ({"page": ["a", ""], "clicks": [1, 2]}, "clicks: row 1: page is empty."),
        ({"page": ["a", float("nan")], "clicks": [1, 2]}, "clicks: row 1: page is empty."),
        (pa.table({"page": ["a", None], "clicks": [1, 2]}), "clicks: row 1: page is empty."),
        (pa.table({"page": ["a", ""], "clicks": [1, 2]}), "clicks: row 1: page is empty."),
        (pd.DataFrame({"page": ["a", None], "clicks": [1, 2]}), "clicks: row 1: page is empty."),
        (pl.DataFrame({"page": ["a", None], "clicks": [1, 2]}), "clicks: row 1: page is empty."),
        ({"page": [1.5], "clicks": [1]}, "clicks: column page holds float, where text or whole numbers are needed."),
        ({"page": np.array([1.5]), "clicks": [1]}, "clicks: column page holds float64, where text or whole"),
        ({"page": [True], "clicks": [1]}, "clicks: column page holds bool"),
        ({"page": [b"a"], "clicks": [1]}, "clicks: column page holds bytes"),
        (pa.table({"page": [1.5], "clicks": [1]}), "clicks: column page holds double, where text or whole"),
        (pa.table({"page": [b"a"], "clicks": [1]}), "clicks: column page holds binary"),
        ({"page": ["a", pd.NA], "clicks": [1, 1]}, "clicks: column page holds NAType"),
        ({"page": ["a", "b\ud800"], "clicks": [1, 1]}, "clicks: row 1: page is 'b\\\\ud800', no text that UTF-8 has."),
        ({"page": [["a"]], "clicks": [1]}, "clicks: column page holds list"),
        ({"page": np.array([["a"]]), "clicks": [1]}, "clicks: column page has 2 dimensions. Give one value a row."),
        ({"page": "a", "clicks": [1]}, "clicks: column page has 0 dimensions."),
        ({"page": ["a"], "clicks": ["1"]}, "clicks: column clicks holds <U1, where numbers are needed. Convert it."),
        ({"page": ["a", "b"], "clicks": [1, "2"]}, "clicks: column clicks holds <U21, where numbers are needed."),
        ({"page": ["a"], "clicks": [True]}, "clicks: column clicks holds bool, where numbers are needed."),
        (pa.table({"page": ["a"], "clicks": ["1"]}), "clicks: column clicks holds string, where numbers"),
        ({"page": ["a", "b"], "clicks": [1, None]}, "clicks: row 1: clicks is empty, no number from 0 to 1e+15."),
        ({"page": ["a", "b"], "clicks": [1, float("nan")]}, "clicks: row 1: clicks is nan, no number from 0"),
        ({"page": ["a"], "clicks": np.array([-3])}, "clicks: row 0: clicks is -3, no number from 0 to 1e+15."),
        ({"page": ["a"], "clicks": [1e16]}, "clicks: row 0: clicks is 1e+16, no number from 0 to 1e+15."),
        (pa.table({"page": ["a", "b"], "clicks": [1, None]}), "clicks: row 1: clicks is empty, no number"),
        (pa.table({"page": ["a"], "clicks": [float("inf")]}), "clicks: row 0: clicks is inf, no number"),
        (pa.table({"page": ["a"], "clicks": pa.nulls(1)}), "clicks: row 0: clicks is empty, no number"),
        (pd.DataFrame({"page": ["a"], "clicks": [-1]}), "clicks: row 0: clicks is -1, no number"),
        (pl.DataFrame({"page": ["a", "b"], "clicks": [1.0, None]}), "clicks: row 1: clicks is empty, no number"),
        (pd.DataFrame({"page": ["a", 2], "clicks": [1, 1]}), "clicks: cannot be read as an Arrow table ("),
    ],
)
def test_what_is_wrong_is_said_with_table_row_and_remedy(table: Any, said: str) -> None:
    with pytest.raises(TableError) as told:
        opened = open_table("clicks", table)
        opened.names(("page", "url"))
        opened.numbers(("clicks",))
    assert said in str(told.value)
    assert str(told.value).endswith(".")


def test_decimals_and_categories_of_numbers_are_numbers() -> None:
    assert open_table("x", {"clicks": [Decimal("1.5"), 2]}).numbers(("clicks",)).tolist() == [1.5, 2.0]
    column = pa.array([Decimal("1.5"), Decimal("2.25")])
    assert open_table("x", pa.table({"clicks": column})).numbers(("clicks",)).tolist() == [1.5, 2.25]
    coded = pa.array([4, 4, 5]).dictionary_encode()
    assert open_table("x", pa.table({"clicks": coded})).numbers(("clicks",)).tolist() == [4, 4, 5]


def test_yes_and_no() -> None:
    for column in ([True, False], [1, 0], np.array([1, 0]), pa.array([True, False]), pl.Series([1, 0])):
        assert open_table("visits", {"changed": column}).flags(("changed",)).tolist() == [True, False]
    for column in ([2, 0], [None, True], ["yes", "no"], pa.array([True, None]), pa.array(["yes"]), [0.5, 1.0]):
        with pytest.raises(TableError, match="column changed must be true or false"):
            open_table("visits", {"changed": column}).flags(("changed",))


CELLS = st.one_of(
    st.none(),
    st.text(max_size=3),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.binary(max_size=2),
    st.datetimes(),
    st.dates(),
    st.decimals(),
    st.lists(st.integers(), max_size=2),
    st.just(pd.NA),
)


@given(
    st.lists(CELLS, max_size=4),
    st.sampled_from([list, tuple, np.array, lambda cells: np.array([*cells, None], dtype=object)[:-1], pa.array]),
)
def test_any_cells_are_read_or_refused_in_the_one_tree(cells: list[Any], make: Callable[[list[Any]], Any]) -> None:
    try:
        column = make(cells)
    except (ValueError, TypeError, OverflowError, pa.ArrowException):
        return  # no such array
    table_of = {"x": column}
    for read in ("names", "numbers", "times", "flags"):
        try:
            found = getattr(open_table("t", table_of), read)(("x",))
        except TableError as error:
            assert str(error).startswith("t: ")
        else:
            assert len(list_names(found) if read == "names" else found) == len(cells)


WITHOUT_ARROW = """
import sys
sys.modules["pyarrow"] = None
import numpy as np, polars as pl
import bowerbird
links = {"source": np.array(["a", "a", "b"]), "target": ["b", "x", "x"]}
clicks = {"page": ["a", "b"], "clicks": np.array([3, 1])}
first = bowerbird.rank(links, clicks)
assert first.columns()["page"].tolist() == ["x"], first
assert bowerbird.rank(pl.DataFrame(links), pl.DataFrame(clicks)).score.tolist() == first.score.tolist()
try:
    first.to_arrow()
except bowerbird.ConfigError as error:
    print(error)
"""


def test_without_pyarrow_mappings_work_and_the_extra_is_named() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_ARROW], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "pip install 'bowerbird[parquet]'" in done.stdout
