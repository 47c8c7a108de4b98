"""The brain alone: other people's graphs in, a ranking out."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from pyarrow import parquet
from tests.cli.conftest import Command

from bowerbird.appraise.frontier.graph import make_graph
from bowerbird.appraise.frontier.walk import enriched_walk
from bowerbird.cli.graph_files import read_graph

LINKS = [
    ("a", "b"),
    ("a", "new1"),
    ("b", "new1"),
    ("b", "new2"),
    ("c", "new2"),
    ("c", "new3"),
    ("a", "new1"),
    ("b", "b"),
]
CLICKS = [("a", 10), ("b", 3), ("c", 0)]
HEADER = "page\tscore\texpected_clicks\tin_links"


def write(path: Path, rows: list[tuple[object, ...]], header: str = "", mark: str = "\t") -> Path:
    text = "".join(f"{mark.join(map(str, row))}\n" for row in rows)
    content = ((header + "\n") if header else "") + text
    if path.suffix == ".zst":
        path.write_bytes(zstandard.compress(content.encode()))
        return path
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(content.encode()))
    else:
        path.write_text(content, encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return write(tmp_path / "links.tsv", LINKS), write(tmp_path / "clicks.tsv", CLICKS)


def ranked(out: str) -> list[list[str]]:
    lines = out.strip().splitlines()
    assert lines[0] == HEADER
    return [line.split("\t") for line in lines[1:]]


def test_the_frontier_is_ranked_with_its_in_links(files: tuple[Path, Path], command: Command) -> None:
    links, clicks = files
    ran = command("rank", "--links", links, "--clicks", clicks)
    assert ran.code == 0, ran.err
    rows = ranked(ran.out)
    assert [row[0] for row in rows] == ["new1", "new2", "new3"]
    assert [row[3] for row in rows] == ["2", "2", "1"]
    assert "6 pages, 6 distinct links, 3 crawled, 3 on the frontier" in ran.err
    assert "too little feedback" in ran.err


def test_scores_are_those_of_the_walk(files: tuple[Path, Path], command: Command) -> None:
    links, clicks = files
    ran = command("rank", "--links", links, "--clicks", clicks, "--method", "rw-eg", "--real-share", 0.3)
    pages = ["a", "b", "c", "new1", "new2", "new3"]
    number = {name: place for place, name in enumerate(pages)}
    graph = make_graph(
        [number[a] for a, _ in LINKS], [number[b] for _, b in LINKS], 6, np.array([1, 1, 1, 0, 0, 0], dtype=np.bool_)
    )
    walk = enriched_walk(graph, np.array([10.0, 3, 0, 0, 0, 0]), real_share=0.3)
    for name, score, *_ in ranked(ran.out):
        assert float(score) == pytest.approx(walk.values[number[name]] * 6 - 0.15, rel=1e-4)


@pytest.mark.parametrize(
    "form",
    ["tsv", "tsv.gz", "tsv.zst", "csv", "csv.gz", "semicolon", "parquet", "named", "commented", "shuffled"],
)
def test_all_formats_say_the_same(files: tuple[Path, Path], tmp_path: Path, command: Command, form: str) -> None:
    plain = command("rank", "--links", files[0], "--clicks", files[1], "--method", "rw").out
    links, clicks = tmp_path / f"l.{form}", tmp_path / f"c.{form}"
    if form == "parquet":
        a, b = zip(*LINKS, strict=True)
        parquet.write_table(pa.table({"rank": [0] * len(a), "target": list(b), "source": list(a)}), links)
        names, amounts = zip(*CLICKS, strict=True)
        parquet.write_table(pa.table({"page": list(names), "clicks": list(amounts)}), clicks)
    elif form == "named":
        links = write(tmp_path / "l.tsv", [(b, 1, a) for a, b in LINKS], "Target\tweight\tSource")
        clicks = write(tmp_path / "c.tsv", CLICKS, "title\tsearch clicks")
    elif form == "commented":
        links, clicks = (
            write(tmp_path / "l.txt", LINKS, "# links\n#\n"),
            write(tmp_path / "c.txt", CLICKS, "\ufeffurl\tn"),
        )
    elif form == "semicolon":
        links = write(tmp_path / "l.csv", LINKS, "source;target", mark=";")
        clicks = write(tmp_path / "c.csv.zst", CLICKS, mark=";")
    elif form == "shuffled":
        links, clicks = write(tmp_path / "l.tsv", LINKS[::-1]), write(tmp_path / "c.tsv", CLICKS[::-1])
    else:
        mark = "," if form.startswith("csv") else "\t"
        write(links, LINKS, mark=mark)
        write(clicks, CLICKS, mark=mark)
    ran = command("rank", "--links", links, "--clicks", clicks, "--method", "rw")
    assert ran.code == 0, ran.err
    assert ran.out == plain


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".tsv", ".csv.gz", ".tsv.gz"])
def test_the_result_can_be_written_to_a_file(
    files: tuple[Path, Path], tmp_path: Path, command: Command, ending: str
) -> None:
    out = tmp_path / f"ranking{ending}"
    ran = command("rank", "--links", files[0], "--clicks", files[1], "-n", 2, "--out", out)
    assert (ran.code, ran.out) == (0, "")
    assert f"{out}: 2 pages." in ran.err
    if ending == ".parquet":
        table = parquet.read_table(out).to_pydict()
        assert list(table) == HEADER.split("\t")
        assert table["page"] == ["new1", "new2"]
        assert table["in_links"] == [2, 2]
    else:
        content = gzip.decompress(out.read_bytes()) if ending.endswith(".gz") else out.read_bytes()
        quote, mark = ("", "\t") if ".tsv" in ending else ('"', ",")
        lines = content.decode().splitlines()
        assert lines[0] == mark.join(f"{quote}{name}{quote}" for name in HEADER.split("\t"))
        assert len(lines) == 3
        assert lines[1].startswith(f"{quote}new1{quote}{mark}0.")


def test_who_is_crawled_can_be_said(files: tuple[Path, Path], tmp_path: Path, command: Command) -> None:
    only = write(tmp_path / "crawled.txt", [("a",), ("c",)])
    ran = command("rank", "--links", files[0], "--clicks", files[1], "--crawled", only, "--method", "indegree")
    assert sorted(row[0] for row in ranked(ran.out)) == ["b", "new1", "new2", "new3"]
    assert "1 page with clicks not crawled" in ran.err


@pytest.mark.parametrize("method", ["random", "indegree", "in-degree", "pagerank", "rw", "rw-eg"])
def test_every_method_ranks_a_larger_web_and_expects_clicks(tmp_path: Path, command: Command, method: str) -> None:
    rng = np.random.default_rng(1)
    worth = rng.pareto(1.2, 600) + 0.1
    pairs = zip(rng.integers(0, 300, 5000).tolist(), rng.choice(600, 5000, p=worth / worth.sum()).tolist(), strict=True)
    links = write(tmp_path / "l.tsv", [(f"http://x/{a}", f"http://x/{b}") for a, b in pairs])
    clicks = write(tmp_path / "c.tsv", [(f"http://x/{page}", rng.poisson(worth[page])) for page in range(300)])
    ran = command("rank", "--links", links, "--clicks", clicks, "--method", method, "-n", 0)
    assert ran.code == 0, ran.err
    rows = ranked(ran.out)
    assert len(rows) > 200
    expected = [float(row[2]) for row in rows]
    assert expected == sorted(expected, reverse=True)
    assert "calibrated" in ran.err
    if method != "random":
        best = [worth[int(row[0].rsplit("/", 1)[1])] for row in rows]
        assert np.mean(best[:30]) > 2 * np.mean(best)
    again = command("rank", "--links", links, "--clicks", clicks, "--method", method, "-n", 0)
    assert again.out == ran.out


def test_the_learned_method_learns_from_directories(tmp_path: Path, command: Command) -> None:
    """Any page links to any other: only the directory says what a page is worth."""
    rng = np.random.default_rng(2)
    names = [f"http://x/{('news', 'old', 'help')[page % 3]}/{page}" for page in range(600)]
    pairs = zip(rng.integers(0, 300, 3000).tolist(), rng.integers(0, 600, 3000).tolist(), strict=True)
    links = write(tmp_path / "l.tsv", [(names[a], names[b]) for a, b in pairs])
    clicks = write(tmp_path / "c.tsv", [(names[page], rng.poisson((9.0, 0.2, 2.0)[page % 3])) for page in range(300)])
    queries = write(tmp_path / "q.tsv", [("news", 9)], "query\tfrequency")
    base = ("rank", "--links", links, "--clicks", clicks, "--method", "learned")
    for more in ((), ("--queries", queries)):
        ran = command(*base, *more, "-n", 60)
        assert ran.code == 0, ran.err
        assert "learned, calibrated" in ran.err
        rows = ranked(ran.out)
        assert len(rows) == 60
        assert np.mean([row[0].split("/")[3] == "news" for row in rows]) > 0.9
        assert float(rows[0][2]) == pytest.approx(9.0, abs=3.0)
    assert command(*base, "--queries", queries, "-n", 60).out == ran.out


def test_the_learned_method_says_when_there_is_too_little(files: tuple[Path, Path], command: Command) -> None:
    ran = command("rank", "--links", files[0], "--clicks", files[1], "--method", "learned")
    assert ran.code == 0, ran.err
    assert "learned, prior: too little feedback" in ran.err
    assert {row[0] for row in ranked(ran.out)} == {"new1", "new2", "new3"}


def test_dictionaries_with_unsigned_indices_are_read(tmp_path: Path, command: Command) -> None:
    columns = {
        name: pa.DictionaryArray.from_arrays(pa.array([0, 1, 1], pa.uint8()), pa.array(names))
        for name, names in (("source", ["a", "b"]), ("target", ["x", "y"]))
    }
    parquet.write_table(pa.table(columns), tmp_path / "l.parquet")
    clicks = write(tmp_path / "c.tsv", [("a", 1)])
    ran = command("rank", "--links", tmp_path / "l.parquet", "--clicks", clicks, "--method", "indegree")
    assert [row[0] for row in ranked(ran.out)] == ["x", "y"], ran.err


def test_queries_are_looked_for_in_page_names(tmp_path: Path, command: Command) -> None:
    rows = [("Home", f"Red_car_{n}") for n in range(5)] + [("Home", f"Blue_boat_{n}") for n in range(5)]
    links = write(tmp_path / "l.tsv", rows)
    clicks = write(tmp_path / "c.tsv", [("Home", 5)])
    queries = write(tmp_path / "q.tsv", [("blue boat", 9), ("submarine", 4)], "query\tfrequency")
    for method in ("query-driven", "hybrid", "boosted"):
        ran = command("rank", "--links", links, "--clicks", clicks, "--queries", queries, "--method", method)
        assert ran.code == 0, ran.err
        assert {row[0].rsplit("_", 1)[0] for row in ranked(ran.out)[:5]} == {"Blue_boat"}


@pytest.mark.parametrize(
    ("what", "content", "said"),
    [
        ("links", None, "no such file"),
        ("links", "", "holds no rows"),
        ("links", "# only a comment\n", "holds no rows"),
        ("links", "one column\n", "line 1: 1 columns where 2 are needed (source, target)"),
        ("links", "a\tb\nc\nd\n", "line 2: 1 columns where 2 are needed (source, target). 2 of 3 lines are bad"),
        ("links", b"a\tb\n\xff\xfe\tc\n\xff\tb\n", "line 2: not UTF-8 at byte 1. 2 of 3 lines are bad"),
        ("clicks", "a\tmany\na\tmore\n", "line 2: clicks is 'more', no number from 0 to 1e+15. 1 of 1 lines"),
        ("clicks", "# c\n\na\t1\n\nb\tx\nc\ty\n", "line 5: clicks is 'x', no number from 0 to 1e+15. 2 of 3 lines"),
        ("clicks", "b\t-2\n", "line 1: clicks is '-2', no number from 0 to 1e+15"),
        ("clicks", "a\t1e308\na\t1e308\n", "line 1: clicks is '1e308', no number from 0 to 1e+15"),
        ("clicks", "a\t1\nb\t\nc\t\n", "line 2: clicks is empty. 2 of 3 lines are bad"),
        ("clicks", "a\t1\nnew1\t2\nnew2\t1\nnew3\t0\n", "nothing to rank"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    files: tuple[Path, Path], tmp_path: Path, command: Command, what: str, content: str | bytes | None, said: str
) -> None:
    path = tmp_path / "wrong.tsv"
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    named = {"links": files[0], "clicks": files[1], what: path}
    ran = command("rank", "--links", named["links"], "--clicks", named["clicks"])
    assert ran.code == 2
    assert ran.out == ""
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert ran.err.splitlines()[-1].startswith("bowerbird: ")


def test_wrong_options_are_refused_before_anything_is_read(files: tuple[Path, Path], command: Command) -> None:
    base = ("rank", "--links", files[0], "--clicks", files[1])
    assert "--queries" in command(*base, "--method", "hybrid").err
    assert ".parquet" in command(*base, "--out", "x.xlsx").err
    assert command(*base, "--method", "best").code == 2
    for share in ("nan", "1.5"):
        ran = command(*base, "--real-share", share)
        assert ran.code == 2
        assert "--real-share" in ran.err


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_read(
    files: tuple[Path, Path], tmp_path: Path, command: Command
) -> None:
    base = ("rank", "--links", files[0], "--clicks", files[1], "--out")
    (tmp_path / "folder.csv").mkdir()
    for out, said in ((tmp_path / "no" / "x.csv", "there is no folder"), (tmp_path / "folder.csv", "is a folder")):
        ran = command(*base, out)
        assert ran.code == 2
        assert said in ran.err
        assert "crawled" not in ran.err  # nothing was read
    assert "is a folder" in command("rank", "--links", tmp_path, "--clicks", files[1]).err


@pytest.mark.parametrize("form", ["tsv", "csv", "parquet"])
def test_lines_with_an_empty_cell_are_left_out_and_told(tmp_path: Path, command: Command, form: str) -> None:
    links, clicks = [*LINKS, ("a", ""), ("", "new4")], [*CLICKS, ("b", ""), ("", 7)]
    if form == "parquet":
        for name, columns, rows in (("l", ("source", "target"), links), ("c", ("page", "clicks"), clicks)):
            cells = ([None if cell == "" else cell for cell in column] for column in zip(*rows, strict=True))
            parquet.write_table(pa.table(dict(zip(columns, cells, strict=True))), tmp_path / f"{name}.parquet")
    else:
        mark = "," if form == "csv" else "\t"
        write(tmp_path / f"l.{form}", links, mark=mark)
        write(tmp_path / f"c.{form}", clicks, mark=mark)
    plain = command(
        "rank", "--links", write(tmp_path / "l0.tsv", LINKS), "--clicks", write(tmp_path / "c0.tsv", CLICKS)
    )
    ran = command("rank", "--links", tmp_path / f"l.{form}", "--clicks", tmp_path / f"c.{form}")
    assert ran.code == 0, ran.err
    assert ran.out == plain.out
    unit = "row" if form == "parquet" else "line"
    said = f"l.{form}: 2 of 10 {unit}s were bad and left out ({unit} 9: target is empty; {unit} 10: source is empty)."
    assert said in ran.err
    said = f"c.{form}: 2 of 5 {unit}s were bad and left out ({unit} 4: clicks is empty; {unit} 5: page is empty)."
    assert said in ran.err
    assert "6 pages" in ran.err


def test_a_header_of_other_words_is_no_link(tmp_path: Path, command: Command) -> None:
    clicks = write(tmp_path / "c.tsv", [(n, page) for page, n in CLICKS], "Search clicks\tPage URL")
    plain = command(
        "rank", "--links", write(tmp_path / "l0.tsv", LINKS), "--clicks", write(tmp_path / "c0.tsv", CLICKS)
    )
    turned = [(b, a) for a, b in LINKS]
    for rows, header in ((LINKS, "Source page\tTarget page"), (turned, "to_page\tfromPage"), (LINKS, "Page\tLinks")):
        links = write(tmp_path / "l.tsv", rows, header)
        ran = command("rank", "--links", links, "--clicks", clicks)
        assert ran.out == plain.out, header
        assert f"({', '.join(header.split(chr(9)))}) is taken for a header" in ran.err
    for first in ("http://x/page\thttp://x/link", "Source_code\tTarget", "page/1\tpage/2"):  # these are pages
        graph, notes = read_graph(write(tmp_path / "l.tsv", LINKS, first), clicks)
        assert len(graph.sources) == len(LINKS) + 1
        assert notes[0].startswith(str(clicks))


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        ("anchor\torigin\tdest", [("go", "a", "b")]),
        ("anchor\treferrer\tpage_to_see", [("go", "http://a.example/", "http://b.example/")]),
        ("n\tfrom_date\tseen", [(1, "2026-01-01", "b")]),
        ("dest_page\tsrc_page", [("b", "a")]),  # two columns, and one of them says that the order is another
        ("from_page\tfrom_link\tto_page", [("a", "x", "b")]),
    ],
)
def test_a_header_that_leaves_it_open_which_column_is_what_is_refused(
    files: tuple[Path, Path], tmp_path: Path, command: Command, header: str, rows: list[tuple[object, ...]]
) -> None:
    links = write(tmp_path / "l.tsv", rows, header)
    ran = command("rank", "--links", links, "--clicks", files[1])
    assert ran.code == 2
    assert f"{links}: has no column source (or from, src" in ran.err
    assert f"it has {header.replace(chr(9), ', ')}." in ran.err


def test_a_header_whose_words_name_the_columns_among_others_is_read_by_them_and_told(
    files: tuple[Path, Path], tmp_path: Path, command: Command
) -> None:
    links = write(tmp_path / "l.tsv", [("go", *pair) for pair in LINKS], "anchor\tfrom_page\tto_page")
    ran = command("rank", "--links", links, "--clicks", files[1])
    assert ran.code == 0, ran.err
    assert ran.out == command("rank", "--links", files[0], "--clicks", files[1]).out
    assert "taken for a header: column 2 (from_page) is source, column 3 (to_page) is target." in ran.err


def test_a_header_in_words_of_its_own_is_no_link_where_addresses_or_numbers_follow(tmp_path: Path) -> None:
    clicks = write(tmp_path / "c.tsv", [("1", 2)])
    for rows in ([("1", "2"), ("2", "3")], [("http://a.example/", "/b")]):
        graph, notes = read_graph(write(tmp_path / "l.tsv", rows, "Quelle\tZiel"), clicks)
        assert len(graph.sources) == len(rows)
        assert "column 1 (Quelle) is source, column 2 (Ziel) is target" in notes[0]
    graph, notes = read_graph(write(tmp_path / "l.tsv", [("a", "b", "go"), ("b", "c", "see")]), clicks)
    assert len(graph.sources) == 2  # no header: in order, whatever else there is
    assert notes == ()


def test_columns_of_parquet_go_by_name_alone(tmp_path: Path, command: Command) -> None:
    links, clicks = tmp_path / "l.parquet", write(tmp_path / "c.tsv", CLICKS)
    for names, missing in (
        (("dest_page", "src_page"), "no column source (or from, src, from_url, source_url) and no column target (or"),
        (("source", "dest"), "no column target (or to, dst, destination, to_url, target_url); it has source, dest."),
    ):
        parquet.write_table(pa.table(dict(zip(names, zip(*LINKS, strict=True), strict=True))), links)
        ran = command("rank", "--links", links, "--clicks", clicks)
        assert ran.code == 2
        assert f"{links}: has {missing}" in ran.err


def test_names_are_taken_as_they_are(tmp_path: Path) -> None:
    rows = [("NA", '"quoted"'), ("null", " spaced "), ("NA", "nan"), ("1", "2.0")]
    clicks = write(tmp_path / "c.tsv", [("NA", 1), ("NA", 2.5), ("1", 0)])
    graph, _ = read_graph(write(tmp_path / "l.tsv", rows), clicks)
    names = graph.names()
    assert set(names) == {"NA", '"quoted"', "null", " spaced ", "nan", "1", "2.0"}
    assert graph.clicks[names.index("NA")] == 3.5
    assert [names[row] for row in graph.targets] == ['"quoted"', " spaced ", "nan", "2.0"]


@pytest.mark.parametrize("ending", ["tsv", "csv", "tsv.gz", "csv.zst"])
def test_bad_lines_among_many_are_left_out_and_told(tmp_path: Path, command: Command, ending: str) -> None:
    """Too few columns, too many, no UTF-8, no number: each line by itself."""
    mark = "," if "csv" in ending else "\t"
    plain = command(
        "rank", "--links", write(tmp_path / "l0.tsv", LINKS), "--clicks", write(tmp_path / "c0.tsv", CLICKS)
    )
    links = [("a",), *LINKS[:4], *[(*LINKS[4], "more", "than", "needed")], *LINKS[5:], ("",), ("lonely",)]
    write(tmp_path / f"l.{ending}", links, f"source{mark}target", mark)
    write(tmp_path / f"c.{ending}", [*CLICKS, ("b", "many"), ("c", -1)], mark=mark)
    ran = command("rank", "--links", tmp_path / f"l.{ending}", "--clicks", tmp_path / f"c.{ending}")
    assert ran.code == 0, ran.err
    assert ran.out == plain.out
    wrong = "1 columns where 2 are needed (source, target)"
    assert f"l.{ending}: 2 of 12 lines were bad and left out (line 2: {wrong}; line 12: {wrong})." in ran.err
    assert f"c.{ending}: 2 of 5 lines were bad and left out (line 4: clicks is 'many', no number from 0" in ran.err
    content = (tmp_path / "l0.tsv").read_bytes().replace(b"\t", mark.encode())
    (tmp_path / f"u.{ending.partition('.')[0]}").write_bytes(content + b"a" + mark.encode() + b"\xff\n")
    ran = command("rank", "--links", tmp_path / f"u.{ending.partition('.')[0]}", "--clicks", tmp_path / "c0.tsv")
    assert ran.out == plain.out
    assert "1 of 9 lines were bad and left out (line 9: not UTF-8 at byte 3)." in ran.err


def test_quotes_in_csv_are_those_of_spreadsheets(tmp_path: Path, command: Command) -> None:
    links = tmp_path / "l.csv"
    links.write_text('source,target\na,"x, y"\na,"two\nlines"\nb,"open\nb,"he said ""no"""\nb,z\n', encoding="utf-8")
    clicks = write(tmp_path / "c.tsv", [("a", 2), ("b", 1)])
    graph, notes = read_graph(links, clicks)
    assert {*graph.names()} == {"a", "b", "x, y", "two lines", 'he said "no"', "z"}
    assert "l.csv: 1 of 7 lines were bad and left out (line 5: " in notes[0]


def test_names_with_quotes_and_tabs_are_written_so_that_they_can_be_read(tmp_path: Path, command: Command) -> None:
    links = tmp_path / "l.parquet"
    parquet.write_table(pa.table({"source": ["a", "a"], "target": ['"q" it', "tab\tand\nline"]}), links)
    ran = command(
        "rank", "--links", links, "--clicks", write(tmp_path / "c.tsv", [("a", 1)]), "--out", tmp_path / "o.tsv"
    )
    assert ran.code == 0, ran.err
    rows = ranked((tmp_path / "o.tsv").read_text(encoding="utf-8"))
    assert {row[0] for row in rows} == {'"q" it', "tab and line"}
    assert all(len(row) == 4 for row in rows)


def test_for_programs(files: tuple[Path, Path], tmp_path: Path, command: Command) -> None:
    base = ("rank", "--links", files[0], "--clicks", files[1], "--method", "in-degree", "-n", 2)
    ran = command(*base, "--json")
    assert ran.code == 0, ran.err
    data = json.loads(ran.out)
    assert list(data) == ["method", "pages", "frontier", "calibration", "rows", "command", "version"]
    assert (data["method"], data["pages"], data["frontier"]) == ("indegree", 6, 3)
    assert data["calibration"]["kind"] == "prior"
    assert [list(row) for row in data["rows"]] == [HEADER.split("\t")] * 2
    assert [(row["page"], row["in_links"]) for row in data["rows"]] == [("new1", 2), ("new2", 2)]
    assert data["command"] == f"bowerbird rank --links {files[0]} --clicks {files[1]} --method indegree -n 2 --seed 0"
    again = command(*data["command"].split()[1:], "--json", "--out", tmp_path / "o.csv")
    assert json.loads(again.out) == data
    assert (tmp_path / "o.csv").is_file()


def test_queries_that_say_nothing_are_told(files: tuple[Path, Path], tmp_path: Path, command: Command) -> None:
    queries = write(tmp_path / "q.tsv", [("submarine", 4), ("", 2), ("new1", 1)], "query\tfrequency")
    base = ("rank", "--links", files[0], "--clicks", files[1], "--queries", queries, "--method")
    told = "No query has words of a page on the frontier"
    ran = command(*base, "query-driven")
    assert told not in ran.err
    assert "q.tsv: 1 of 4 lines were bad and left out (line 3: query is empty)." in ran.err
    write(queries, [("submarine", 4)])
    for method in ("query-driven", "hybrid", "boosted"):
        ran = command(*base, method)
        assert ran.code == 0, ran.err
        assert told in ran.err
    ran = command(*base, "rw-eg")
    assert "not read, for rw-eg does not look at queries" in ran.err
    assert ran.out == command("rank", "--links", files[0], "--clicks", files[1]).out
