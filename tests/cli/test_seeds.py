"""Where to start: graphs of any kind in, seeds out, which `init` takes."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from pyarrow import parquet
from tests.cli.conftest import Command, Sample

from bowerbird.cli import seed_inputs
from bowerbird.demand.events import ResultClicked
from bowerbird.demand.log import DemandLog
from bowerbird.demand.schema import NAME

U = "http://site{}.example/{}"
#: two sites; in each a page that leads to the others, and between them one link
LINKS = [
    *((U.format(1, "home"), U.format(1, page)) for page in "abcd"),
    (U.format(1, "a"), U.format(1, "deep")),
    *((U.format(2, "home"), U.format(2, page)) for page in "xy"),
    (U.format(2, "x"), U.format(1, "a")),
]


def write(path: Path, rows: list[tuple[object, ...]], header: str = "", mark: str = "\t") -> Path:
    content = ((header + "\n") if header else "") + "".join(f"{mark.join(map(str, row))}\n" for row in rows)
    packed = {".gz": gzip.compress, ".zst": zstandard.compress}.get(path.suffix)
    if packed is None:
        path.write_text(content, encoding="utf-8")
    else:
        path.write_bytes(packed(content.encode()))
    return path


@pytest.fixture
def links(tmp_path: Path) -> Path:
    return write(tmp_path / "links.tsv", LINKS)


def test_seeds_are_shown_with_what_they_add(links: Path, command: Command) -> None:
    ran = command("seeds", "--links", links, "-k", 2, "--hops", 2)
    assert ran.code == 0, ran.err
    head, *lines = ran.out.splitlines()
    assert head == "pages\tcovered\tpage"
    assert lines[0] == f"6\t66.67%\t{U.format(1, 'home')}"
    assert lines[1] == f"3\t100.00%\t{U.format(2, 'home')}"
    assert lines[2].startswith("# greedy: 2 seeds cover 9 of 9 pages (100.00%) within 2 links; ")
    assert lines[3] == "# No choice covers more than 100.00%: this one has at least 100.0% of the best."
    assert "9 pages, 8 distinct links" in ran.err


@pytest.mark.parametrize("name", ["l.csv", "l.tsv.gz", "l.csv.zst", "l.parquet"])
def test_files_of_all_kinds_are_read(tmp_path: Path, links: Path, command: Command, name: str) -> None:
    path = tmp_path / name
    if path.suffix == ".parquet":
        sources, targets = zip(*LINKS, strict=True)
        parquet.write_table(pa.table({"target": targets, "source": sources}), path)
    else:
        write(path, LINKS, "source,target" if ".csv" in name else "", "," if ".csv" in name else "\t")
    plain, found = (command("seeds", "--links", each, "-k", 2, "--json").json() for each in (links, path))
    assert [row["page"] for row in found["seeds"]] == [row["page"] for row in plain["seeds"]]


@pytest.mark.parametrize(
    "method", ["greedy", "maxweight", "maxout", "maxscc", "rootscc", "pagerank", "outdegree", "random"]
)
def test_programs_get_one_object(links: Path, command: Command, method: str) -> None:
    data = command("seeds", "--links", links, "-k", 3, "--hops", 1, "--method", method, "--json").json()
    assert (data["method"], data["pages"], data["links"], data["unit"], data["value"]) == (method, 9, 8, "pages", 9)
    assert 1 <= len(data["seeds"]) <= 3
    assert sum(row["pages"] for row in data["seeds"]) == data["covered_pages"] == data["seeds"][-1]["covered_pages"]
    assert data["covered_value"] <= data["bound"]["value"] <= 9
    assert data["at_least_of_the_best"] == pytest.approx(data["covered_value"] / data["bound"]["value"])
    assert data["bound"]["confidence"] == 1
    told = command("seeds", "--links", links, "-k", 3, "--hops", 1, "--method", method, "--no-bound", "--json").json()
    assert ("bound" in told) == (method == "greedy")
    assert [row["page"] for row in told["seeds"]] == [row["page"] for row in data["seeds"]]


def test_weights_steer_and_pages_below_zero_are_kept_away_from(tmp_path: Path, links: Path, command: Command) -> None:
    weights = [(U.format(2, "y"), 5), (U.format(1, "b"), -10), (U.format(1, "deep"), 2.5), ("http://lone/", 1)]
    path = write(tmp_path / "w.tsv", weights)
    ran = command("seeds", "--links", links, "--weights", path, "-k", 3)
    assert ran.code == 0, ran.err
    rows = [line.split("\t") for line in ran.out.splitlines() if not line.startswith("#")]
    assert rows[0] == ["pages", "covered", "value", "covered value", "page"]
    assert [row[4] for row in rows[1:]] == [U.format(2, "home"), "http://lone/"]
    assert [row[2] for row in rows[1:]] == ["7.5", "1"]
    assert "Some weights are below 0" in ran.out
    assert "# Value: 8.5 of 8.5 (100.00%); unit: weight." in ran.out
    assert "1 page with a weight that no link names" in ran.err


def test_the_rule_of_weights(tmp_path: Path, links: Path, command: Command) -> None:
    clicked = write(tmp_path / "clicked.txt", [(U.format(2, "y"),)])
    spam = write(tmp_path / "spam.txt", [(U.format(1, "b"),), (U.format(1, "c"),)])
    data = command("seeds", "--links", links, "--clicked", clicked, "--spam", spam, "-k", 1, "--json").json()
    assert data["value"] == 10 + 6
    assert data["seeds"][0]["page"] == U.format(2, "home")
    assert data["seeds"][0]["value"] == 10 + 4


def test_sites_get_seeds_by_their_value(links: Path, command: Command) -> None:
    data = command("seeds", "--links", links, "--per-site", "-k", 1, "--json").json()
    assert data["sites"] == 2
    assert {row["page"] for row in data["seeds"]} == {U.format(1, "home"), U.format(2, "home")}
    alike = command("seeds", "--links", links, "--per-site", "--equal", "-k", 1, "--hops", 1).out
    assert "2 seeds in 2 sites cover 8 of 9 pages" in alike


def test_blocks_of_numbers_are_sites(tmp_path: Path, command: Command) -> None:
    path = write(tmp_path / "l.tsv", [(10, 11), (10, 12), (11, 25), (20, 21)])
    data = command("seeds", "--links", path, "--per-site", "--site-block", 10, "-k", 1, "--json").json()
    assert (data["sites"], data["covered_pages"]) == (2, 5)
    ran = command("seeds", "--links", write(tmp_path / "n.tsv", LINKS), "--per-site", "--site-block", 10)
    assert ran.code == 2
    assert "other than whole numbers" in ran.err


def test_a_sample_is_said_to_be_one(links: Path, command: Command) -> None:
    ran = command("seeds", "--links", links, "-k", 1, "--hops", 1, "--samples", 128)
    assert "# greedy, by 128 samples: 1 seed covers 5 of 9 pages" in ran.out
    assert "with 99% confidence" in ran.out


def test_init_takes_what_is_written(tmp_path: Path, links: Path, command: Command) -> None:
    out = tmp_path / "seeds.txt"
    ran = command("seeds", "--links", links, "-k", 2, "--out", out)
    assert f"{out}: 2 seeds." in ran.err
    made = command("init", tmp_path / "crawl", "--seeds-file", out, "--contact", "me@example.org")
    assert made.code == 0, made.err
    assert "a crawl with 2 seeds." in made.out
    assert out.read_text().splitlines()[2:] == [U.format(1, "home"), U.format(2, "home")]
    names = write(tmp_path / "names.tsv", [("a", "b")])
    assert "takes URLs only" in command("seeds", "--links", names, "-k", 1, "--out", out).err


def test_loops_and_doubles_are_left_out_and_told(tmp_path: Path, command: Command) -> None:
    path = write(tmp_path / "l.tsv", [("a", "a"), ("a", "b"), ("a", "b"), ("b", "c"), ("", "c"), ("c", "")])
    ran = command("seeds", "--links", path, "-k", 1, "--json")
    assert (ran.code, ran.json()["links"], ran.json()["pages"]) == (0, 2, 3)
    assert "left out 1 link of pages to themselves and 1 link named more than once" in ran.err
    assert "2 of 6 lines were bad and left out" in ran.err


def refused(tmp_path: Path, arguments: list[object]) -> list[object]:
    return [str(each).replace("TMP", str(tmp_path)) for each in arguments]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--links", "TMP/links.tsv", "-k", 10], "has only 9 pages"),
        (["--links", "TMP/links.tsv", "--hops", 0], "1<=x<=120"),
        (["--links", "TMP/links.tsv", "-k", 0], "x>=1"),
        (["--links", "TMP/links.tsv", "--method", "best"], "'best' is not one of"),
        (["--links", "TMP/none.tsv"], "no such file"),
        (["--links", "TMP/empty.tsv"], "holds no rows"),
        (["--links", "TMP/loops.tsv", "-k", 3], "has only 1 page"),
        (["--links", "TMP"], "bowerbird.toml"),
        (["--links", "TMP/links.tsv", "--weights", "TMP/none.tsv"], "no such file"),
        (["--links", "TMP/links.tsv", "--weights", "TMP/words.tsv"], "2 of 2 weights are no numbers"),
        (["--links", "TMP/links.tsv", "--weights", "TMP/zero.tsv", "-k", 1], "no page has a weight above 0"),
        (["--links", "TMP/links.tsv", "--weights", "TMP/zero.tsv", "--spam", "TMP/zero.tsv"], "leave out --clicked"),
        (["--links", "TMP/links.tsv", "--equal"], "Add --per-site"),
        (["--links", "TMP/links.tsv", "--site-block", 5], "Add --per-site"),
        (["--links", "TMP/links.tsv", "-k", 1, "--out", "TMP/no/where"], "there is no folder"),
        (["--links", "TMP/links.tsv", "-k", 1, "--out", "TMP"], "is a folder"),
        (["--links", "TMP/links.tsv", "-k", 1, "--memory", "nan"], "must be a number of GB"),
        (["--links", "TMP/links.tsv", "-k", 1, "--memory", 1e-7], "takes about"),
        (["--links", "TMP/broken.parquet"], "cannot be read"),
        (["--links", "TMP/broken.tsv.gz"], "cannot be read"),
    ],
)
def test_bad_input_is_refused_in_words(
    tmp_path: Path, links: Path, command: Command, arguments: list[object], said: str
) -> None:
    write(tmp_path / "empty.tsv", [])
    write(tmp_path / "loops.tsv", [("a", "a")])
    write(tmp_path / "words.tsv", [("a", "much"), ("b", "little")])
    write(tmp_path / "zero.tsv", [(U.format(1, "a"), 0), (U.format(1, "b"), -1)])
    (tmp_path / "broken.parquet").write_bytes(b"PAR1nothing")
    (tmp_path / "broken.tsv.gz").write_bytes(b"no gzip")
    ran = command("seeds", *refused(tmp_path, arguments))
    assert ran.code == 2
    assert said in ran.err, ran.err
    assert "Traceback" not in ran.err
    assert not ran.out


@pytest.mark.parametrize("name", ["l.tsv", "l.tsv.gz", "l.tsv.zst", "l.parquet"])
def test_the_need_of_memory_is_told_from_the_beginning(tmp_path: Path, name: str) -> None:
    rng = np.random.default_rng(1)
    rows = [
        (f"http://host{a % 50}.example/page/{a}", f"http://other.example/{b}")
        for a, b in rng.integers(0, 10**6, (40_000, 2))
    ]
    path, plain = tmp_path / name, write(tmp_path / "plain.tsv", rows)
    if name == "l.parquet":
        sources, targets = zip(*rows, strict=True)
        parquet.write_table(pa.table({"source": sources, "target": targets}), path)
    else:
        write(path, rows)
    least = len(rows) * seed_inputs._LINK_BYTES
    assert least < seed_inputs.need_of(path) < 2 * (least + plain.stat().st_size)
    assert seed_inputs.free_memory() > 0


@pytest.mark.parametrize("name", ["l.tsv", "l.csv", "l.tsv.gz", "l.parquet"])
def test_a_file_that_is_too_large_is_refused_with_the_size_needed(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Ten gigabytes that take no room on the disk, on a machine with two; it is not read for that."""
    path = tmp_path / name
    rows = [(U.format(1, nth), U.format(2, nth)) for nth in range(60_000)]
    if name == "l.parquet":
        sources, targets = zip(*rows, strict=True)
        parquet.write_table(pa.table({"source": sources, "target": targets}), path)
        told = parquet.read_metadata(path)

        class Many:
            """What the footer of a file with 2,000 times as many links says."""

            num_rows = told.num_rows * 2000
            num_row_groups = 2000

            @staticmethod
            def row_group(_: int) -> object:
                return told.row_group(0)

        monkeypatch.setattr(parquet, "read_metadata", lambda _: Many)
    else:
        write(path, rows, mark="," if name == "l.csv" else "\t")
        with path.open("r+b") as file:
            file.truncate(10_000_000_000)
    monkeypatch.setattr(seed_inputs, "free_memory", lambda: 2_000_000_000)
    monkeypatch.setattr(seed_inputs, "read_rows", lambda *_: pytest.fail("it was read"))
    ran = command("seeds", "--links", path, "-k", 1)
    assert ran.code == 2
    found = re.search(r"reading it takes about ([\d.]+) GB of memory, and there is 2.0 GB", ran.err)
    assert found, ran.err
    assert 5 < float(found[1]) < 500
    assert "Traceback" not in ran.err


def test_a_header_of_other_words_is_no_page(tmp_path: Path, links: Path, command: Command) -> None:
    path = write(tmp_path / "w.csv", [(U.format(1, "b"), -1), (U.format(2, "y"), 3)], "adresse,gewicht", ",")
    ran = command("seeds", "--links", links, "--weights", path, "-k", 1, "--json")
    assert ran.json()["pages"] == 9
    assert "its first line is taken for a header" in ran.err


@pytest.fixture
def folder(sample: Sample, tmp_path: Path) -> Path:
    root = tmp_path / "crawl"
    shutil.copytree(sample.root, root)
    return root


def test_a_crawl_folder_is_a_graph(folder: Path, command: Command) -> None:
    ran = command("seeds", "--links", folder, "-k", 3, "--hops", 2, "--json")
    assert ran.code == 0, ran.err
    data = ran.json()
    assert data["unit"] == "pages, with those to be found"
    assert data["pages"] > 30
    assert all(row["page"].startswith("http") for row in data["seeds"])
    assert "turned out pages of their own" in ran.err
    assert "No clicks are known" in ran.err
    sites = command("seeds", "--links", folder, "-k", 1, "--per-site", "--json").json()
    assert sites["sites"] > 1
    assert "a crawl folder has clicks of its own" in command("seeds", "--links", folder, "--spam", folder).err


def test_clicks_are_what_a_crawl_is_worth(folder: Path, command: Command) -> None:
    plain = command("seeds", "--links", folder, "-k", 5, "--hops", 1, "--json").json()
    liked = plain["seeds"][-1]["page"]
    with DemandLog.open(folder / NAME, write=True) as log:
        log.record([ResultClicked(None, liked, 1, time.time(), 1000)])
    ran = command("seeds", "--links", folder, "-k", 1, "--hops", 1, "--json")
    data = ran.json()
    assert data["unit"] == "clicks"
    assert data["covered_value"] >= 990
    assert data["value"] >= 1000 - 1e-3
    assert "No clicks are known" not in ran.err


def test_weights_of_a_file_take_the_place_of_clicks(folder: Path, tmp_path: Path, command: Command) -> None:
    page = command("seeds", "--links", folder, "-k", 1, "--json").json()["seeds"][0]["page"]
    weights = write(tmp_path / "w.tsv", [(page, 7), ("http://unheard.example/", 3)])
    ran = command("seeds", "--links", folder, "--weights", weights, "-k", 1, "--json")
    assert ran.json()["covered_value"] == 7
    assert "1 line of pages that this crawl has not fetched" in ran.err
    write(weights, [("http://unheard.example/", 3)])
    ran = command("seeds", "--links", folder, "--weights", weights, "-k", 1)
    assert (ran.code, "names no page that this crawl has fetched" in ran.err) == (2, True)


def test_a_crawl_without_pages_says_so(tmp_path: Path, command: Command) -> None:
    root = tmp_path / "new"
    assert command("init", root, "--seed", "http://a.example/", "--contact", "me@example.org").code == 0
    ran = command("seeds", "--links", root, "-k", 1)
    assert ran.code == 2
    assert "has no fetched page yet" in ran.err
    assert json.dumps(ran.out) == '""'
