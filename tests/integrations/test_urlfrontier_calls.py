"""Every call of the interface does what the interface says."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import grpc
from google.protobuf import descriptor_pb2
from tests.crawl.crawling import run_command
from tests.integrations.conftest import Connect, Stubs
from tests.integrations.frontier_client import Client, Service

from bowerbird.integrations.urlfrontier.messages import describe
from bowerbird.lab.world import World, WorldServer, WorldSpec

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "frontier_client.py"
OK, SKIPPED, FAIL = 0, 1, 2


def test_the_messages_are_those_of_the_interface(stubs: Stubs) -> None:
    ours, theirs = describe(), descriptor_pb2.FileDescriptorProto()
    stubs[0].DESCRIPTOR.CopyToProto(theirs)

    def facts(file: descriptor_pb2.FileDescriptorProto) -> dict[str, object]:
        found: dict[str, object] = {}
        for message in file.message_type:
            for field in message.field:
                oneof = message.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else ""
                place = (field.number, field.label, field.type, field.type_name, oneof, field.proto3_optional)
                found[f"{message.name}.{field.name}"] = place
            found[f"{message.name} maps"] = sorted(
                (entry.name, *((field.name, field.type, field.type_name) for field in entry.field))
                for entry in message.nested_type
            )
            for enum in message.enum_type:
                found[f"{message.name}.{enum.name}"] = [(value.name, value.number) for value in enum.value]
        for method in file.service[0].method:
            found[f"rpc {method.name}"] = (
                method.input_type,
                method.output_type,
                method.client_streaming,
                method.server_streaming,
            )
        return found

    assert facts(ours) == facts(theirs)
    assert (ours.package, ours.service[0].name) == (theirs.package, theirs.service[0].name)


def test_a_tour_of_every_call(client: Client, service: Service) -> None:
    pb = client.pb
    assert client.ask("ListNodes").values == [f"127.0.0.1:{service.port}"]
    assert client.ask("ListCrawls").values == ["DEFAULT"]

    # in: one by one, and in batches; known URLs are skipped, and what is no URL too
    urls = [f"http://a.example/{n}" for n in range(3)]
    assert client.put([client.found(url) for url in (*urls, "no url")]) == {
        **dict.fromkeys(urls, OK),
        "no url": SKIPPED,
    }
    batch = [client.info("http://b.example/1", lang="en"), client.info(urls[0]), client.info("http://b.example/2")]
    assert client.put_batches(batch, []) == [[OK, SKIPPED, OK], []]
    assert client.put([client.found("http://c.example/", key="my own key", crawl="other")])["http://c.example/"] == OK
    assert sorted(client.ask("ListCrawls").values) == ["DEFAULT", "other"]
    assert client.ask("ListQueues", crawlID="other").values == ["my own key"]
    listed = client.ask("ListQueues", size=1)
    assert (listed.values, listed.total, listed.size, listed.crawlID) == (["a.example"], 2, 1, "DEFAULT")
    assert client.ask("ListQueues", start=1).values == ["b.example"]

    # counts
    stats = client.ask("GetStats")
    assert (stats.size, stats.inProcess, stats.numberOfQueues, stats.crawlID) == (5, 0, 2, "DEFAULT")
    assert dict(stats.counts) == {"completed": 0, "active_queues": 2, "metadata_too_large": 0}
    assert client.ask("GetStats", key="b.example").size == 2
    assert client.ask("CountURLs").value == 5
    assert client.ask("CountURLs", key="a.example").value == 3
    assert client.ask("CountURLs", filter="A.EXAMPLE").value == 0
    assert client.ask("CountURLs", filter="A.EXAMPLE", ignoreCase=True).value == 3

    # out: leased, with what came along
    assert client.ask("GetActive").state
    client.ask("SetActive", state=False)
    assert not client.ask("GetActive").state
    assert client.get() == []
    client.ask("SetActive", state=True)
    infos = client.get_infos(max_urls_per_queue=1, max_queues=5)
    assert sorted((info.url, info.key, info.crawlID) for info in infos) == [
        ("http://a.example/0", "a.example", "DEFAULT"),
        ("http://b.example/1", "b.example", "DEFAULT"),
    ]
    assert next(info for info in infos if info.key == "b.example").metadata["lang"].values == ["en"]
    assert client.ask("GetStats").inProcess == 2
    assert client.get(max_urls_per_queue=1) == []  # each queue has its fill with fetchers
    assert client.get(key="a.example", max_urls_per_queue=2) == ["http://a.example/1"]

    # dealt with: for good, or until a date
    later = int(time.time()) + 3600
    done = [client.known("http://a.example/0"), client.known("http://b.example/1", later, status="200")]
    assert set(client.put(done).values()) == {OK}
    stats = client.ask("GetStats")
    assert (stats.size, stats.inProcess, stats.counts["completed"]) == (4, 1, 1)
    status = client.ask("GetURLStatus", url="http://b.example/1")
    assert status.known.refetchable_from_date == later
    assert status.known.info.metadata["status"].values == ["200"]
    assert abs(status.creation_date - time.time()) < 60
    assert client.ask("GetURLStatus", url="http://a.example/0", key="a.example").known.refetchable_from_date == 0
    assert client.ask("GetURLStatus", url="http://a.example/2").WhichOneof("item") == "discovered"
    assert client.refusal("GetURLStatus", url="http://a.example/2", key="b.example") is grpc.StatusCode.NOT_FOUND
    everything = [(item.known or item.discovered).info.url for item in client.ask("ListURLs") if item.HasField("known")]
    assert sorted(everything) == ["http://a.example/0", "http://b.example/1"]
    names = [
        (item.known if item.HasField("known") else item.discovered).info.url
        for item in client.ask("ListURLs", start=1, size=2)
    ]
    assert names == ["http://a.example/1", "http://a.example/2"]
    assert len(client.ask("ListURLs", filter="/2")) == 2
    assert len(client.ask("ListURLs", filter="/2", start=1)) == 1

    # steering
    client.ask("BlockQueueUntil", key="b.example", time=int(time.time()) + 3600)
    assert client.get(key="b.example") == []
    assert "b.example" not in client.ask("ListQueues").values
    assert "b.example" in client.ask("ListQueues", include_inactive=True).values
    client.ask("BlockQueueUntil", key="b.example", time=0)
    client.ask("SetCrawlLimit", key="b.example", limit=1)  # one of it was fetched
    assert client.get(key="b.example") == []
    client.ask("SetCrawlLimit", key="b.example", limit=2)
    assert client.get(key="b.example") == ["http://b.example/2"]
    client.ask("SetDelay", key="a.example", delay_requestable=3600)
    client.put([client.known("http://a.example/1", 1), client.found("http://a.example/3")])
    assert client.get(key="a.example") == []
    client.ask("SetDelay", key="a.example", delay_requestable=0)
    assert sorted(client.get_within(5, key="a.example", max_urls_per_queue=9)) == [
        "http://a.example/1",
        "http://a.example/2",
        "http://a.example/3",
    ]
    client.ask("SetLogLevel", package="bowerbird.integrations", level=pb.LogLevelParams.DEBUG)
    client.get()
    client.ask("SetLogLevel", package="bowerbird.integrations", level=pb.LogLevelParams.ERROR)

    # away
    assert client.ask("PurgeURLs", key="a.example", days=1).value == 0
    time.sleep(max(0.0, status.creation_date + 1.05 - time.time()))
    assert client.ask("DeleteQueue", key="b.example").value == 2
    assert client.ask("ListQueues", include_inactive=True).values == ["a.example"]
    assert client.put([client.found("http://b.example/2")])["http://b.example/2"] == OK  # it is new again
    assert client.get(key="b.example") == ["http://b.example/2"]
    assert client.ask("DeleteCrawl", value="other").value == 1
    assert client.ask("ListCrawls").values == ["DEFAULT"]
    assert client.ask("DeleteCrawl", value="never was").value == 0
    time.sleep(1.1)
    assert client.ask("PurgeURLs", days=0).value == 5
    assert client.ask("CountURLs").value == 0

    assert client.called == set(pb.DESCRIPTOR.services_by_name["URLFrontier"].methods_by_name)
    code, said = service.stop()
    assert code == 0
    assert "GetURLs: " in said  # the log level took effect


def test_any_crawl_gives_from_all_of_them_in_turn(client: Client) -> None:
    client.put([client.found(f"http://{crawl}.example/{n}", crawl=crawl) for crawl in "xyz" for n in range(3)])
    firsts = {client.get_infos(None, max_queues=1, max_urls_per_queue=1)[0].crawlID for _ in range(3)}
    assert firsts == {"x", "y", "z"}
    rest = client.get_infos(None)
    assert {info.crawlID for info in rest} == {"x", "y", "z"}
    assert len(rest) == 6
    assert client.get("x") == []
    assert client.get("nobody's") == []


def test_urls_keep_the_spelling_that_they_came_with_and_are_one_all_the_same(client: Client) -> None:
    assert client.put([client.found("HTTP://Example.com:80/a/../b?utm_source=x#part")]) == {
        "HTTP://Example.com:80/a/../b?utm_source=x#part": OK
    }
    assert client.put([client.found("http://example.com/b")])["http://example.com/b"] == SKIPPED
    (info,) = client.get_infos()
    assert (info.url, info.key) == ("HTTP://Example.com:80/a/../b?utm_source=x#part", "example.com")
    assert client.put([client.known(info.url)])[info.url] == OK
    assert client.ask("GetStats").counts["completed"] == 1


def test_a_lease_ends_by_itself_and_the_url_comes_back(client: Client) -> None:
    client.put([client.found("http://a.example/")])
    assert client.get(delay_requestable=1) == ["http://a.example/"]
    assert client.get() == []
    assert client.get_within(5, delay_requestable=600) == ["http://a.example/"]
    assert client.ask("GetStats").inProcess == 1


def test_the_folder_is_a_crawl_as_any_other(client: Client, service: Service) -> None:
    client.put([client.found("http://a.example/", depth="0"), client.found("http://b.example/")])
    assert sorted(client.get()) == ["http://a.example/", "http://b.example/"]
    client.put(
        [client.known("http://a.example/", int(time.time()) + 86400, digest="one", **{"fetch.statusCode": "200"})]
    )
    links = [client.info(f"http://a.example/{n}", referrer="http://a.example/", anchor=f"Page {n}") for n in range(5)]
    client.put_batches([*links, client.info("http://b.example/", referrer="http://a.example/", clicks="7")])
    client.put([client.known("http://b.example/", 0, **{"fetch.statusCode": "404"})])
    folder = service.root / "DEFAULT"
    status = run_command("status", folder, "--json").json()
    assert status["running"]
    assert (status["known"], status["frontier"], status["fetched"]) == (7, 5, 1)
    assert status["states"]["gone"] == 1
    told = run_command("explain", folder, "http://a.example/3", "--json").json()
    assert told["found_on"] == "http://a.example/"
    assert (told["depth"], told["in_links"], told["anchors"]) == (1, 1, ["Page 3"])
    following = run_command("next", folder, "--json").json()
    assert {"http://a.example/0", "http://a.example/4"} <= {one["url"] for one in following}
    clicked = run_command("queries", "top", folder, "--json")
    assert clicked.code == 0
    added = run_command("add", folder, "http://late.example/")
    assert added.code == 0, added.err
    assert client.get_within(10, key="late.example") == ["http://late.example/"]


def test_a_crawl_is_no_folder_for_a_service(service: Service) -> None:
    wrong = run_command("frontier-service", service.root / "DEFAULT", "--port", 0)
    assert wrong.code == 2
    assert "is a crawl folder itself" in wrong.err


def test_without_grpc_the_command_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['grpc'] = None; sys.argv = ['bowerbird', 'frontier-service', sys.argv[1]];"
    done = subprocess.run(
        [sys.executable, "-c", f"{code} from bowerbird.cli.main import main; main()", tmp_path / "x"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert "pip install 'bowerbird[grpc]'" in done.stderr


def test_connections_of_several_clients_see_one_frontier(service: Service, connect: Connect, client: Client) -> None:
    other = connect(service)
    client.put([client.found(f"http://h{n}.example/") for n in range(50)])
    one, two = client.get(max_queues=25), other.get(max_queues=25)
    assert len(one) == len(two) == 25
    assert not set(one) & set(two)


def test_the_example_of_a_client_fetches_by_the_frontier(service: Service, client: Client) -> None:
    world = World(WorldSpec(seed=3, frozen=True, hosts=3, pages=40, trap_share=0.0))
    with WorldServer(world) as server:
        command = [sys.executable, EXAMPLE, f"127.0.0.1:{service.port}", "12", *server.world.seeds()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        asked = [f"http://{access.host}{access.path}" for access in server.log()]
    assert (done.returncode, done.stderr) == (0, "")
    said = dict(reversed(line.split()) for line in done.stdout.splitlines())
    assert len(said) == 12
    assert set(said) <= set(asked)
    assert "200" in said.values()
    assert client.ask("GetStats").counts["completed"] == 12  # what became of them was told
    told = run_command("explain", service.root / "DEFAULT", list(said)[-1], "--json").json()
    assert told["found_on"].startswith("http://127.0.")
