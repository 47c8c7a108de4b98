"""Whatever a client sends gets a proper answer, and the next client is served as before."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import grpc
import pytest
from tests.integrations.conftest import PLAIN
from tests.integrations.frontier_client import Client, Service

INVALID, MISSING = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND
TOO_MUCH = grpc.StatusCode.RESOURCE_EXHAUSTED
OK, SKIPPED, FAIL = 0, 1, 2
MOST_32, MOST_64 = 2**32 - 1, 2**64 - 1

NO_URLS = ["", " ", "x", "http://", "mailto:a@b.example", "http://[::1", "http://a.example:99999/", "javascript:0"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One for all of them: each must leave it as well as it found it."""
    one = Service(tmp_path_factory.mktemp("bad") / "service", "--policy", PLAIN).start()
    yield one
    code, said = one.stop()
    assert code == 0
    assert "Traceback" not in said


@pytest.fixture(autouse=True)
def still_well(client: Client, service: Service) -> Iterator[None]:
    client.ask("DeleteCrawl", value="DEFAULT")
    yield
    assert service.process is not None
    assert service.process.poll() is None
    url = "http://afterwards.example/"
    assert client.put([client.found(url)]) == {url: OK}
    assert client.get(key="afterwards.example") == [url]


def test_what_is_no_url_is_skipped(client: Client) -> None:
    items = [client.found(url) for url in NO_URLS] + [client.known(url) for url in NO_URLS]
    items += [client.found("http://a.example/" + "x" * 3000), client.pb.URLItem(), client.pb.URLItem(ID="empty")]
    for n, item in enumerate(items):
        item.ID = str(n)
    assert client.put(items) == {str(n): SKIPPED for n in range(len(items))}
    assert client.put_batches([client.info(url) for url in NO_URLS]) == [[SKIPPED] * len(NO_URLS)]
    assert client.ask("CountURLs").value == 0


def test_an_acknowledgement_without_an_id_names_the_url(client: Client) -> None:
    item = client.found("http://a.example/")
    item.ID = ""
    assert client.put([item]) == {"http://a.example/": OK}


def test_keys_and_crawls_that_cannot_be(client: Client) -> None:
    url = "http://a.example/"
    assert client.put([client.found(url, key="k" * 256)]) == {url: SKIPPED}
    assert client.put([client.found(url, crawl="c" * 300)]) == {url: SKIPPED}
    assert client.put([client.found(url, key="k" * 255, crawl="../../etc/passwd")]) == {url: OK}
    assert client.get("../../etc/passwd") == [url]
    assert client.ask("DeleteCrawl", value="../../etc/passwd").value == 1
    for call in ("GetStats", "ListQueues", "CountURLs", "PurgeURLs", "ListURLs"):
        assert client.refusal(call, crawlID="nobody's") is MISSING
    assert client.refusal("DeleteQueue", key="x", crawlID="nobody's") is MISSING
    assert client.refusal("GetURLStatus", url=url) is MISSING
    assert client.refusal("GetURLStatus", url="no url") is MISSING
    assert client.refusal("SetCrawlLimit", key="nobody's", limit=1) is MISSING
    assert client.refusal("DeleteQueue") is INVALID
    assert client.refusal("BlockQueueUntil", time=1) is INVALID
    assert client.refusal("SetCrawlLimit", limit=1) is INVALID
    assert client.ask("DeleteQueue", key="nobody's").value == 0
    assert client.get(key="nobody's") == []


def test_a_key_that_no_queue_can_have_is_a_mistake_everywhere(client: Client) -> None:
    longest, too_long = "ä" * 255, "ä" * 256
    url = "http://a.example/"
    calls: dict[str, dict[str, object]] = {
        "GetURLs": {},
        "GetStats": {},
        "DeleteQueue": {},
        "BlockQueueUntil": {"time": 1},
        "SetDelay": {"delay_requestable": 1},
        "SetCrawlLimit": {"limit": 1},
        "GetURLStatus": {"url": url},
        "ListURLs": {},
        "CountURLs": {},
        "PurgeURLs": {"days": 1},
    }
    keyed = {
        name
        for name, call in client.pb.DESCRIPTOR.services_by_name["URLFrontier"].methods_by_name.items()
        if "key" in call.input_type.fields_by_name
    }
    assert set(calls) == keyed
    for name, fields in calls.items():
        assert client.refusal(name, key=too_long, **fields) is INVALID, name
    assert list(client.ask("ListQueues", include_inactive=True).values) == []
    for name, fields in calls.items():
        if name not in ("GetURLStatus", "SetCrawlLimit", "DeleteQueue"):
            client.ask(name, key=longest, **fields)
    assert list(client.ask("ListQueues", include_inactive=True).values) == [longest]


def test_numbers_at_their_ends(client: Client) -> None:
    client.put([client.found("http://a.example/1"), client.known("http://a.example/2", MOST_64)])
    assert client.ask("GetURLStatus", url="http://a.example/2").known.refetchable_from_date == MOST_32
    client.ask("BlockQueueUntil", key="a.example", time=MOST_64)
    assert client.get() == []
    client.ask("BlockQueueUntil", key="a.example", time=0)
    client.ask("SetCrawlLimit", key="a.example", limit=MOST_32)
    client.ask("SetDelay", key="b.example", delay_requestable=MOST_32)
    most = {"max_urls_per_queue": MOST_32, "max_queues": MOST_32, "delay_requestable": MOST_32}
    assert client.get(**most) == ["http://a.example/1"]
    assert client.ask("ListURLs", start=MOST_32, size=MOST_32) == []
    assert len(client.ask("ListURLs", size=MOST_32)) == 2
    assert list(client.ask("ListQueues", start=MOST_32, size=MOST_32).values) == []
    assert client.ask("PurgeURLs", days=MOST_32).value == 0
    assert client.refusal("SetLogLevel", package="bowerbird", level=17) is INVALID
    assert client.refusal("SetLogLevel", package="nobody's", level=1) is INVALID
    odd = {"clicks": "-3", "depth": "deep", "changed": "perhaps", "status": "99999", "referrer": "no url", "anchor": ""}
    assert client.put([client.known("http://a.example/2", 5, **odd), client.found("http://a.example/3", **odd)]) == {
        "http://a.example/2": OK,
        "http://a.example/3": OK,
    }


def test_metadata_of_any_kind_comes_back_as_it_was(client: Client) -> None:
    info = client.info("http://a.example/")
    info.metadata["none"]  # a name without a value
    info.metadata["many"].values.extend(["1", "", "drei\x00", "четыре", "🐦" * 1000])
    info.metadata[""].values.append("no name")
    client.put_batches([info])
    (found,) = client.get_infos()
    assert found.metadata == info.metadata


def test_what_is_too_large_is_refused_and_large_batches_are_taken(client: Client) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        client.put_batches([client.info("http://a.example/", blob="x" * (5 << 20))])
    assert refused.value.code() is TOO_MUCH
    began = time.monotonic()
    (statuses,) = client.put_batches([client.info(f"http://h{n % 300}.example/{n}") for n in range(30_000)])
    assert statuses == [OK] * 30_000
    assert time.monotonic() - began < 20
    assert len(client.get()) == 10_000  # one answer is bounded
    assert client.ask("GetStats").inProcess == 10_000


def test_metadata_has_a_bound_of_its_own(client: Client) -> None:
    large, fits = "x" * (17 << 10), "x" * (15 << 10)
    found, known, small = (f"http://a.example/{name}" for name in ("found", "known", "small"))
    assert client.put([client.found(found, blob=large), client.found(small, blob=fits)]) == {found: SKIPPED, small: OK}
    assert client.put([client.known(known, 1, status="404", blob=fits)]) == {known: OK}
    assert client.put([client.known(known, 1, status="200", blob=large)]) == {known: OK}  # its fetch took place
    infos = {info.url: info for info in client.get_infos()}
    assert set(infos) == {known, small}
    assert dict(infos[known].metadata) == {}
    assert infos[small].metadata["blob"].values == [fits]
    assert client.ask("GetStats").counts["metadata_too_large"] == 2
    far = "http://a.example/far"
    assert client.put([client.found(f"{far}#{'x' * (1 << 20)}")]) == {f"{far}#{'x' * (1 << 20)}": OK}
    assert client.get() == [far]  # a spelling that no URL can have is not kept


def test_what_has_much_metadata_goes_out_bit_by_bit(client: Client) -> None:
    urls = {f"http://h{n % 7}.example/{n}" for n in range(1_200)}
    for first in range(0, 1_200, 200):
        part = sorted(urls)[first : first + 200]
        client.put_batches([client.info(url, blob="x" * (16_000)) for url in part])
    first_time = client.get_infos(delay_requestable=600)
    assert 400 < len(first_time) < 600  # 8 MB
    assert client.ask("GetStats").inProcess == len(first_time)  # the others are with nobody
    out = [info.url for info in first_time]
    while more := client.get(delay_requestable=600):
        out += more
    assert len(out) == len(set(out))
    assert set(out) == urls
    assert {len(item.discovered.info.metadata["blob"].values[0]) for item in client.ask("ListURLs", size=9_999)} == {
        16_000
    }


def test_bytes_that_are_no_message(client: Client) -> None:
    rng = random.Random(1)
    for name in ("PutURLs", "PutDiscovered", "GetURLs", "GetStats", "NoSuchCall"):
        path = f"/urlfrontier.URLFrontier/{name}"
        for _ in range(5):
            data = rng.randbytes(rng.randrange(1, 200))
            try:
                if name.startswith("Put"):
                    list(client.channel.stream_stream(path)(iter([data, data]), timeout=10))
                else:
                    list(client.channel.unary_stream(path)(data, timeout=10))
            except grpc.RpcError as error:
                assert error.code() in (INVALID, grpc.StatusCode.UNIMPLEMENTED, MISSING)


def test_a_client_that_goes_away_in_the_middle(client: Client) -> None:
    client.put([client.found(f"http://h{n}.example/") for n in range(500)])
    stream = client.stub.GetURLs(client.pb.GetParams(crawlID=""), timeout=10)
    next(stream)
    stream.cancel()

    def endless() -> object:
        n = 0
        while True:
            n += 1
            yield client.found(f"http://endless.example/{n}")

    puts = client.stub.PutURLs(endless(), timeout=10)
    next(puts)
    puts.cancel()
    assert client.ask("CountURLs").value >= 501
