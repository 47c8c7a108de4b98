"""Reading the sites of the refresh experiments."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.lab.refresh_data import make_queries, read_refresh_data
from bowerbird.lab.refresh_terms import TermNumbers
from bowerbird.lab.sketches_data import STOP_WORDS
from bowerbird.model.errors import InputFileError


def write_site(folder: Path, base: dict[str, str], weeks: list[tuple[int, str, str, str]], links: str = "") -> Path:
    """A site in the format of the data, with two queries."""
    lines = [json.dumps({"path": path, "text": text}) for path, text in base.items()]
    (folder / "base.jsonl").write_text("\n".join(lines))
    changes = [{"week": week, "status": status, "path": path, "text": text} for week, status, path, text in weeks]
    (folder / "weeks.jsonl").write_text("\n".join(map(json.dumps, changes)))
    (folder / "links.tsv").write_text(links or "a.md\tb.md\t1\n")
    (folder / "queries.tsv").write_text("query\tfrequency\nred car\t3\nthe car red\t2\ncar\t1\nof the\t9\n")
    return folder


@given(st.lists(st.text(alphabet="abAB zß9İK\u212a-_\n", max_size=40) | st.just("The cat, and THE hat")))
@settings(deadline=None)
def test_terms_are_those_of_the_pattern(texts: list[str]) -> None:
    """Two texts have the same numbers exactly where they have the same words; stop words have none."""
    starts, terms = TermNumbers().read(texts)
    words = [[w for w in re.findall("[a-z0-9]+", text.lower()) if w not in STOP_WORDS] for text in texts]
    assert np.diff(starts).tolist() == [len(each) for each in words]
    number: dict[str, int] = {}
    flat = [word for each in words for word in each]
    assert terms.tolist() == [number.setdefault(word, len(number)) for word in flat]


def test_many_terms_keep_their_numbers() -> None:
    """The table of terms grows."""
    numbers = TermNumbers()
    _, first = numbers.read([" ".join(f"w{i}" for i in range(20_000))])
    _, again = numbers.read([f"w{i}" for i in range(20_000)])
    assert first.tolist() == list(range(20_000)) == again.tolist()
    assert len(numbers) == 20_000


def test_queries_with_the_same_terms_are_one() -> None:
    """Their frequencies add up; a query of stop words is none."""
    queries = make_queries(TermNumbers(), ["red car", "car, the red", "car car", "of the"], [3.0, 2.0, 1.0, 9.0])
    assert np.diff(queries.starts).tolist() == [2, 1]
    assert queries.frequency.tolist() == [5.0, 1.0]
    assert queries.split().frequency.tolist() == [5.0, 6.0]


def test_pages_that_are_deleted_do_not_count(tmp_path: Path) -> None:
    """Nor do pages that come later, and weeks after the last."""
    folder = write_site(
        tmp_path,
        {"b.md": "---\ntitle: 'Red car'\n---\n", "a.md": "car", "gone.md": "car"},
        [(1, "M", "b.md", "x y"), (2, "D", "gone.md", ""), (2, "A", "new.md", "n"), (3, "M", "a.md", "late")],
        "a.md\tb.md\t2\ngone.md\tb.md\t1\nb.md\tb.md\t1\nb.md\ta.md\t1\nb.md\ta.md\t1\n",
    )
    data = read_refresh_data("toy", folder, weeks=2)
    assert data.pages == ("a.md", "b.md")
    assert data.week.tolist() == [0, 0, 1]
    assert data.in_links.tolist() == [1, 2]
    assert data.updates == 1
    assert data.changed_share.tolist() == [0.0, 0.0, 1.0]
    assert data.workloads["site"].frequency.tolist() == [3.0]


def test_shares_of_changed_shingles(tmp_path: Path) -> None:
    """One word of ten replaced at the end: one run of five of six."""
    words = [f"w{i}" for i in range(10)]
    folder = write_site(tmp_path, {"a.md": " ".join(words)}, [(1, "M", "a.md", " ".join([*words[:9], "new"]))])
    assert read_refresh_data("toy", folder).changed_share.tolist() == [0.0, 1 - 5 / 7]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "line 1"),
        ('{"week": "x", "status": "M", "path": "a", "text": ""}', "week 'x'"),
        ('{"week": 1}', "no status"),
    ],
)
def test_broken_weeks_are_told(tmp_path: Path, line: str, told: str) -> None:
    """With file, line and remedy."""
    folder = write_site(tmp_path, {"a.md": "car"}, [])
    (folder / "weeks.jsonl").write_text(line)
    with pytest.raises(InputFileError, match=told) as caught:
        read_refresh_data("toy", folder)
    assert "weeks.jsonl" in str(caught.value)


def test_the_replay_is_as_long_as_the_file(tmp_path: Path) -> None:
    folder = write_site(tmp_path, {"a.md": "car"}, [(1, "M", "a.md", "x"), (5, "A", "new.md", "n")])
    data = read_refresh_data("toy", folder)
    assert data.weeks == 5
    assert data.notes == ("1 pages: 1% a week is 0 pages; at least 51 are needed.",)
    write_site(tmp_path, {"a.md": "car"}, [(48, "M", "a.md", "x"), (49, "M", "a.md", "y"), (60, "D", "a.md", "")])
    data = read_refresh_data("toy", folder)
    assert (data.weeks, data.updates) == (48, 1)
    assert data.notes[0] == "weeks.jsonl: weeks after 48 are left out (2 lines)."


@pytest.mark.parametrize("weeks", [[], [(49, "M", "a.md", "x")]])
def test_without_a_change_there_is_nothing_to_replay(tmp_path: Path, weeks: list[tuple[int, str, str, str]]) -> None:
    folder = write_site(tmp_path, {"a.md": "car"}, weeks)
    with pytest.raises(InputFileError, match="nothing changes in the weeks 1 to 48") as caught:
        read_refresh_data("toy", folder)
    assert "Give a line for each page that changed" in str(caught.value)


def test_lines_that_are_no_part_of_the_replay_are_told(tmp_path: Path) -> None:
    """Of an added page all lines are good, though it does not count."""
    good = [(week, "M", "a.md", f"w{week}") for week in (1, 2, 3, 4)]
    new = [(1, "A", "new.md", "n"), (2, "M", "new.md", "n2"), (3, "D", "new.md", "")]
    bad = [(2, "R100", "a.md", "b"), (0, "D", "a.md", ""), (9, "M", "other.md", "x"), (9, "D", "else.md", "")]
    folder = write_site(tmp_path, {"a.md": "car"}, [*good, *new, *bad])
    data = read_refresh_data("toy", folder)
    assert (data.count, data.updates, data.weeks) == (1, 4, 4)
    assert data.notes[0] == (
        "weeks.jsonl: 4 of 11 lines were bad and left out (line 8: status 'R100' is none of A, M, D; line 9: week 0 is "
        "the start, whose texts are in base.jsonl; line 10: 'other.md' is not in base.jsonl and was never added; …)."
    )
    assert data.describe()["note 1"] == data.notes[0]


def test_a_line_of_another_status_needs_no_text(tmp_path: Path) -> None:
    folder = write_site(tmp_path, {"a.md": "car"}, [(1, "M", "a.md", "x")])
    with (folder / "weeks.jsonl").open("a") as file:
        file.write('\n{"week": 1, "status": "T", "path": "a.md"}\n')
    assert "line 2: status 'T'" in read_refresh_data("toy", folder).notes[0]


def test_a_file_of_which_most_lines_are_no_part_is_refused(tmp_path: Path) -> None:
    folder = write_site(
        tmp_path, {"a.md": "car"}, [(1, "M", "a.md", "x"), (1, "M", "b.md", "x"), (1, "M", "c.md", "x")]
    )
    with pytest.raises(InputFileError, match=r"line 2: 'b\.md' is not in base\.jsonl"):
        read_refresh_data("toy", folder)


@pytest.mark.parametrize(("name", "pages", "updates"), [("mdn", 11_524, 18_893), ("k8s", 1_728, 1_564)])
def test_sizes_of_the_real_sites(shared_data: Path, name: str, pages: int, updates: int) -> None:
    """As the protocol states them."""
    data = read_refresh_data(name, shared_data / name)
    assert (data.count, data.updates, data.weeks) == (pages, updates, 48)
    assert len(data.notes) == 1
    assert "weeks after 48 are left out" in data.notes[0]
    assert data.describe()["updates"] == updates
