"""The brain alone: other people's graphs in, a ranking out."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
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


@pytest.mark.parametrize("form", ["tsv", "tsv.gz", "csv", "csv.gz", "parquet", "named", "commented", "shuffled"])
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
    elif form == "shuffled":
        links, clicks = write(tmp_path / "l.tsv", LINKS[::-1]), write(tmp_path / "c.tsv", CLICKS[::-1])
    else:
        mark = "," if form.startswith("csv") else "\t"
        write(links, LINKS, mark=mark)
        write(clicks, CLICKS, mark=mark)
    ran = command("rank", "--links", links, "--clicks", clicks, "--method", "rw")
    assert ran.code == 0, ran.err
    assert ran.out == plain


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".tsv"])
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
        lines = out.read_text(encoding="utf-8").replace('"', "").splitlines()
        assert len(lines) == 3
        assert lines[1].startswith("new1")


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


def test_queries_are_looked_for_in_page_names(tmp_path: Path, command: Command) -> None:
    rows = [("Home", f"Red_car_{n}") for n in range(5)] + [("Home", f"Blue_boat_{n}") for n in range(5)]
    links = write(tmp_path / "l.tsv", rows)
    clicks = write(tmp_path / "c.tsv", [("Home", 5)])
    queries = write(tmp_path / "q.tsv", [("blue boat", 9), ("submarine", 4)], "query\tfrequency")
    for method in ("query-driven", "hybrid"):
        ran = command("rank", "--links", links, "--clicks", clicks, "--queries", queries, "--method", method)
        assert ran.code == 0, ran.err
        assert {row[0].rsplit("_", 1)[0] for row in ranked(ran.out)[:5]} == {"Blue_boat"}


@pytest.mark.parametrize(
    ("what", "content", "said"),
    [
        ("links", None, "no such file"),
        ("links", "", "holds no rows"),
        ("links", "# only a comment\n", "holds no rows"),
        ("links", "one column\n", "line 1: 1 column(s) where 2 are needed"),
        ("links", "a\tb\nc\n", "cannot be read"),
        ("links", b"a\tb\n\xff\xfe\tc\n", "cannot be read"),
        ("clicks", "a\tmany\na\tmore\n", "clicks must be numbers"),
        ("clicks", "a\t1\nb\t-2\n", "row 2: clicks is -2.0"),
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


def test_wrong_options_are_refused_before_anything_is_read(files: tuple[Path, Path], command: Command) -> None:
    base = ("rank", "--links", files[0], "--clicks", files[1])
    assert "--queries" in command(*base, "--method", "hybrid").err
    assert ".parquet" in command(*base, "--out", "x.xlsx").err
    assert command(*base, "--method", "best").code == 2


def test_names_are_taken_as_they_are(tmp_path: Path) -> None:
    rows = [("NA", '"quoted"'), ("null", " spaced "), ("NA", "nan"), ("1", "2.0")]
    graph = read_graph(write(tmp_path / "l.tsv", rows), write(tmp_path / "c.tsv", [("NA", 1), ("NA", 2.5), ("1", 0)]))
    names = graph.names.to_pylist()
    assert set(names) == {"NA", '"quoted"', "null", " spaced ", "nan", "1", "2.0"}
    assert graph.clicks[names.index("NA")] == 3.5
    assert [names[row] for row in graph.targets] == ['"quoted"', " spaced ", "nan", "2.0"]
