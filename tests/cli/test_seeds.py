"""Where to start: graphs of any kind in, seeds out, which `init` takes."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import shutil
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from pyarrow import parquet
from tests.cli.conftest import Command, Sample

from bowerbird.appraise.seeds.methods import METHODS as BY_NAME
from bowerbird.cli import seed_inputs, seed_memory
from bowerbird.cli.seeds import METHODS
from bowerbird.demand.events import ResultClicked
from bowerbird.demand.log import DemandLog
from bowerbird.demand.schema import NAME
from bowerbird.library.column_names import PAGES, SOURCES, TARGETS

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


def test_the_command_knows_all_methods() -> None:
    assert tuple(BY_NAME) == METHODS  # named there, for what they need is slow to load


@pytest.mark.parametrize("method", METHODS)
def test_programs_get_one_object(links: Path, command: Command, method: str) -> None:
    data = command("seeds", "--links", links, "-k", 3, "--hops", 1, "--method", method, "--json").json()
    assert (data["method"], data["pages"], data["links"], data["unit"], data["value"]) == (method, 9, 8, "pages", 9)
    assert 1 <= len(data["seeds"]) <= 3
    assert sum(row["pages"] for row in data["seeds"]) == data["covered_pages"] == data["seeds"][-1]["covered_pages"]
    assert data["covered_value"] <= data["bound"]["value"] <= 9
    assert data["at_least_of_the_best"] == pytest.approx(data["covered_value"] / data["bound"]["value"])
    assert data["bound"]["confidence"] == 1
    told = command("seeds", "--links", links, "-k", 3, "--hops", 1, "--method", method, "--no-bound", "--json").json()
    assert not {"bound", "at_least_of_the_best"} & set(told)
    assert "--no-bound" in told["command"]
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


def test_what_is_covered_at_a_loss_is_no_share_of_the_best(tmp_path: Path, links: Path, command: Command) -> None:
    spam = write(tmp_path / "spam.txt", [(U.format(1, page),) for page in ("a", "b", "c", "d", "deep")])
    ran = command("seeds", "--links", links, "--spam", spam, "-k", 1, "--method", "outdegree")
    assert re.search(r"^# No choice covers more than [\d.]+%\.$", ran.out, re.MULTILINE)
    data = command("seeds", "--links", links, "--spam", spam, "-k", 1, "--method", "outdegree", "--json").json()
    assert data["covered_value"] < 0
    assert "at_least_of_the_best" not in data


def test_weights_named_twice_are_told_and_names_are_trimmed(tmp_path: Path, links: Path, command: Command) -> None:
    page = U.format(2, "y")
    path = write(tmp_path / "w.tsv", [(page, 2), (f" {page} ", 3), (U.format(2, "x"), 1)])
    ran = command("seeds", "--links", links, "--weights", path, "-k", 1, "--json")
    assert (ran.json()["pages"], ran.json()["value"]) == (9, 6)
    assert "w.tsv: 1 line that names a page once more: the weights of a page are added up." in ran.err


def test_the_command_that_is_recorded_is_the_one_that_ran(tmp_path: Path, links: Path, command: Command) -> None:
    out = tmp_path / "seeds.txt"
    asked = ["seeds", "--links", links, "-k", 2, "--hops", 3, "--memory", 1.5, "--no-bound", "--samples", 64]
    ran = command(*asked, "--out", out, "--json")
    again = shlex.split(ran.json()["command"])
    assert {"--memory", "1.5", "--no-bound", "--samples", "64"} <= set(again)
    assert out.read_text().splitlines()[0] == f"# {ran.json()['command']}"
    repeated = command(*again[1:], "--json").json()
    assert repeated["seeds"] == ran.json()["seeds"]


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
    large = write(tmp_path / "large.tsv", [(10**25, 10**25 + 1), (10**25 + 20, 10**25 + 21)])
    assert command("seeds", "--links", large, "--per-site", "--site-block", 10, "--json").json()["sites"] == 2


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
        (["--links", "TMP/links.tsv", "--weights", "TMP/words.tsv"], "1 of 1 weights are no numbers"),
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
        (["--links", "/proc/self/mem"], "cannot be read"),
        (["--links", "TMP/lists.parquet"], "holds what is no text or number"),
        (["--links", "TMP/bytes.parquet"], "holds what is no text or number"),
        (["--links", "TMP/links.tsv", "-k", 1, "--out", "TMP/links.tsv"], "would be overwritten"),
        (["--links", "TMP/links.tsv", "-k", 1, "--spam", "TMP/loops.tsv", "--out", "TMP/loops.tsv"], "overwritten"),
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
    for name, cells in (("lists", [["a"], ["b"]]), ("bytes", [b"\xff", b"\xfe"])):
        parquet.write_table(pa.table({"source": cells, "target": cells}), tmp_path / f"{name}.parquet")
    ran = command("seeds", *refused(tmp_path, arguments))
    assert ran.code == 2
    assert said in ran.err, ran.err
    assert "Traceback" not in ran.err
    assert not ran.out


LINK_COLUMNS = (SOURCES, TARGETS)

#: what reading adds to the peak of a process, and what choosing adds to that
MEASURE = """
import sys
from pathlib import Path
from bowerbird.appraise.seeds.methods import SeedOptions, choose_seeds
from bowerbird.appraise.seeds.problem import SeedProblem
from bowerbird.cli.seed_inputs import WeightFiles, read_link_file
from bowerbird.cli.seed_memory import held_memory, need_to_choose

def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) * 1024

def restart():
    Path("/proc/self/clear_refs").write_text("5")
    return held_memory()

def choose(inputs):
    choose_seeds(SeedProblem(inputs.graph, inputs.weight, 2), 5, options=SeedOptions(rounds=2))

choose(read_link_file(Path(sys.argv[1]), WeightFiles(), None))
for path in sys.argv[2:]:
    before = restart()
    inputs = read_link_file(Path(path), WeightFiles(), None)
    reading = peak() - before
    before = restart()
    choose(inputs)
    print(reading, peak() - before, need_to_choose(inputs.graph.count, inputs.graph.edges))
    del inputs
"""


def write_large(path: Path, pages: int, names: str, rows: int = 300_000) -> None:
    rng = np.random.default_rng(1)
    columns = [[names.format(page) for page in rng.integers(0, pages, rows).tolist()] for _ in range(2)]
    if path.suffix == ".parquet":
        kinds = pa.int64() if names == "{}" else pa.string()
        columns = [pa.array(map(int, column) if names == "{}" else column, kinds) for column in columns]
        parquet.write_table(pa.table(dict(zip(("source", "target"), columns, strict=True))), path)
    else:
        write(path, list(zip(*columns, strict=True)))


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the system tells no peaks of memory")
def test_the_need_of_memory_is_that_of_a_process(tmp_path: Path) -> None:
    small, url = write(tmp_path / "small.tsv", LINKS), "http://host.example/some/folder/page-{}.html"
    kinds = {"urls.tsv": url, "numbers.tsv": "{}", "urls.parquet": url, "numbers.parquet": "{}", "urls.tsv.gz": url}
    paths = [tmp_path / name for name in kinds]
    for path, names in zip(paths, kinds.values(), strict=True):
        write_large(path, 10**5 if path.suffix == ".gz" else 10**6, names)
    ran = subprocess.run([sys.executable, "-c", MEASURE, small, *paths], capture_output=True, text=True, check=True)
    rows = [[int(cell) for cell in line.split()] for line in ran.stdout.splitlines()]
    for path, (reading, choosing, told_choosing) in zip(paths, rows, strict=True):
        told = seed_memory.need_of(path, LINK_COLUMNS)
        assert 0.75 * reading < told < 3.5 * reading, path.name
        assert 0.75 * choosing < told_choosing, path.name
    assert rows[0][2] < 3.5 * max(choosing for _, choosing, _ in rows)  # some of it is taken from what reading left


@pytest.mark.parametrize("name", ["one.zst", "frames.zst", "one.gz", "members.gz"])
def test_what_is_packed_is_told_from_its_beginning(tmp_path: Path, name: str) -> None:
    rows = "".join(f"http://a.example/{page % 977}\thttp://b.example/{page * 7919 % 10**6}\n" for page in range(60_000))
    plain, path = tmp_path / "plain.tsv", tmp_path / f"l.tsv.{name.split('.')[1]}"
    plain.write_text(rows)
    pack = zstandard.compress if path.suffix == ".zst" else gzip.compress
    cut = len(rows) if name.startswith("one") else 60_000
    path.write_bytes(b"".join(pack(rows[low : low + cut].encode()) for low in range(0, len(rows), cut)))
    told = seed_memory.need_of(path, LINK_COLUMNS)
    assert told == pytest.approx(seed_memory.need_of(plain, LINK_COLUMNS), rel=0.35)


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_little_is_unpacked_to_see_how_much_there_is(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"l.tsv{suffix}"
    text = b"a\tb\n" * 50_000_000
    path.write_bytes(gzip.compress(text, 1) if suffix == ".gz" else zstandard.compress(text))
    size = len(text)
    del text
    tracemalloc.start()
    told = seed_memory.need_of(path, LINK_COLUMNS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40_000_000
    assert told > 10 * size  # of rows as short as these


def test_only_columns_that_are_read_need_memory(tmp_path: Path) -> None:
    few, many = tmp_path / "few.parquet", tmp_path / "many.parquet"
    columns = {"source": [f"s{row}" for row in range(5000)], "target": [f"t{row}" for row in range(5000)]}
    parquet.write_table(pa.table(columns), few)
    text = [f"{row} " * 100 for row in range(5000)]
    parquet.write_table(pa.table({"text": text} | columns | {"more": text}), many)
    assert seed_memory.need_of(many, LINK_COLUMNS) == seed_memory.need_of(few, LINK_COLUMNS)


def test_files_need_memory_together(tmp_path: Path, links: Path, command: Command) -> None:
    weights = write(tmp_path / "w.tsv", [(U.format(1, page), 2) for page in "abcd"])
    needs = [seed_memory.need_of(links, LINK_COLUMNS), seed_memory.need_of(weights, (PAGES,))]
    memory = (sum(needs) - 1) / 1e9
    assert memory > max(needs) / 1e9
    ran = command("seeds", "--links", links, "--weights", weights, "-k", 1, "--memory", f"{memory:.12f}")
    assert ran.code == 2
    assert f"{links} and {weights}: reading takes about" in ran.err


def test_choosing_needs_memory_too(links: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seed_memory, "_PAGE_BYTES", 10**9)
    ran = command("seeds", "--links", links, "-k", 1, "--memory", 1)
    assert ran.code == 2
    assert "choosing among 9 pages takes about 9.0 GB of memory" in ran.err


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
            num_columns = told.num_columns

            @staticmethod
            def row_group(_: int) -> object:
                return told.row_group(0)

        monkeypatch.setattr(parquet, "read_metadata", lambda _: Many)
    else:
        write(path, rows, mark="," if name == "l.csv" else "\t")
        with path.open("r+b") as file:
            file.truncate(10_000_000_000)
    monkeypatch.setattr(seed_memory, "free_memory", lambda: 2_000_000_000)
    monkeypatch.setattr(seed_inputs, "read_rows", lambda *_: pytest.fail("it was read"))
    ran = command("seeds", "--links", path, "-k", 1)
    assert ran.code == 2
    found = re.search(r"reading takes about ([\d.]+) GB of memory, and there is 2.0 GB", ran.err)
    assert found, ran.err
    assert 5 < float(found[1]) < 1000
    assert "Traceback" not in ran.err


def test_a_header_of_other_words_is_no_page(tmp_path: Path, links: Path, command: Command) -> None:
    path = write(tmp_path / "w.csv", [(U.format(1, "b"), -1), (U.format(2, "y"), 3)], "adresse,gewicht", ",")
    ran = command("seeds", "--links", links, "--weights", path, "-k", 1, "--json")
    assert ran.json()["pages"] == 9
    assert "(adresse, gewicht) is taken for a header: column 1 (adresse) is page, column 2 (gewicht) is" in ran.err


def test_columns_that_no_name_says_are_never_guessed(tmp_path: Path, links: Path, command: Command) -> None:
    rows = [("home", U.format(1, "b"), U.format(2, "y"))]
    said = "has no column source (or from, src, from_url, source_url) and no column target (or to, dst"
    unknown = write(tmp_path / "l.csv", rows, "anchor,origin,dest", ",")
    ran = command("seeds", "--links", unknown, "-k", 1)
    assert ran.code == 2
    assert f"{unknown}: {said}" in ran.err
    assert "it has anchor, origin, dest." in ran.err
    parquet.write_table(pa.table({"dest_page": ["b"], "src_page": ["a"]}), tmp_path / "l.parquet")
    ran = command("seeds", "--links", tmp_path / "l.parquet", "-k", 1)
    assert ran.code == 2
    assert f"l.parquet: {said}" in ran.err
    weights = write(tmp_path / "w.tsv", [(U.format(1, "b"), 7, -1)], "address\tinlinks\tmass")
    ran = command("seeds", "--links", links, "--weights", weights, "-k", 1)
    assert ran.code == 2
    assert "has no column page (or url, name, title, slug) and no column weight" in ran.err


@pytest.fixture
def folder(sample: Sample, tmp_path: Path) -> Path:
    root = tmp_path / "crawl"
    shutil.copytree(sample.root, root)
    return root


def test_a_crawl_folder_is_a_graph(folder: Path, command: Command) -> None:
    ran = command("seeds", "--links", folder, "-k", 3, "--hops", 2, "--json")
    assert ran.code == 0, ran.err
    data = ran.json()
    assert data["unit"] == "pages and links to URLs not fetched yet"
    assert data["pages"] > 30
    assert all(row["page"].startswith("http") for row in data["seeds"])
    assert "turned out pages of their own" in ran.err
    assert "No clicks are known" in ran.err
    sites = command("seeds", "--links", folder, "-k", 1, "--per-site", "--json").json()
    assert sites["sites"] > 1


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


def test_the_rule_of_weights_in_a_crawl(folder: Path, tmp_path: Path, command: Command) -> None:
    def value_of(*options: object) -> float:
        ran = command("seeds", "--links", folder, "-k", 1, "--hops", 1, *options, "--json")
        assert ran.code == 0, ran.err
        return float(ran.json()["value"])

    plain = command("seeds", "--links", folder, "-k", 5, "--hops", 1, "--json").json()
    liked, other = plain["seeds"][0]["page"], plain["seeds"][1]["page"]
    clicked, spam = (
        write(tmp_path / "c.txt", [(liked,)]),
        write(tmp_path / "s.txt", [(other,), ("http://no.example/",)]),
    )
    assert value_of("--clicked", clicked) == pytest.approx(plain["value"] + 9)  # uncrawled links still count
    # what a spam page adds by uncrawled links does not make up for -10, so it is no value to be covered
    less = value_of("--spam", spam)
    assert plain["value"] - 12 < less <= plain["value"] - 1
    assert value_of("--clicked", clicked, "--spam", spam) == pytest.approx(less + 9)
    ran = command("seeds", "--links", folder, "-k", 1, "--spam", spam)
    assert "1 line of pages that this crawl has not fetched" in ran.err
    assert "turned out pages of their own" in ran.err
    with DemandLog.open(folder / NAME, write=True) as log:
        log.record([ResultClicked(None, liked, 1, time.time(), 1000)])
    assert value_of("--spam", spam) == pytest.approx(less + 9)  # clicked is what the crawl knows clicks of


def test_a_crawl_without_pages_says_so(tmp_path: Path, command: Command) -> None:
    root = tmp_path / "new"
    assert command("init", root, "--seed", "http://a.example/", "--contact", "me@example.org").code == 0
    ran = command("seeds", "--links", root, "-k", 1)
    assert ran.code == 2
    assert "has no fetched page yet" in ran.err
    assert json.dumps(ran.out) == '""'
