"""What people and servers get wrong: one clear line and a non-zero exit, or a counted skip; never a traceback."""

from __future__ import annotations

import gzip
import os
import shutil
import socket
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.crawl.conftest import Command, Crawled
from tests.crawl.crawling import (
    CONTACT,
    Left,
    Ran,
    is_one_line,
    limit_file_size,
    make_crawl,
    run_command,
    running_crawl,
    wait_for,
    workers_of,
)
from tests.web.hostile_server import HostileServer, answer

from bowerbird.appraise.policy import AUTO, PLAIN
from bowerbird.lab.world import World, WorldServer, WorldSpec
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import UrlState
from bowerbird.store.schema import VERSION

SEED = "http://127.0.0.1:9/"


def refused(ran: Ran, *words: str, code: int = 2) -> None:
    """It ended with this code and one line on standard error that has all these words."""
    assert ran.code == code, ran.err
    assert is_one_line(ran.err), ran.err
    assert ran.err.startswith("bowerbird: ")
    for word in words:
        assert word in ran.err


# What people type


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("nonsense", ("'nonsense'", "no scheme", "https://nonsense/")),
        ("http://", ("'http://'", "no host")),
        ("ftp://example.org/a", ("'ftp://example.org/a'", "scheme", "only http and https")),
        ("javascript:alert(1)", ("javascript", "only http and https")),
        ("http://exa mple.org/", ("exa mple.org", "not valid", "host name")),
        ("http://example.org:99999/", ("99999", "not valid", "port")),
        ("", ("empty", "https://example.com/")),
        ("http://example.org/" + "a" * 5_000, ("characters", "at most")),
    ],
)
def test_a_wrong_url(tmp_path: Path, command: Command, url: str, words: tuple[str, ...]) -> None:
    refused(command("init", tmp_path / "crawl", "--seed", url), *words)
    assert not (tmp_path / "crawl").exists()


def test_a_wrong_url_to_add_forget_and_explain(tmp_path: Path, command: Command) -> None:
    root = make_crawl(tmp_path / "crawl", [SEED])
    for verb in ("add", "forget", "explain"):
        refused(command(verb, root, "mailto:me@example.org"), "mailto", "only http and https")
    refused(command("explain", root, "http://example.org/"), "http://example.org/", "not known", "bowerbird add")


def test_no_seeds(tmp_path: Path, command: Command) -> None:
    refused(command("init", tmp_path / "crawl"), "no seeds", "--seed", "--seeds-file")
    assert not (tmp_path / "crawl").exists()


def test_a_seeds_file(tmp_path: Path, command: Command) -> None:
    refused(command("init", tmp_path / "crawl", "--seeds-file", tmp_path / "none.txt"), "none.txt", "cannot be read")
    seeds = tmp_path / "seeds.txt"
    seeds.write_bytes(b"\xff\xfe\x00 not text")
    refused(command("init", tmp_path / "crawl", "--seeds-file", seeds), "seeds.txt", "cannot be read")
    seeds.write_text("# nothing yet\n\n")
    refused(command("init", tmp_path / "crawl", "--seeds-file", seeds), "seeds.txt", "names no URL")
    seeds.write_text("# two\nhttp://a.example/\n  http://b.example/x  \nhttp://a.example/#again\n")
    ran = command("init", tmp_path / "crawl", "--seeds-file", seeds)
    assert ran.code == 0, ran.err
    assert "2 seeds" in ran.out


@pytest.mark.parametrize("verb", ["crawl", "status", "next", "explain", "search", "add", "forget", "export"])
def test_a_folder_that_is_none(tmp_path: Path, command: Command, verb: str) -> None:
    rest = {
        "explain": [SEED],
        "search": ["word"],
        "add": [SEED],
        "forget": [SEED],
        "export": ["--format", "jsonl", tmp_path / "out"],
    }.get(verb, [])
    refused(command(verb, tmp_path / "none", *rest), "none", "no such folder", "bowerbird init")
    file = tmp_path / "file"
    file.write_text("not a folder")
    refused(command(verb, file, *rest), "file", "is a file, not a folder")
    empty = tmp_path / "empty"
    empty.mkdir()
    refused(command(verb, empty, *rest), "empty", "not a crawl folder", "bowerbird init")
    assert list(empty.iterdir()) == []


def test_init_where_a_file_or_a_crawl_is(tmp_path: Path, command: Command) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")
    refused(command("init", file, "--seed", SEED), "file", "cannot be made", "another place")
    refused(command("init", file / "below", "--seed", SEED), "below", "cannot be made")
    root = make_crawl(tmp_path / "crawl", [SEED])
    refused(command("init", root, "--seed", SEED), "crawl folder already", "bowerbird add")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_nobody_may_read(tmp_path: Path, command: Command) -> None:
    root = make_crawl(tmp_path / "crawl", [SEED])
    root.chmod(0)
    try:
        refused(command("status", root), "not readable", "permissions")
    finally:
        root.chmod(0o755)


@pytest.mark.parametrize("verb", ["crawl", "status", "next"])
def test_a_folder_of_a_newer_version(tmp_path: Path, command: Command, verb: str) -> None:
    root = make_crawl(tmp_path / "crawl", [SEED])
    with sqlite3.connect(root / "state.db") as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    refused(command(verb, root), "state.db", "newer Bowerbird", str(VERSION + 1), "Upgrade")


@pytest.mark.parametrize("verb", ["crawl", "status", "next"])
@pytest.mark.parametrize("content", [b"this is no database at all" * 1000, b""])
def test_a_damaged_database(tmp_path: Path, command: Command, verb: str, content: bytes) -> None:
    root = make_crawl(tmp_path / "crawl", [SEED])
    for path in root.glob("state.db*"):
        path.unlink()
    (root / "state.db").write_bytes(content)
    kept = root / "archive" / "kept.warc.gz"
    kept.write_bytes(b"a year of fetches")
    refused(command(verb, root), "state.db", *(["estore it from a copy"] if verb == "crawl" else []))
    assert kept.read_bytes() == b"a year of fetches"


def test_an_index_of_another_version(tmp_path: Path, command: Command) -> None:
    root = make_crawl(tmp_path / "crawl", [SEED])
    (root / "index" / "bowerbird-index.json").write_text('{"engine": "tantivy", "schema": 99}')
    refused(command("crawl", root), "index", "99", "move the folder away")


# bowerbird.toml


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("[crawl\n", ("not valid TOML", "line 1")),
        ("[crawl]\npolicy = \n", ("not valid TOML", "line 2")),
        ("[crawl]\nspeed = 3\n", ("line 2", "crawl.speed", "unknown key", "policy")),
        ("[crowl]\nspeed = 3\n", ("line 1", "crowl", "unknown section", "crawl")),
        ("crawl = 3\n", ("line 1", "crawl", "section")),
        ("[politeness]\n\ndelay_s = 'slow'\n", ("line 3", "politeness.delay_s", "'slow'", "a number")),
        ("[politeness]\ndelay_s = true\n", ("line 2", "politeness.delay_s", "a number")),
        ("[politeness]\ndelay_s = -1\n", ("line 2", "politeness.delay_s", "-1", "at least 0")),
        ("[politeness]\ndelay_s = nan\n", ("line 2", "politeness.delay_s")),
        ("[politeness]\ndelay_s = inf\n", ("line 2", "politeness.delay_s", "a number with an end")),
        ("[politeness]\nconnections_per_host = 0\n", ("line 2", "politeness.connections_per_host", "from 1")),
        ("[crawl]\nmax_depth = 1.5\n", ("line 2", "crawl.max_depth", "1.5", "a whole number")),
        ("[seeds]\nk = 0\n", ("line 2", "seeds.k", "0", "from 1 to 1000")),
        ("[seeds]\nk = 2.5\n", ("line 2", "seeds.k", "2.5", "a whole number")),
        ("[seeds]\nhops = 200\n", ("line 2", "seeds.hops", "200", "from 1 to 120")),
        ("[seeds]\nstudy_every_s = -1\n", ("line 2", "seeds.study_every_s", "-1", "at least 1, or 0")),
        ("[seeds]\nstudy_every_s = 0.5\n", ("line 2", "seeds.study_every_s", "0.5", "at least 1, or 0 for never")),
        ("[seeds]\nstudy_every_s = inf\n", ("line 2", "seeds.study_every_s", "inf", "a number with an end, or 0")),
        ("[seeds]\nstudy_every_s = nan\n", ("line 2", "seeds.study_every_s", "nan", "a number with an end")),
        ("[seeds]\nworth_change = 'much'\n", ("line 2", "seeds.worth_change", "'much'", "a number")),
        ("[seeds]\nseeds = 3\n", ("line 2", "seeds.seeds", "unknown key", "worth_change")),
        ("[crawl]\nfollow_nofollow = 1\n", ("line 2", "crawl.follow_nofollow", "true or false")),
        ("[crawl]\npolicy = 'psychic'\n", ("line 2", "crawl.policy", "psychic", "breadth-first")),
        ("[crawl]\nscope = 'galaxy'\n", ("line 2", "crawl.scope", "galaxy", "domain")),
        ("[crawl]\ninclude = 'all'\n", ("line 2", "crawl.include", "list of strings")),
        ("[crawl]\n# why\nexclude = ['(']\n", ("line 3", "crawl.exclude", "regular expression")),
        ("[crawl]\ncontact = 'J\u00f6rg'\n", ("line 2", "crawl.contact", "printable ASCII")),
        ("[crawl]\ncontact = 'a\\nb'\n", ()),
        ('[crawl]\ncontact = "a\\r\\nX-Evil: 1"\n', ("line 2", "crawl.contact", "printable ASCII")),
        ("[crawl]\nproduct = 'My Bot'\n", ("line 2", "crawl.product", "My Bot")),
        ("[network]\nallow_addresses = ['everything']\n", ("line 2", "network.allow_addresses", "everything")),
        ("[archive]\ngzip_level = 9\n", ("line 2", "archive.gzip_level", "from 0 to 3")),
        ("[index]\nheap_mb = 1\n", ("line 2", "index.heap_mb", "16")),
        ("[refresh]\ninterval_s = 0\n", ("line 2", "refresh.interval_s")),
        ("politeness.delay_s = -1\n", ("line 1", "politeness.delay_s")),
        ("politeness = { delay_s = -1 }\n", ("line 1", "politeness.delay_s")),
        ("[fetch]\nmax_connections = 0\n", ("line 2", "fetch.max_connections", "from 1")),
    ],
)
def test_a_broken_config_names_the_line_and_the_key(
    tmp_path: Path, command: Command, line: str, words: tuple[str, ...]
) -> None:
    root = make_crawl(tmp_path / "crawl", [SEED])
    (root / "bowerbird.toml").write_text(line, encoding="utf-8")
    ran = command("status", root)
    if words:
        refused(ran, "bowerbird.toml", *words)
    else:
        assert ran.code == 0, ran.err


def test_a_config_that_is_no_text(tmp_path: Path, command: Command) -> None:
    root = make_crawl(tmp_path / "crawl", [SEED])
    (root / "bowerbird.toml").write_bytes(b"\xff\xfe")
    refused(command("crawl", root), "bowerbird.toml", "cannot be read")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--policy", "psychic"), ("psychic", "breadth-first", "adaptive")),
        (("--delay", "-3"), ("-3.0", "at least 0")),
        (("--allow-addresses", "moon"), ("moon", "loopback")),
        (("--contact", "J\u00f6rg"), ("J\u00f6rg", "ASCII")),
    ],
)
def test_a_mistake_at_init_leaves_nothing_behind(
    tmp_path: Path, command: Command, options: tuple[str, ...], words: tuple[str, ...]
) -> None:
    root = tmp_path / "crawl"
    ran = command("init", root, "--seed", SEED, *options)
    refused(ran, f"bowerbird: {options[0]}: ", *words)
    assert "line " not in ran.err
    assert not root.exists()
    assert command("init", root, "--seed", SEED).code == 0


def test_an_unknown_policy(tmp_path: Path, command: Command) -> None:
    root = make_crawl(tmp_path / "crawl", [SEED])
    for verb in ("crawl", "next"):
        refused(command(verb, root, "--policy", "psychic"), "psychic", "breadth-first", "adaptive")


@pytest.mark.parametrize(
    "options",
    [
        ("--for", "soon"),
        ("--for", "-3s"),
        ("--pages", "0"),
        ("--pages", "many"),
        ("--rate", "-1"),
        ("--workers", "0"),
        ("--workers", "1000"),
        ("--speed", "9"),
    ],
)
def test_a_wrong_option(tmp_path: Path, command: Command, options: tuple[str, str]) -> None:
    root = make_crawl(tmp_path / "crawl", [SEED])
    ran = command("crawl", root, *options)
    assert ran.code == 2
    assert options[0] in ran.err
    assert "Traceback" not in ran.err
    assert Left(root).one("SELECT count(*) FROM runs") == 0


def test_an_export_that_cannot_be_written(tmp_path: Path, command: Command) -> None:
    root = make_crawl(tmp_path / "crawl", [SEED])
    (tmp_path / "file").touch()
    for form in ("cdxj", "jsonl", "parquet", "warc"):
        target = tmp_path / "none" / "deep" / "out" if form != "warc" else tmp_path / "file" / "out"
        refused(command("export", root, "--format", form, target), "out", "cannot be written", "another place")


def test_a_second_crawl_is_refused(tmp_path: Path, command: Command) -> None:
    root = make_crawl(tmp_path / "crawl", [SEED], {"crawl": {"retry_base_s": 30.0}})
    with running_crawl(root, "--workers", 1) as process:
        assert wait_for(lambda: Left(root).one("SELECT count(*) FROM runs") == 1)
        refused(command("crawl", root), "another process", str(process.pid), "one writer")
        assert command("status", root, "--json").json()["running"] is True
        assert command("next", root).code == 0
        assert process.poll() is None
    assert command("status", root, "--json").json()["running"] is False


# What servers do


#: Reached from other pages only.
HIDDEN = ("/robots.txt", "/pong", "/caf%C3%A9%20au%20lait?q=[a%20b]&x=%zz")


def endless(connection: socket.socket, head: bytes, chunk: bytes) -> None:
    connection.sendall(head)
    while True:
        connection.sendall(chunk)


@pytest.fixture(scope="module")
def monsters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[HostileServer, Left, Ran, dict[str, Any]]]:
    """One crawl of a site where nearly everything is wrong, beside a good page at the end of the list."""
    huge = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 10737418240\r\n\r\n"
    streamed = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"
    piece = b"10000\r\n" + b"a" * 65_536 + b"\r\n"
    bomb = gzip.compress(b"\0" * (200 << 20), 9)
    noise = bytes(range(256)) * 64
    strange = (
        "<title>St&#xD800;range \U0001f426</title><p>a strange &#0; &#xDFFF; \x1b[31m shrike \u202e \ufffe".encode()
    )
    odd = (
        "<p>odd <a href='/caf\u00e9 au lait?q=[a b]&x=%zz'>two\nlines</a><a href='mailto:a@b'>m</a>"
        "<a href='data:,x'>d</a><a href='javascript:void(0)'>j</a><a href='//'>s</a><a href='http://[::1'>b</a>"
        "<a href='http://a b/'>c</a>"
    )
    links = b"".join(b"<a href=/many/%d-x>l</a>\n" % i for i in range(100_000))
    with HostileServer() as server, HostileServer() as silent:
        routes: dict[str, bytes | Callable[[socket.socket], None]] = {
            "/robots.txt": answer(b"User-agent: *\nDisallow: /secret\n", headers=("Content-Type: text/plain",)),
            "/ten-gigabytes": lambda connection: endless(connection, huge, b"a" * 65_536),
            "/without-end": lambda connection: endless(connection, streamed, piece),
            "/bomb": answer(bomb, headers=("Content-Type: text/html", "Content-Encoding: gzip")),
            "/damaged": answer(b"\x1f\x8b broken", headers=("Content-Type: text/html", "Content-Encoding: gzip")),
            "/loop": answer(b"", "302 Found", ("Location: /loop",)),
            "/ping": answer(b"", "301 Moved", ("Location: /pong",)),
            "/pong": answer(b"", "301 Moved", ("Location: /ping",)),
            "/nowhere": answer(b"", "302 Found", ("Location: gopher://old/",)),
            "/binary": answer(noise),
            "/picture": answer(b"\x89PNG\r\n\x1a\n" + noise, headers=("Content-Type: image/png",)),
            "/links": answer(b"<title>Links</title><p>a linnet " + links),
            "/strange": answer(strange, headers=("Content-Type: text/html; charset=utf-8",)),
            "/odd": answer(odd.encode(), headers=("Content-Type: text/html; charset=utf-8",)),
            "/caf%C3%A9%20au%20lait?q=[a%20b]&x=%zz": answer(b"<p>a calandra lark"),
            "/garbage": lambda connection: connection.sendall(b"this is not HTTP\r\n\r\n"),
            "/cut": lambda connection: connection.sendall(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5000\r\n\r\n<p>half"
            ),
            "/closed": lambda connection: None,
            "/broken": answer(b"oops", "500 Internal Server Error"),
            "/secret/": answer(b"<p>a secret"),
            "/good": answer(b"<title>Good</title><p>a goldfinch, after all"),
        }
        for hop in range(30):
            routes[f"/hop/{hop}"] = answer(b"", "302 Found", (f"Location: /hop/{hop + 1}",))
        server.routes.update(routes)
        silent.routes["/robots.txt"] = answer(b"", "404 Not Found")
        silent.routes["/"] = lambda connection: silent.pause(60) and None
        seeds = [server.url(path) for path in routes if path not in HIDDEN and "/hop/" not in path]
        seeds += [server.url("/hop/0"), silent.url("/")]
        root = make_crawl(
            tmp_path_factory.mktemp("monsters") / "crawl",
            seeds,
            {
                "crawl": {"retry_base_s": 0.1, "max_errors": 1},
                "fetch": {"first_byte_s": 1.0, "max_body_bytes": 4 << 20},
            },
        )
        ran = run_command("crawl", root, "--once", timeout_s=100)
        status = run_command("status", root, "--json").json()
        yield server, Left(root), ran, status


def test_the_crawl_goes_on_whatever_servers_do(
    monsters: tuple[HostileServer, Left, Ran, dict[str, Any]], tmp_path: Path
) -> None:
    server, left, ran, _ = monsters
    assert ran.code == 0, ran.err
    assert "Traceback" not in ran.err
    assert left.search("goldfinch") == [server.url("/good")]
    left.check_agreement(tmp_path / "copy")


@pytest.mark.parametrize(
    ("path", "outcome", "state"),
    [
        ("/ten-gigabytes", Outcome.TOO_LARGE, UrlState.FAILED),
        ("/without-end", Outcome.TOO_LARGE, UrlState.FAILED),
        ("/bomb", Outcome.BAD_ENCODING, UrlState.FAILED),
        ("/damaged", Outcome.BAD_ENCODING, UrlState.FAILED),
        ("/loop", Outcome.REDIRECT, UrlState.REDIRECT),
        ("/ping", Outcome.REDIRECT, UrlState.REDIRECT),
        ("/pong", Outcome.REDIRECT, UrlState.REDIRECT),
        ("/nowhere", Outcome.REDIRECT, UrlState.REDIRECT),
        ("/hop/9", Outcome.REDIRECT, UrlState.REDIRECT),
        ("/hop/10", Outcome.REDIRECT_LIMIT, UrlState.FAILED),
        ("/binary", Outcome.WRONG_TYPE, UrlState.FAILED),
        ("/picture", Outcome.WRONG_TYPE, UrlState.FAILED),
        ("/links", Outcome.OK, UrlState.FETCHED),
        ("/strange", Outcome.OK, UrlState.FETCHED),
        ("/odd", Outcome.OK, UrlState.FETCHED),
        ("/caf%C3%A9%20au%20lait?q=[a%20b]&x=%zz", Outcome.OK, UrlState.FETCHED),
        ("/garbage", Outcome.PROTOCOL, UrlState.FAILED),
        ("/cut", Outcome.CONNECT, UrlState.FAILED),
        ("/closed", Outcome.CONNECT, UrlState.FAILED),
        ("/broken", Outcome.SERVER_ERROR, UrlState.FAILED),
        ("/secret/", Outcome.ROBOTS, UrlState.EXCLUDED),
        ("/good", Outcome.OK, UrlState.FETCHED),
    ],
)
def test_each_is_journalled_and_counted(
    monsters: tuple[HostileServer, Left, Ran, dict[str, Any]], path: str, outcome: Outcome, state: UrlState
) -> None:
    server, left, _, status = monsters
    url = server.url(path)
    outcomes = left.outcomes(url)
    assert outcomes[-1] is outcome
    assert len(outcomes) == (2 if outcome.transient else 1)  # two tries where it could have passed
    assert left.states()[url] is state
    counted = status["outcomes"][outcome.label]
    assert counted == left.one("SELECT count(*) FROM fetches WHERE outcome = ?", int(outcome))
    if outcome not in (Outcome.OK, Outcome.REDIRECT):
        assert status["errors"][outcome.label] == counted


def test_a_host_that_never_answers_is_counted_and_given_up(
    monsters: tuple[HostileServer, Left, Ran, dict[str, Any]],
) -> None:
    _, left, _, status = monsters
    assert status["errors"]["timeout"] == 2
    assert status["hosts_in_trouble"] == 1
    ((error,),) = left.rows("SELECT DISTINCT error FROM fetches WHERE outcome = ?", int(Outcome.TIMEOUT))
    assert "no response within 1 s" in error


def test_a_page_of_a_hundred_thousand_links(monsters: tuple[HostileServer, Left, Ran, dict[str, Any]]) -> None:
    server, left, _, _ = monsters
    assert left.search("linnet") == [server.url("/links")]
    found = left.one("SELECT count(*) FROM urls WHERE url LIKE ?", server.url("/many/%"))
    assert 1 <= found <= 5_000
    assert left.one("SELECT count(*) FROM urls") <= 5_100


def test_strange_text_and_addresses_are_found_and_explained(
    monsters: tuple[HostileServer, Left, Ran, dict[str, Any]], command: Command
) -> None:
    server, left, _, _ = monsters
    assert left.search("shrike") == [server.url("/strange")]
    assert left.search("calandra") == [server.url("/caf%C3%A9%20au%20lait?q=[a%20b]&x=%zz")]
    typed = server.url("/caf\u00e9 au lait?q=[a b]&x=%zz#part")
    story = command("explain", left.folder.root, typed, "--json").json()
    assert story["state"] == "fetched"
    assert story["found_on"] == server.url("/odd")
    assert story["anchors"] == ["two lines"]
    for query in ("shrike", "calandra"):
        shown = command("search", left.folder.root, query)
        assert shown.code == 0
        assert "\x1b[31m" not in shown.out
        assert "\0" not in shown.out


def test_no_large_body_is_kept(monsters: tuple[HostileServer, Left, Ran, dict[str, Any]]) -> None:
    _, left, _, status = monsters
    assert sum(path.stat().st_size for path in left.folder.archive.iterdir()) < 8 << 20
    assert status["wire_bytes"] < 64 << 20


def test_who_asks_is_said_with_every_request(monsters: tuple[HostileServer, Left, Ran, dict[str, Any]]) -> None:
    server, _, _, _ = monsters
    for request in server.requests:
        lines = request.split(b"\r\n")
        agents = [line.decode() for line in lines if line.lower().startswith(b"user-agent:")]
        assert len(agents) == 1
        assert agents[0].startswith("User-Agent: Bowerbird/")
        assert agents[0].endswith(f"(+{CONTACT})")


def test_an_address_that_is_not_allowed(tmp_path: Path, command: Command) -> None:
    with HostileServer() as server:
        server.routes["/"] = answer()
        root = make_crawl(tmp_path / "crawl", [server.url("/")], {"network": {"allow_addresses": []}})
        ran = command("crawl", root, "--once", "--workers", 1)
        assert ran.code == 0
        assert "errors so far: robots.txt address-refused 1\n" in ran.err
        assert server.connections == 0
        assert "  speed      nothing was fetched by any run\n" in command("status", root).out
        status = command("status", root, "--json").json()
        assert status["hosts_in_trouble"] == 1
        assert status["errors"]["host-unreachable"] == 1
        assert status["fetches"] == 0
        story = command("explain", root, server.url("/")).out
        assert "host-unreachable" in story
        assert "robots.txt: address-refused" in story

        config = root / "bowerbird.toml"
        settings = config.read_text()
        assert command("crawl", root, "--once", "--workers", 1).code == 0
        assert server.connections == 0
        config.write_text(settings.replace("allow_addresses = []", 'allow_addresses = ["loopback"]'))
        assert command("crawl", root, "--once", "--workers", 1).code == 0
        assert server.url("/") in Left(root).fetches(Outcome.OK)
        assert command("status", root, "--json").json()["hosts_in_trouble"] == 0


def test_a_host_in_other_trouble_is_left_alone_when_addresses_are_allowed(tmp_path: Path, command: Command) -> None:
    with HostileServer() as server:
        server.routes["/robots.txt"] = answer(b"", "503 Service Unavailable", ["Retry-After: 3600"])
        root = make_crawl(tmp_path / "crawl", [server.url("/")])
        assert command("crawl", root, "--for", "1s", "--workers", 1).code == 0
        asked = server.connections
        assert asked > 0
        config = root / "bowerbird.toml"
        config.write_text(config.read_text().replace('["loopback"]', '["loopback", "private"]'))
        assert command("crawl", root, "--for", "1s", "--workers", 1).code == 0
        assert server.connections == asked


# Workers and disks


def test_a_worker_that_is_killed_is_replaced(tmp_path: Path) -> None:
    spec = WorldSpec(seed=4, frozen=True, hosts=4, pages=200, crawl_delay_share=0.0, trap_share=0.0)
    with WorldServer(World(spec)) as server:
        root = make_crawl(tmp_path / "crawl", server.world.seeds())
        left = Left(root)
        with running_crawl(root, "--once", "--rate", 40, "--workers", 2) as process:
            assert wait_for(lambda: len(left.fetches()) > 20)
            victim = workers_of(process.pid)[0]
            victim.kill()
            assert wait_for(lambda: victim.pid not in {worker.pid for worker in workers_of(process.pid)})
            assert wait_for(lambda: len(workers_of(process.pid)) == 2)
            out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert "0 URLs in the frontier" in out
        wanted = {"http://{}{}".format(*place) for place in server.world.reachable(spec.start_s, sitemaps=True)}
        assert wanted <= set(left.fetches(Outcome.OK))
        left.check_agreement(tmp_path / "copy")


def test_a_worker_that_hangs_is_replaced(tmp_path: Path) -> None:
    """A lease that expires with its worker silent costs the worker, and no page."""
    spec = WorldSpec(seed=4, frozen=True, hosts=4, pages=120, crawl_delay_share=0.0, trap_share=0.0)
    with WorldServer(World(spec)) as server:
        root = make_crawl(
            tmp_path / "crawl",
            server.world.seeds(),
            {"crawl": {"lease_s": 6.0, "max_errors": 6}, "fetch": {"total_s": 5.0}},
        )
        left = Left(root)
        with running_crawl(root, "--once", "--rate", 40, "--workers", 2) as process:
            assert wait_for(lambda: len(left.fetches()) > 20)
            victim = workers_of(process.pid)[0]
            victim.suspend()
            assert wait_for(lambda: victim.pid not in {worker.pid for worker in workers_of(process.pid)}, 40)
            out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert "0 URLs in the frontier" in out
        wanted = {"http://{}{}".format(*place) for place in server.world.reachable(spec.start_s, sitemaps=True)}
        assert wanted <= set(left.fetches(Outcome.OK))
        left.check_agreement(tmp_path / "copy")


@pytest.mark.parametrize(("size", "policy"), [(60_000, PLAIN), (400_000, AUTO)], ids=["plain", "auto"])
def test_a_full_disk_is_a_clean_stop(tmp_path: Path, size: int, policy: str) -> None:
    """No file may grow beyond `size`: the archive or the database meets it first."""
    spec = WorldSpec(seed=6, frozen=True, hosts=4, pages=300, crawl_delay_share=0.0, trap_share=0.0, gzip_share=0.0)
    with WorldServer(World(spec)) as server:
        sections = {"archive": {"gzip_level": 0}, "crawl": {"policy": policy}}
        root = make_crawl(tmp_path / "crawl", server.world.seeds(), sections)
        left = Left(root)
        ran = run_command("crawl", root, "--once", "--quiet", before=limit_file_size(size))
        refused(ran, "disk", "space", code=3)
        before = left.fetches()
        again = run_command("crawl", root, "--once")
        assert again.code == 0, again.err
        after = left.fetches()
        assert after[: len(before)] == before
        wanted = {"http://{}{}".format(*place) for place in server.world.reachable(spec.start_s, sitemaps=True)}
        assert wanted <= set(left.fetches(Outcome.OK))
        left.check_agreement(tmp_path / "copy")


def test_a_study_that_meets_a_full_disk_says_so_and_leaves_the_last_one(crawled: Crawled, tmp_path: Path) -> None:
    root = Path(shutil.copytree(crawled.root, tmp_path / "crawl"))
    shutil.rmtree(root / "study", ignore_errors=True)  # where the machine is slow, the crawl has made some already
    assert run_command("study", root, "--policy", AUTO, "--json").code == 0
    kept = {path.name: path.read_bytes() for path in (root / "study").iterdir()}
    assert set(kept) == {"informed.npz", "user-centric.npz", "echo.npz"}
    refused(
        run_command("study", root, "--policy", AUTO, before=limit_file_size(2_000)), "disk", "Free some space", code=3
    )
    assert {path.name: path.read_bytes() for path in (root / "study").iterdir()} == kept


@pytest.mark.parametrize("size", [250_000, 1_500_000])
def test_a_database_that_may_not_grow_is_a_clean_stop(tmp_path: Path, size: int) -> None:
    rows = "".join(f"<url><loc>http://127.0.0.1:9/{i:07d}-page-of-some-length</loc></url>" for i in range(40_000))
    listing = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{rows}</urlset>'.encode()
    with HostileServer() as server:
        server.routes["/robots.txt"] = answer(f"Sitemap: {server.url('/all.xml')}\n".encode())
        server.routes["/all.xml"] = answer(listing, headers=("Content-Type: application/xml",))
        server.routes["/"] = answer(b"<title>Home</title><p>a hoopoe")
        root = make_crawl(tmp_path / "crawl", [server.url("/")], {"crawl": {"workers": 1}})
        left = Left(root)
        ran = run_command("crawl", root, "--for", "15s", "--quiet", before=limit_file_size(size))
        refused(ran, "state.db", "the disk took no more", "Free some space", code=3)
        known = left.one("SELECT count(*) FROM urls")
        assert known < 100
        again = run_command("crawl", root, "--for", "4s")
        assert again.code == 0, again.err
        assert left.one("SELECT count(*) FROM urls") > 40_000
        assert left.search("hoopoe") == [server.url("/")]
        left.check_agreement(tmp_path / "copy")


def test_an_archive_that_lost_bytes_is_said_so(tmp_path: Path, command: Command) -> None:
    with HostileServer() as server:
        server.routes["/robots.txt"] = answer(b"", "404 Not Found")
        server.routes["/"] = answer()
        root = make_crawl(tmp_path / "crawl", [server.url("/")])
        assert command("crawl", root, "--once", "--workers", 1).code == 0
        (file,) = (root / "archive").iterdir()
        file.write_bytes(file.read_bytes()[:-10])
        refused(command("crawl", root, "--once"), file.name, "acknowledged", "restore it")
