"""Files of lab data: every format reads the same, bad lines are told, what is no data is refused."""

from __future__ import annotations

import gzip
import io
import tarfile
import time
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.toy import write_toy_data

from bowerbird.lab.data_files import Column, find_file, read_columns
from bowerbird.lab.frontier_data import read_frontier_data
from bowerbird.model.errors import InputFileError

PAGE = Column(("page", "slug"), 0)
CLICKS = Column(("clicks", "views"), 1, number=True)
TITLE = Column(("title",), 2, optional=True)


def write(path: Path, text: str) -> Path:
    data = text.encode("utf-8")
    if path.suffix == ".gz":
        data = gzip.compress(data)
    elif path.suffix == ".zst":
        data = zstandard.compress(data)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.tsv", 'page\tclicks\na b\t3\n"c\t4.5\n'),
        ("c.tsv", 'a b\t3\r\n"c\t4.5'),
        ("c.tsv.gz", '# a comment\n\n# another\na b\t3\n"c\t4.5\n'),
        ("c.tsv.zst", 'VIEWS\tother\tSlug\n3\tx\ta b\n4.5\ty\t"c\n'),
        ("c.csv", 'page,clicks\na b,3\n"""c",4.5\n'),
        ("c.csv.gz", 'a b;3\n"""c";4.5\n'),
        ("c.txt", 'a b,3\n"""c",4.5\n'),
        ("c.tsv", '\ufeffpage\tclicks\na b\t3\n\n"c\t4.5\n'),
    ],
)
def test_every_way_to_write_it_reads_the_same(tmp_path: Path, name: str, text: str) -> None:
    table = read_columns(write(tmp_path / name, text), (PAGE, CLICKS, TITLE))
    assert table.texts == {"page": ["a b", '"c']}
    assert table.numbers["clicks"].tolist() == [3.0, 4.5]
    assert (table.rows, table.bad, table.note()) == (2, 0, "")


def test_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"views": [3, 4, None], "slug": ["a", "b", "c"], "more": [1.5, 2.5, 3.5]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "named.parquet")
    table = read_columns(tmp_path / "named.parquet", (PAGE, CLICKS))
    assert table.texts["page"] == ["a", "b"]
    assert table.numbers["clicks"].tolist() == [3.0, 4.0]
    assert "line 3: no clicks" in table.note()
    parquet.write_table(pyarrow.table({"x": ["a", "b"], "y": [1, 2]}), tmp_path / "placed.parquet")
    assert read_columns(tmp_path / "placed.parquet", (PAGE, CLICKS)).numbers["clicks"].tolist() == [1.0, 2.0]
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(InputFileError, match=r"broken.parquet: cannot be read as Parquet"):
        read_columns(tmp_path / "broken.parquet", (PAGE, CLICKS))
    parquet.write_table(pyarrow.table({"x": ["a", "b"]}), tmp_path / "few.parquet")
    with pytest.raises(InputFileError, match="1 columns where 2 are needed"):
        read_columns(tmp_path / "few.parquet", (PAGE, CLICKS))


def test_bad_lines_are_left_out_and_told(tmp_path: Path) -> None:
    path = tmp_path / "clicks.tsv"
    good = "".join(f"page{n}\t{n}\n" for n in range(10))
    path.write_bytes(b"page\tclicks\n" + good.encode() + b"alone\n\xff\xfe\t3\nx\tmany\ny\t-1\nz\tnan\n\t5\n")
    table = read_columns(path, (PAGE, CLICKS))
    assert (table.rows, table.bad) == (10, 6)
    assert table.texts["page"] == [f"page{n}" for n in range(10)]
    assert table.numbers["clicks"].sum() == 45
    assert table.note().startswith("clicks.tsv: 6 of 17 lines were bad and left out (")
    assert "line 12: 1 columns where 2 are needed (page, clicks)" in table.note()
    assert "line 13: not UTF-8 at byte 1" in table.note()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no rows"),
        ("# only a comment\n", "holds no rows"),
        ("page\tclicks\n", "holds no rows"),
        ("page\tother\na\t3\n", r"no column clicks or views in its header \(page, other\)"),
        ("a\tmany\nb\tmore\nc\t3\n", r"line 1: clicks is 'many', no number of 0 or more\. 2 of 3 lines are bad"),
        ("a,3\nb,4\n", "line 1: 1 columns where 2 are needed"),
    ],
)
def test_what_is_no_data_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputFileError, match=f"clicks.tsv.*{said}"):
        read_columns(write(tmp_path / "clicks.tsv", text), (PAGE, CLICKS))


@pytest.mark.parametrize("mark", [",", ";"])
def test_a_quote_that_is_not_closed_costs_its_line_only(tmp_path: Path, mark: str) -> None:
    rows = [f"p{n}{mark}{n}" for n in range(30_000)]  # more than the csv module takes into one cell
    rows[5], rows[7] = f'"lone{mark}5', f'"two\nlines"{mark}7'
    rows[9] = f'a"b{mark}9'
    rows[29_998] = f'"late{mark}5'
    table = read_columns(write(tmp_path / "clicks.csv", "\n".join(rows) + "\n"), (PAGE, CLICKS))
    assert (table.rows, table.bad) == (29_998, 2)
    assert table.texts["page"][5:9] == ["p6", "two\nlines", "p8", 'a"b']
    assert f"line 6: a quote in '\"lone{mark}5' is not closed; line 30000: " in table.note()
    assert read_columns(write(tmp_path / "q.csv", f'"page"{mark}"clicks"\na{mark}3\n'), (PAGE, CLICKS)).rows == 1


def test_numbers_have_an_upper_bound(tmp_path: Path) -> None:
    table = read_columns(write(tmp_path / "clicks.tsv", "a\t1e308\nb\t1e15\nc\t3\n"), (PAGE, CLICKS))
    assert table.numbers["clicks"].tolist() == [1e15, 3.0]
    assert "line 1: clicks is '1e308', no number from 0 to 1e+15" in table.note()


def test_a_name_in_the_first_line_makes_no_header(tmp_path: Path) -> None:
    query, frequency = Column(("query", "q"), 0), Column(("frequency", "n"), 1, number=True)
    for text, rows in (("q\t1\nb\t2\n", 2), ("q\tn\nb\t2\n", 1), ("n\tq\n2\tb\n", 1), ("q\tnan\nb\t2\n", 1)):
        table = read_columns(write(tmp_path / "queries.tsv", text), (query, frequency))
        assert (table.rows, table.texts["query"][-1]) == (rows, "b")
    source, target = Column(("source", "from"), 0), Column(("target", "to"), 1)
    for text, count in (("from\tTo\na\tb\n", 1), ("from\tHell\na\tb\n", 2)):
        assert read_columns(write(tmp_path / "links.tsv", text), (source, target)).rows == count


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="cannot be read"):
        read_columns(tmp_path / "none.tsv", (PAGE, CLICKS))
    (tmp_path / "cut.tsv.gz").write_bytes(gzip.compress(b"a\t3\n" * 1000)[:-20])
    with pytest.raises(InputFileError, match="damaged gzip data"):
        read_columns(tmp_path / "cut.tsv.gz", (PAGE, CLICKS))


def test_a_file_is_found_in_any_format(tmp_path: Path) -> None:
    assert find_file(tmp_path, "links") is None
    (tmp_path / "links.tsv.zst").touch()
    (tmp_path / "links.tsv.bak").touch()
    assert find_file(tmp_path, "links") == tmp_path / "links.tsv.zst"
    (tmp_path / "links.parquet").touch()
    with pytest.raises(InputFileError, match=r"links.tsv.zst and links.parquet are both there"):
        find_file(tmp_path, "links")


def test_half_a_million_lines_are_read_quickly(tmp_path: Path) -> None:
    count = 500_000
    write(tmp_path / "clicks.tsv.gz", "".join(f"page_{n}\t{n % 97}\n" for n in range(count)))
    best = 1e9
    for _ in range(2):  # the machine may be busy
        began = time.perf_counter()
        table = read_columns(tmp_path / "clicks.tsv.gz", (PAGE, CLICKS))
        best = min(best, time.perf_counter() - began)
    assert table.rows == count
    assert best < 4.0  # the aim is 2 on a quiet machine


CELLS = st.text(st.characters(exclude_characters="\t\r\n", exclude_categories=("Cs",)), min_size=1, max_size=8)


@given(rows=st.lists(st.tuples(CELLS, st.integers(0, 10**9)), min_size=1, max_size=20))
def test_what_was_written_is_read(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, int]]) -> None:
    path = tmp_path_factory.mktemp("written") / "clicks.tsv"
    write(path, "page\tclicks\n" + "".join(f"{page}\t{clicks}\n" for page, clicks in rows))
    table = read_columns(path, (PAGE, CLICKS))
    assert list(zip(table.texts["page"], table.numbers["clicks"].tolist(), strict=True)) == rows


# Frontier data


def test_a_small_folder(tmp_path: Path) -> None:
    folder = write_toy_data(tmp_path / "toy", pages=10)
    data = read_frontier_data("toy", folder)
    assert data.pages == tuple(f"p{n:03}" for n in range(10))
    assert len(data.sources) == 30
    assert data.clicks.tolist() == [1000 // (n + 1) for n in range(10)]
    facts = data.describe()
    assert (facts["data"], facts["pages"]) == ("toy", 10)
    assert data.texts is None
    assert data.titles is None


def test_links_are_distinct_and_pages_are_all_that_is_named(tmp_path: Path) -> None:
    write(tmp_path / "links.csv", "from,to,anchor\nb,a,see a\nb,a,see a\nb,a,\na,a,me\nc,b,the b\nbad\n")
    write(tmp_path / "search_clicks.tsv", "z\t5\na\t2\na\t3\n")
    write(tmp_path / "articles.tsv", "# all of them\nlonely\n")
    data = read_frontier_data("own", tmp_path)
    assert data.pages == ("a", "b", "c", "lonely", "z")
    assert list(zip(data.sources.tolist(), data.targets.tolist(), strict=True)) == [(1, 0), (2, 1)]
    assert data.clicks.tolist() == [5, 0, 0, 0, 5]
    assert data.anchors == ((0, "me"), (0, "see a"), (1, "the b"))
    said = (
        "links.csv: 1 of 7 lines were bad and left out (line 7: 1 columns where 3 are needed (source, target, anchor))."
    )
    assert data.notes == (said,)


def test_clicks_on_links_are_those_into_a_page(tmp_path: Path) -> None:
    write(tmp_path / "links.tsv", "a\tb\n")
    write(tmp_path / "click_edges.tsv", "a\tb\t3\nc\tb\t4\n")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as out:
        for name, body in (("html/a/a.htm", b"<p>A\xff"), ("html/b/other.htm", b"no"), ("html/b/b.txt", b"no")):
            member = tarfile.TarInfo(name)
            member.size = len(body)
            out.addfile(member, io.BytesIO(body))
    (tmp_path / "html.tar.gz").write_bytes(packed.getvalue())
    data = read_frontier_data("own", tmp_path)
    assert data.pages == ("a", "b", "c")
    assert data.clicks.tolist() == [0, 7, 0]
    assert data.texts is not None
    assert data.texts() == ("<p>A\ufffd", "", "")
    assert data.texts_are == "html"
    (tmp_path / "html.tar.gz").write_bytes(packed.getvalue()[:60])
    with pytest.raises(InputFileError, match="cannot be unpacked"):
        data.texts()


def test_pages_with_views_and_texts(tmp_path: Path) -> None:
    write(tmp_path / "links.tsv.gz", "src_slug\tdst_slug\tkind\tcount\nA\tB\ttext\t1\n")
    write(
        tmp_path / "pages.tsv.gz",
        "path\tslug\ttitle\tviews_2022\tviews_2024\nf/a.md\tA\tThe A\t1\t0.5\nf/b.md\tB\t\t0\t1\n",
    )
    write(tmp_path / "base.jsonl.gz", '{"path": "f/b.md", "text": "# B"}\n{"path": "f/gone.md", "text": "x"}\n')
    data = read_frontier_data("docs", tmp_path)
    assert data.clicks.tolist() == [5e4, 1e5]
    assert data.titles == ("The A", "")
    assert data.texts is not None
    assert data.texts() == ("", "# B")
    write(tmp_path / "base.jsonl.gz", '{"path": "f/b.md"}\n')
    with pytest.raises(InputFileError, match=r"base.jsonl.gz, line 1: not a record"):
        data.texts()


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "no links.tsv"),
        ({"links.tsv": "a\tb\n"}, "no clicks. One of clicks.tsv"),
        ({"links.tsv": "a\tb\n", "clicks.tsv": "a\t0\n"}, "no page has any clicks"),
        ({"links.tsv": "a\ta\n", "clicks.tsv": "a\t1\n"}, "every link leads from a page to itself"),
    ],
)
def test_folders_that_are_no_data(tmp_path: Path, files: dict[str, str], said: str) -> None:
    for name, text in files.items():
        write(tmp_path / name, text)
    with pytest.raises(InputFileError, match=said):
        read_frontier_data("own", tmp_path)


@pytest.mark.parametrize(
    ("name", "pages", "links", "clicks"),
    [("hrwiki", 77166, 50993, 11367113), ("mdn", 12090, 110310, None), ("wikispeedia", 4604, 119772, 345411)],
)
def test_the_shared_data(shared_data: Path, name: str, pages: int, links: int, clicks: int | None) -> None:
    data = read_frontier_data(name, shared_data / name)
    assert (data.count, len(data.sources)) == (pages, links)
    assert list(data.pages) == sorted(set(data.pages))
    assert (data.sources != data.targets).all()
    assert data.notes == ()
    if clicks is None:
        assert data.clicks.max() == 93303
        assert np.count_nonzero(data.clicks) == 7529
    else:
        assert data.clicks.sum() == clicks
