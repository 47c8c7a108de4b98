from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bowerbird.index import tantivy_folder, tantivy_index
from bowerbird.index.protocol import Document, SearchIndex
from bowerbird.index.tantivy_index import FEW_HITS, MAX_DEPTH, TantivyIndex
from bowerbird.model.errors import DiskFullError, FolderError, IndexHeldError


def _page(page: int, text: str = "some text", **more: object) -> Document:
    values: dict[str, object] = {
        "url": f"https://www.example.org/{page}",
        "title": f"Page {page}",
        "anchors": "",
        "url_words": "",
        "host": "www.example.org",
        "language": "en",
        "fetched_at": 1000.5 + page,
    }
    return Document(page=page, text=text, **{**values, **more})  # type: ignore[arg-type]  # fields of many types


def _found(index: SearchIndex, query: str) -> list[int]:
    return [hit.page for hit in index.search(query, limit=100).hits]


@pytest.fixture
def writer(tmp_path: Path):
    with TantivyIndex.open(tmp_path / "index", write=True, heap_bytes=15 << 20) as index:
        yield index


def test_a_hit_has_all_that_was_given(writer: TantivyIndex) -> None:
    writer.add(_page(7, "a word in the text", title="東京 title", language="de-AT", duplicate_of=3))
    writer.commit()
    answer = writer.search("word")
    assert (answer.total, answer.query) == (1, "word")
    hit = answer.hits[0]
    assert hit.score > 0
    assert (hit.page, hit.url, hit.title, hit.language, hit.fetched_at, hit.duplicate_of) == (
        7,
        "https://www.example.org/7",
        "東京 title",
        "de-AT",
        1007.5,
        3,
    )
    assert [hit.snippet[start:end] for start, end in hit.highlights] == ["word"]


def test_nothing_is_seen_before_the_commit(writer: TantivyIndex) -> None:
    writer.add(_page(1))
    assert writer.count() == 0 and writer.search("some").total == 0
    writer.commit()
    assert writer.count() == 1


def test_replace_and_remove(writer: TantivyIndex) -> None:
    writer.add(_page(1, "alpha"))
    writer.add(_page(2, "alpha"))
    writer.commit()
    writer.add(_page(1, "beta"), replace=True)
    writer.remove(2)
    writer.remove(99)
    writer.commit()
    assert _found(writer, "alpha") == []
    assert _found(writer, "beta") == [1]
    assert writer.pages().tolist() == [1]


def test_weights_put_title_before_anchors_before_url_before_text(writer: TantivyIndex) -> None:
    for page, where in enumerate(["text", "url_words", "anchors", "title"]):
        fields = {"title": "other words", "anchors": "other words", "url_words": "other words"}
        text = "other words"
        if where == "text":
            text = "needle words"
        else:
            fields[where] = "needle words"
        writer.add(_page(page, text, **fields))
    writer.commit()
    assert _found(writer, "needle") == [3, 2, 1, 0]


def test_query_syntax(writer: TantivyIndex) -> None:
    writer.add(_page(1, "small red car", host="a.example.org"))
    writer.add(_page(2, "red small car", host="b.example.org", language="fr-CA"))
    writer.add(_page(3, "small red bicycle", host="example.com"))
    writer.commit()
    assert _found(writer, '"small red"') == [1, 3] or _found(writer, '"small red"') == [3, 1]
    assert set(_found(writer, "red -bicycle")) == {1, 2}
    assert set(_found(writer, "red site:example.org")) == {1, 2}
    assert _found(writer, "red site:a.example.org") == [1]
    assert set(_found(writer, "red -site:a.example.org")) == {2, 3}
    assert _found(writer, "red lang:fr") == [2]
    assert set(_found(writer, "site:example.org")) == {1, 2}
    assert _found(writer, '"car red"') == []
    assert _found(writer, "-red") == []


def test_pages_with_some_words_follow_those_with_all(writer: TantivyIndex) -> None:
    writer.add(_page(1, "red red red red"))
    writer.add(_page(2, "filler " * 50 + "red car"))
    for page in range(10, 15):
        writer.add(_page(page, "a car"))
    writer.commit()
    answer = writer.search("red car", limit=100)
    assert answer.hits[0].page == 2
    assert answer.total == 7 and {hit.page for hit in answer.hits} == {1, 2, *range(10, 15)}
    singly = [writer.search("red car", limit=1, offset=offset).hits[0].page for offset in range(7)]
    assert singly == [hit.page for hit in answer.hits]


def test_enough_pages_with_all_words_are_not_diluted(writer: TantivyIndex) -> None:
    for page in range(FEW_HITS):
        writer.add(_page(page, "red car"))
    writer.add(_page(50, "red bicycle"))
    writer.commit()
    assert set(_found(writer, "red car")) == set(range(FEW_HITS))


@pytest.mark.parametrize(("limit", "offset"), [(0, 0), (-1, -1), (10, 10**30), (10**30, 0), (5, MAX_DEPTH)])
def test_any_limit_and_offset(writer: TantivyIndex, limit: int, offset: int) -> None:
    writer.add(_page(1))
    writer.commit()
    answer = writer.search("some", limit=limit, offset=offset)
    assert answer.total == 1
    assert len(answer.hits) == (1 if limit == 10**30 else 0)


@pytest.fixture(scope="module")
def small_index(tmp_path_factory: pytest.TempPathFactory):
    with TantivyIndex.open(tmp_path_factory.mktemp("small"), write=True, heap_bytes=15 << 20) as index:
        for page in range(30):
            index.add(_page(page, f"a b site lang host -ab :- 東京 {page}"))
        index.commit()
        yield index


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.text() | st.text(alphabet="-\":()[]{}^~*?\\/+&|!<>' ab東\ud800\x00\n", max_size=40))
def test_no_query_is_an_error(small_index: TantivyIndex, query: str) -> None:
    answer = small_index.search(query)
    assert len(answer.hits) <= 10 and answer.total >= len(answer.hits)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "remove", "commit"]), st.integers(0, 5), st.sampled_from("abc")),
        max_size=30,
    )
)
def test_agrees_with_a_model(steps: list[tuple[str, int, str]]) -> None:
    now: dict[int, str] = {}
    committed: dict[int, str] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        TantivyIndex.open(Path(folder), write=True, heap_bytes=15 << 20) as index,
    ):
        for step, page, word in steps:
            if step == "add":
                index.add(_page(page, f"word{word}"), replace=True)
                now[page] = word
            elif step == "remove":
                index.remove(page)
                now.pop(page, None)
            else:
                index.commit()
                committed = dict(now)
        assert index.pages().tolist() == sorted(committed)
        for word in "abc":
            assert set(_found(index, f"word{word}")) == {p for p, w in committed.items() if w == word}


@given(text=st.text(), url=st.text(), host=st.text(), language=st.text())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_document_is_taken(writer: TantivyIndex, text: str, url: str, host: str, language: str) -> None:
    before = writer.count()
    writer.add(_page(before, text, title=text, url=url, host=host, language=language, description=text))
    writer.commit()
    assert writer.count() == before + 1


def test_reader_before_writer_and_along_with_it(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    reader = TantivyIndex.open(folder, write=False)
    assert reader.search("some").total == 0
    assert reader.count() == 0 and reader.pages().tolist() == []
    assert not folder.exists()
    with TantivyIndex.open(folder, write=True) as writer:
        assert reader.count() == 0
        for page in range(3):
            writer.add(_page(page))
            writer.commit()
            assert reader.search("some").total == page + 1
        with pytest.raises(FolderError, match="another process is writing"):
            TantivyIndex.open(folder, write=True)
    assert reader.count() == 3
    with pytest.raises(FolderError, match="not open for writing"):
        reader.add(_page(9))
    reader.close()
    with pytest.raises(FolderError, match="closed"):
        reader.search("some")


@pytest.mark.parametrize("mark", [b'{"schema": 999}', b"{}", b"not json", b"[]"])
@pytest.mark.parametrize("write", [True, False])
def test_other_versions_are_refused(tmp_path: Path, mark: bytes, write: bool) -> None:
    TantivyIndex.open(tmp_path, write=True).close()
    (tmp_path / "bowerbird-index.json").write_bytes(mark)
    with pytest.raises(FolderError, match="build the index again"):
        TantivyIndex.open(tmp_path, write=write)


@pytest.mark.parametrize("write", [True, False])
def test_damaged_or_foreign_indexes_are_refused(tmp_path: Path, write: bool) -> None:
    TantivyIndex.open(tmp_path, write=True).close()
    (tmp_path / "meta.json").write_text("{}")
    with pytest.raises(FolderError, match="build the index again"):
        TantivyIndex.open(tmp_path, write=write)
    (tmp_path / "bowerbird-index.json").unlink()
    with pytest.raises(FolderError, match="version None"):
        TantivyIndex.open(tmp_path, write=write)


def test_a_full_disk_has_its_own_error(tmp_path: Path) -> None:
    with pytest.raises(DiskFullError, match="free some space"):
        tantivy_folder.fail(tmp_path, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))


_WRITE_UNTIL_KILLED = """
import sys
from pathlib import Path
from bowerbird.index.protocol import Document
from bowerbird.index.tantivy_index import TantivyIndex

folder, log, first, batch = Path(sys.argv[1]), open(sys.argv[2], "a"), int(sys.argv[3]), int(sys.argv[4])
index = TantivyIndex.open(folder, write=True, heap_bytes=15 << 20)
page = first
while True:
    for _ in range(batch):
        words = " ".join(f"word{(page * 31 + n) % 997}" for n in range(200))
        index.add(Document(page, f"http://h/{page}", "t", words, "", "", "h", "en", 0.0))
        page += 1
    index.commit()
    log.write(f"{page}\\n")
    log.flush()
"""


def test_killed_at_any_moment_the_index_holds_a_commit(tmp_path: Path) -> None:
    folder, log = tmp_path / "index", tmp_path / "log"
    rng = random.Random(5)
    batch, first = 100, 0
    for _ in range(6):
        command = [sys.executable, "-c", _WRITE_UNTIL_KILLED, str(folder), str(log), str(first), str(batch)]
        with subprocess.Popen(command) as process:
            began = time.monotonic()
            commits = log.read_text().count("\n") if log.exists() else 0
            while not log.exists() or log.read_text().count("\n") < commits + 3:
                assert process.poll() is None and time.monotonic() - began < 30
                time.sleep(0.005)
            time.sleep(rng.random() * 0.1)
            process.send_signal(signal.SIGKILL)
            process.wait()
        acknowledged = int(log.read_text().split()[-1])
        reader = TantivyIndex.open(folder, write=False)
        pages = reader.pages().tolist()
        assert pages == list(range(len(pages)))
        assert len(pages) in {acknowledged, acknowledged + batch}
        assert reader.search("word1").total > 0
        reader.close()
        first = len(pages)
    with TantivyIndex.open(folder, write=True) as writer:  # the dead writer's lock is gone
        writer.add(_page(first))
        writer.commit()
        assert writer.count() == first + 1
    assert json.loads((folder / "meta.json").read_bytes())["segments"]


def _used_bytes() -> int:
    """Bytes that are in use on glibc's heap."""
    fields = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    kind = type("MallInfo", (ctypes.Structure,), {"_fields_": [(name, ctypes.c_size_t) for name in fields]})
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = kind
    return int(mallinfo2().uordblks)


def test_an_engine_that_is_opened_anew_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tantivy_index, "RENEW_AFTER", 3)
    monkeypatch.setattr(tantivy_index, "RENEW_PAUSE", 0.0)
    engines = set()
    with (
        TantivyIndex.open(tmp_path / "index", write=True, heap_bytes=15 << 20) as writer,
        TantivyIndex.open(tmp_path / "index", write=False) as reader,
    ):
        for number in range(10):
            writer.add(_page(number % 4, f"word{number}"), replace=number >= 4)
            writer.commit()
            assert _found(reader, f"word{number}") == _found(writer, f"word{number}") == [number % 4]
            assert reader.count() == min(number + 1, 4)
            engines |= {id(writer._writer), id(reader._index)}
        with pytest.raises(IndexHeldError):
            TantivyIndex.open(tmp_path / "index", write=True, heap_bytes=15 << 20)
    assert len(engines) > 2


def test_a_slow_opening_is_not_repeated_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tantivy_index, "RENEW_AFTER", 1)
    monkeypatch.setattr(tantivy_index, "RENEW_PAUSE", 1e9)
    with TantivyIndex.open(tmp_path / "index", write=True, heap_bytes=15 << 20) as writer:
        first = writer._writer
        for number in range(3):
            writer.add(_page(number))
            writer.commit()
            first, before = writer._writer, first
            assert (first is before) == (number > 0)


def test_a_reader_looks_at_a_commit_once(tmp_path: Path) -> None:
    with (
        TantivyIndex.open(tmp_path / "index", write=True, heap_bytes=15 << 20) as writer,
        TantivyIndex.open(tmp_path / "index", write=False) as reader,
    ):
        writer.add(_page(1))
        writer.commit()
        for _ in range(5):
            assert reader.count() == 1
        assert reader._uses == 1


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallinfo2 is glibc's")
def test_memory_of_an_index_that_is_only_updated_stays_level(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def grown(renew_after: int) -> int:
        monkeypatch.setattr(tantivy_index, "RENEW_AFTER", renew_after)
        monkeypatch.setattr(tantivy_index, "RENEW_PAUSE", 0.0)
        folder = tmp_path / f"index{renew_after}"
        with (
            TantivyIndex.open(folder, write=True, heap_bytes=15 << 20) as writer,
            TantivyIndex.open(folder, write=False) as reader,
        ):
            used = []
            for number in range(241):
                writer.add(_page(number % 3), replace=number >= 3)
                writer.commit()
                reader.count()
                if number % 40 == 0:  # just after both were opened anew, with 40
                    used.append(_used_bytes())
        return used[-1] - used[1]

    assert grown(10**9) > 200_000
    assert grown(40) < 100_000
