"""The calls about the crawl, and the numbers for Prometheus."""

from __future__ import annotations

import re
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families
from tests.crawl.crawling import set_policy
from tests.serve.conftest import ROOT, make_client, wait_for
from tests.serve.filling import SEED, fill, sample_pages

from bowerbird.crawl.measurements import Measurement, keep_measurement
from bowerbird.crawl.settings import load_settings
from bowerbird.crawl.study import make_study
from bowerbird.crawl.view import CrawlView
from bowerbird.serve import dashboard_survey
from bowerbird.serve.app import create_app
from bowerbird.serve.service import BusyError
from bowerbird.serve.status import finite
from bowerbird.store.folder import CrawlFolder, WriterLock
from bowerbird.store.repository import Repository


def test_status_is_that_of_the_crawl(client: TestClient) -> None:
    status = client.get("/api/status").json()
    assert (status["fetched"], status["indexed"], status["running"]) == (29, 29, False)
    assert status["known"] == status["frontier"] + status["fetched"]
    assert status["outcomes"] == {"ok": 29}


def test_explain_a_url(client: TestClient) -> None:
    story = client.get("/api/explain", params={"url": "http://birds.example/kinds/bird-1"}).json()
    assert (story["state"], story["fetches"], story["history"][0]["outcome"]) == ("fetched", 1, "ok")
    assert story["bid"]["tree"]["children"]
    assert client.get("/api/explain", params={"url": SEED}).json()["state"] == "new"


def test_what_a_study_found_is_told(folder: Path) -> None:
    with make_client(create_app(folder, rate_per_s=0)) as client:
        assert client.get("/api/status").json()["study"] is None
    set_policy(folder, "rw")
    make_study(CrawlFolder(folder), load_settings(folder / "bowerbird.toml"), "rw", time.time())
    with make_client(create_app(folder, rate_per_s=0)) as client:
        study = client.get("/api/status").json()["study"]
        assert (study["method"], study["kind"]) == ("rw", "prior")
        answer = client.get("/api/explain", params={"url": SEED})
        assert answer.status_code == 200, answer.text
        assert '"name":"calibration","value":"prior"' in answer.text


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://nowhere.example/", 404),
        ("mailto:x@y", 400),
        ("http://", 400),
        ("", 400),
        ("http://a/" + "b" * 9000, 400),
    ],
)
def test_explain_says_what_it_does_not_know(client: TestClient, url: str, code: int) -> None:
    answer = client.get("/api/explain", params={"url": url})
    assert answer.status_code == code
    assert isinstance(answer.json()["detail"], str)


def test_quality_is_null_until_it_was_measured(client: TestClient, folder: Path) -> None:
    assert client.get("/api/quality").json() == {"latest": None, "series": []}
    for number in (1, 2):
        causes = {"rose": 0.1, "fell": 0.05, "unfetched": 0.2, "gone": 0.0}
        made = Measurement(time.time() + number, 0.6 + number / 100, 0.5, 0.7, 40, causes=causes)
        keep_measurement(CrawlFolder(folder), made)
    quality = client.get("/api/quality").json()
    assert [each["quality"] for each in quality["series"]] == [0.61, 0.62]
    assert quality["latest"] == quality["series"][-1]
    assert quality["latest"]["causes"]["unfetched"] == 0.2
    assert "bowerbird_quality 0.62" in client.get("/metrics").text


def test_slow_looks_keep_nobody_else_waiting_and_share_one_loading(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, began, loaded = threading.Event(), threading.Event(), []

    class SlowView(CrawlView):
        def __init__(self, root: Path) -> None:
            loaded.append(root)
            began.set()
            assert gate.wait(20)
            super().__init__(root)

    monkeypatch.setattr(dashboard_survey, "CrawlView", SlowView)
    asked = {"url": "http://birds.example/kinds/bird-1"}
    with (
        make_client(create_app(folder, rate_per_s=0)) as client,
        ThreadPoolExecutor(3) as pool,
        ThreadPoolExecutor(1) as quick,
    ):
        try:
            slow = [pool.submit(client.get, "/api/explain", params=asked) for _ in range(3)]
            assert began.wait(10)
            assert "29 pages" in quick.submit(client.get, "/").result(10).text
            assert quick.submit(client.get, "/metrics").result(10).status_code == 200
            assert not any(each.done() for each in slow)
        finally:
            gate.set()
        assert [each.result(20).json()["state"] for each in slow] == ["fetched"] * 3
        assert client.get("/api/status").json()["fetched"] == 29
        assert client.get("/explain", params=asked).status_code == 200
    assert len(loaded) == 1


def test_the_count_is_the_last_known_when_too_many_wait(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = create_app(folder, rate_per_s=0)

    async def full(work: object) -> int:
        raise BusyError

    with make_client(app) as client:
        assert "29 pages" in client.get("/").text
        monkeypatch.setattr(app.state.parts.service._desk, "ask", full)
        assert "29 pages" in client.get("/").text


def test_numbers_that_json_cannot_say() -> None:
    assert finite({"a": float("inf"), "b": [1.0, float("nan")], "c": "x"}) == {"a": None, "b": [1.0, None], "c": "x"}


def samples(client: TestClient) -> dict[str, float]:
    found = {}
    for family in text_string_to_metric_families(client.get("/metrics").text):
        for sample in family.samples:
            labels = ",".join(f"{key}={value}" for key, value in sorted(sample.labels.items()))
            found[sample.name + (f"{{{labels}}}" if labels else "")] = sample.value
    return found


def test_metrics_count_what_happened(folder: Path) -> None:
    with make_client(create_app(folder, rate_per_s=3, record_every_s=0.02)) as client:
        before = samples(client)
        assert before["bowerbird_index_documents"] == 29
        assert before["bowerbird_crawl_fetches_total{kind=new,outcome=ok}"] == 29
        assert before["bowerbird_crawl_urls"] == 30
        assert before["bowerbird_crawl_running"] == 0
        token = client.get("/api/search", params={"q": "bowerbird"}).json()["results"][0]["click"]
        client.get("/search", params={"q": "xyzzyplugh"})
        client.get("/click", params={"t": token})
        while client.get("/nothing").status_code != 429:
            pass
        time.sleep(0.5)
        after = samples(client)
    assert after["bowerbird_searches_total{surface=api}"] == after["bowerbird_searches_total{surface=page}"] == 1
    assert after["bowerbird_searches_empty_total"] == 1
    assert after["bowerbird_search_seconds_count"] == 2
    assert after["bowerbird_impressions_total"] == 10
    assert after["bowerbird_clicks_total"] == 1
    assert after["bowerbird_events_written_total"] == 13
    assert after["bowerbird_events_dropped_total"] == after["bowerbird_events_waiting"] == 0
    assert after["bowerbird_rate_limited_total"] >= 1


def test_the_crawl_is_read_at_most_every_few_seconds(client: TestClient, folder: Path) -> None:
    assert samples(client)["bowerbird_crawl_urls"] == 30
    fill(folder, [page for page in sample_pages() if page.url.startswith("https://copies")])
    assert samples(client)["bowerbird_crawl_fetches_total{kind=new,outcome=ok}"] == 29


def test_without_a_crawl_the_frontier_stays_and_the_price_is_absent(folder: Path) -> None:
    def look() -> tuple[float | None, float | None]:
        with make_client(create_app(folder, rate_per_s=0)) as client:
            found = samples(client)
        return found.get("bowerbird_crawl_frontier_urls"), found.get("bowerbird_crawl_price")

    assert look() == (None, None)
    lock = WriterLock(CrawlFolder(folder))
    repository = Repository(CrawlFolder(folder), write=True)
    repository.set_meta("live", f'{{"at": {time.time()}, "price": 1.5, "frontier": 7}}')
    repository.commit()
    repository.close()
    assert look() == (7, 1.5)
    lock.release()
    assert look() == (7, None)


def test_a_folder_that_vanished_is_not_to_be_made_anew(
    client: TestClient, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.rmtree(folder)
    assert client.get("/api/status").status_code == 503
    client.get("/search", params={"q": "bowerbird"})
    assert wait_for(lambda: "events of searchers are lost" in caplog.text)
    assert caplog.text.count("the crawl folder is no longer there") == 2
    assert "bowerbird init" not in caplog.text


def test_the_page_of_metrics_names_just_those_there_are(client: TestClient) -> None:
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `(bowerbird_\w+)", text, re.MULTILINE)
    served = re.findall(r"^# TYPE (\S+) (\S+)$", client.get("/metrics").text, re.MULTILINE)
    assert sorted(documented) == sorted(name for name, _ in served)
    for name, kind in served:
        row = re.search(rf"^\| `{name}(?:`|{{).*$", text, re.MULTILINE)
        assert row, name
        assert f"| {kind} |" in row[0]
