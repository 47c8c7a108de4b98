"""The commands that look at a crawl: what they promise is there, for people and for programs."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import click
import pytest
from tests.cli.conftest import Sample
from tests.crawl.conftest import Command
from tests.crawl.crawling import Left, command_line, make_crawl, set_policy
from tests.web.hostile_server import HostileServer, answer

import bowerbird
from bowerbird.appraise.policy import AUTO, PLAIN
from bowerbird.cli.main import COMMANDS, cli
from bowerbird.cli.progress import Lines, Panel, make_display
from bowerbird.cli.values import count_text, time_text
from bowerbird.crawl.statistics import Progress
from bowerbird.model.outcome import DECISIONS_WITHOUT_FETCH, Outcome
from bowerbird.model.url_state import UrlState

ERRORS = tuple(
    outcome
    for outcome in Outcome
    if outcome not in (Outcome.OK, Outcome.NOT_MODIFIED, Outcome.REDIRECT, Outcome.GONE, *DECISIONS_WITHOUT_FETCH)
)
LOOKING = ("status", "next", "explain", "search")


def test_the_sample_is_as_told(sample: Sample) -> None:
    assert sample.ran.code == 0, sample.ran.err
    assert len(sample.left.fetches()) == 90


# Help


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help(command: Command, name: str) -> None:
    ran = command(name, "--help")
    assert ran.code == 0
    assert ran.out.startswith(f"Usage: bowerbird {name}")
    assert ran.err == ""
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    assert found.help
    for parameter in found.params:
        if isinstance(parameter, click.Option) and name != "world":  # which is a tool of the lab
            assert parameter.help, f"{name} {parameter.opts}"


def test_the_whole_has_help_and_a_version(command: Command) -> None:
    ran = command("--help")
    assert ran.code == 0
    for name in COMMANDS:
        assert re.search(rf"^  {name} ", ran.out, re.MULTILINE), name
    assert command("--version").out.split()[-1] == bowerbird.__version__


def test_an_unknown_command(command: Command) -> None:
    ran = command("fly")
    assert ran.code == 2
    assert "No such command 'fly'." in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(("mistyped", "meant"), [("stauts", "status"), ("frontier-servce", "frontier-service")])
def test_a_mistyped_command_is_answered_with_the_one_that_was_meant(
    command: Command, mistyped: str, meant: str
) -> None:
    ran = command(mistyped, "try")
    assert ran.code == 2
    assert f"No such command '{mistyped}'; did you mean '{meant}'?" in ran.err
    assert "No such option" in command("--stauts").err


# Looking


def test_status_has_what_it_promises(sample: Sample, command: Command) -> None:
    status = command("status", sample.root, "--json").json()
    states = list(sample.left.states().values())
    assert status["fetched"] == states.count(UrlState.FETCHED)
    assert status["frontier"] == states.count(UrlState.NEW) > 0
    assert status["known"] == len(states)
    assert status["states"] == {state.name.lower(): states.count(state) for state in UrlState}
    assert status["fetches"] == sum(status["budget"].values()) == 90
    assert set(status["budget"]) == {"new", "refresh", "hub", "probe"}
    assert status["budget"]["new"] > 50
    assert status["budget"]["hub"] > 0
    assert status["errors"]["gone"] == len(sample.left.fetches(Outcome.GONE))
    assert "ok" not in status["errors"]
    assert status["outcomes"]["ok"] == len(sample.left.fetches(Outcome.OK))
    assert status["pages_per_s"] >= 0.0
    assert 0 <= status["hosts_waiting"] <= status["hosts"] == 4
    assert status["running"] is False
    assert status["in_flight"] == 0
    assert status["policy"] == "breadth-first+adaptive"
    assert status["indexed"] == len(sample.left.indexed())
    assert status["index_behind"] == 0
    assert status["archive_bytes"] == sum(path.stat().st_size for path in (sample.root / "archive").iterdir())
    assert datetime.fromisoformat(status["last_fetch"]).tzinfo is not None


def test_status_for_people(sample: Sample, command: Command) -> None:
    out = command("status", sample.root).out
    for word in ("fetched", "frontier", "errors", "gone", "fetches/s", "budget", "new", "hub", "hosts", "waiting"):
        assert word in out


def test_what_is_not_there_is_no_error(sample: Sample, command: Command) -> None:
    out = command("status", sample.root).out
    lines = {line[2:13].strip(): line[13:] for line in out.splitlines() if line.startswith("  ")}
    gone = len(sample.left.fetches(Outcome.GONE))
    assert gone > 0
    assert lines["not found"] == str(gone)
    assert lines["errors"] == "none"
    assert f"; {gone} not found; {len(sample.left.fetches(*ERRORS))} errors; " in sample.ran.out


def test_what_is_excluded_is_no_error(command: Command, tmp_path: Path) -> None:
    with HostileServer() as server:
        server.routes["/robots.txt"] = answer(b"User-agent: *\nDisallow: /no", headers=("Content-Type: text/plain",))
        server.routes["/"] = answer(b"<a href=/no>no</a> <a href=/broken>broken</a>")
        server.routes["/broken"] = answer(b"", "403 Forbidden")
        root = make_crawl(tmp_path / "crawl", [server.url("/")])
        ran = command("crawl", root, "--once", "--workers", 1)
    lines = command("status", root).out.splitlines()
    assert "  excluded   1 by robots.txt, 0 out of scope" in lines
    assert "  not found  1" in lines  # the sitemap
    assert "  errors     client-error 1" in lines
    assert "; 1 not found; 1 error; " in ran.out
    assert command("status", root, "--json").json()["errors"] == {"client-error": 1, "gone": 1, "robots": 1}


def test_next_names_what_would_be_fetched(sample: Sample, command: Command) -> None:
    rows = command("next", sample.root, "-n", 15, "--json").json()
    states = sample.left.states()
    assert len(rows) == 15
    assert len({row["url"] for row in rows}) == 15
    for row in rows:
        assert set(row) == {"url", "bid", "price", "kind", "when", "terms", "worth"}
        assert row["bid"] > 0
        assert row["terms"]["by"]
        assert states[row["url"]] not in (UrlState.FORGOTTEN, UrlState.EXCLUDED)
    now = [row for row in rows if row["when"] == "now"]
    assert now
    assert all(row["bid"] >= row["price"] for row in now)
    assert [row["bid"] for row in now] == sorted((row["bid"] for row in now), reverse=True)
    text = command("next", sample.root, "-n", 15).out
    assert all(row["url"] in text for row in rows)


def test_next_is_what_the_crawl_then_does(sample: Sample, command: Command, tmp_path: Path) -> None:
    """The first of `next` is what the next run asks for, where a host needs no new robots.txt."""
    with HostileServer() as server:
        server.routes["/robots.txt"] = answer(b"", "404 Not Found")
        server.routes["/"] = answer(b"".join(b"<a href=/%d-x>x</a>" % i for i in range(20)))
        root = make_crawl(tmp_path / "crawl", [server.url("/")], {"politeness": {"connections_per_host": 1}})
        assert command("crawl", root, "--pages", 2, "--workers", 1).code == 0
        first = command("next", root, "-n", 1, "--json").json()[0]["url"]
        before = len(Left(root).fetches())
        assert command("crawl", root, "--pages", 1, "--workers", 1).code == 0
        assert Left(root).fetches()[before:] == [first]


def test_a_crawl_before_its_first_study_says_what_it_goes_by(command: Command, tmp_path: Path) -> None:
    root, seed = tmp_path / "crawl", "http://a.example/"
    assert command("init", root, "--seed", seed, "--contact", "me@example.org").code == 0
    assert command("status", root, "--json").json()["policy"] == "auto"
    told = "not in clicks yet: there is no study by informed, user-centric, echo; until then intervals and links decide"
    assert told in command("status", root).out
    ((row,), next_) = command("next", root, "--json").json(), command("next", root)
    assert row["when"] == "now"
    assert (row["terms"]["by"], row["terms"]["basis"]) == ("informed", "in-links, before a study")
    assert next_.err == ""
    told = "there is no study by informed yet: until then the pages that most pages link to come first"
    assert told in command("explain", root, seed).out


def test_next_by_another_policy(sample: Sample, command: Command) -> None:
    rows = command("next", sample.root, "-n", 5, "--policy", "random", "--json").json()
    new = [row for row in rows if row["kind"] == "new"]
    assert new
    assert all(row["terms"]["by"] == "random" for row in new)


def test_explain_tells_the_whole_story(sample: Sample, command: Command) -> None:
    pages = [url for url in sample.left.fetches(Outcome.OK) if url.endswith(".html")]
    url = pages[20]
    story = command("explain", sample.root, url, "--json").json()
    assert story["url"] == url
    assert story["state"] == "fetched"
    assert story["fetches"] == 1
    assert story["found_on"].startswith("http://")
    tree = story["bid"]["tree"]
    assert tree["children"]
    assert story["bid"]["value"] == pytest.approx(tree["value"], rel=0.01, abs=1e-3)
    assert story["bid"]["shape"]
    (visit,) = story["history"]
    assert visit["outcome"] == "ok"
    assert visit["status"] == 200
    assert visit["bid"] >= visit["price"] > 0
    assert visit["terms"]["by"] == "breadth-first"
    host = story["host"]
    assert url.startswith(host["origin"])
    assert host["robots"] == "allowed"
    assert host["delay_s"] >= 0
    assert host["errors_in_a_row"] == 0
    assert datetime.fromisoformat(host["ready_at"])
    assert datetime.fromisoformat(story["expected"]["at"]) > datetime.fromisoformat(visit["at"])
    assert story["expected"]["in_s"] > 0


def test_explain_each_state(sample: Sample, command: Command) -> None:
    pages = {url: state for url, state in sample.left.states().items() if not url.endswith(".xml")}
    by_state = {state: url for url, state in pages.items()}
    assert {UrlState.NEW, UrlState.FETCHED, UrlState.GONE} <= set(by_state)
    for state, url in by_state.items():
        story = command("explain", sample.root, url, "--json").json()
        assert story["state"] == state.name.lower()
        assert (story["expected"]["at"] is None) == (state in (UrlState.EXCLUDED, UrlState.FORGOTTEN))
        text = command("explain", sample.root, url)
        assert text.code == 0
        for word in (url, "bid", "host", "robots", "expected", "history"):
            assert word in text.out
    new = command("explain", sample.root, by_state[UrlState.NEW], "--json").json()
    assert new["history"] == []
    assert new["bid"]["tree"]["children"][0]["name"] == "1 + 1/(1 + depth)"


def test_explain_says_the_crawl_delay(sample: Sample, command: Command) -> None:
    slow = [host for host in sample.world.hosts if sample.world.crawl_delay_s(host)]
    assert slow
    story = command("explain", sample.root, f"http://{slow[0]}/", "--json").json()
    assert story["host"]["delay_s"] == pytest.approx(0.2)


def test_search_finds_with_snippets(sample: Sample, command: Command) -> None:
    found = command("search", sample.root, "water OR nature", "-n", 5, "--json")
    page = next(page for page in sample.world.reachable_pages(0.0).tolist() if page % 7 == 3)
    word = max(re.findall(r"[a-z]{7,}", sample.world.text(page, 0.0)), key=len)
    answer_ = command("search", sample.root, word, "-n", 5, "--json").json()
    assert found.code == 0
    assert answer_["query"] == word
    assert answer_["total"] >= 1
    assert answer_["seconds"] >= 0
    for hit in answer_["hits"]:
        assert set(hit) >= {"url", "title", "snippet", "highlights", "score", "fetched_at", "language"}
        assert hit["score"] > 0
        for start, end in hit["highlights"]:
            assert 0 <= start < end <= len(hit["snippet"])
    assert any(
        word[:5] in hit["snippet"][start:end].lower() for hit in answer_["hits"] for start, end in hit["highlights"]
    )
    text = command("search", sample.root, word).out
    assert answer_["hits"][0]["url"] in text


@pytest.mark.parametrize("query", ["", '"', "((", "site:", "-", "\u00e4\u00f6", "a" * 5000, "AND OR NOT", "title:^*~"])
def test_any_text_is_a_query(sample: Sample, command: Command, query: str) -> None:
    ran = command("search", sample.root, "--json", "--", query)
    assert ran.code == 0, ran.err
    assert ran.json()["total"] >= 0


@pytest.mark.parametrize("query", ["", " ", "?!", '""', "-used"])
def test_a_query_without_a_word_gets_a_hint(sample: Sample, command: Command, query: str) -> None:
    ran = command("search", sample.root, "--", query)
    assert ran.code == 0
    assert "Nothing to search for" in ran.out
    assert "site:host" in ran.out
    assert "0 pages" not in ran.out
    assert "0 pages" in command("search", sample.root, "--", "xyzzyx").out


@pytest.mark.parametrize("query", ["-gardens", "-hats", "-nouns", "-5", "-a -b"])
def test_a_query_may_begin_with_a_minus(sample: Sample, command: Command, query: str) -> None:
    ran = command("search", sample.root, query, "--json")
    assert ran.code == 0, ran.err
    assert ran.json()["query"] == query
    assert command("search", sample.root, query).out.startswith("Nothing to search for")


def test_options_of_search_stay_options(sample: Sample, command: Command) -> None:
    for words in (["the", "-n", "2"], ["-n2", "the"], ["-n", "2", "the -zebra"]):
        ran = command("search", sample.root, *words, "--json")
        assert ran.code == 0, ran.err
        assert len(ran.json()["hits"]) <= 2
        assert ran.json()["query"].startswith("the")
    refused = command("search", sample.root, "the", "-n", "-5")
    assert refused.code == 2
    assert "-5" in refused.err
    assert command("search", "-h").out.startswith("Usage: bowerbird search")


def test_a_search_before_any_crawl_says_so(command: Command, tmp_path: Path) -> None:
    root = make_crawl(tmp_path / "crawl", ["http://a.example/"])
    out = command("search", root, "anything").out
    assert out.startswith("0 pages in ")
    assert f"Nothing is indexed yet: `bowerbird crawl {root}`" in out


def test_a_search_in_vain_has_no_such_hint(sample: Sample, command: Command) -> None:
    assert "Nothing is indexed" not in command("search", sample.root, "xyzzyx").out


def test_the_speed_of_a_crawl_that_does_not_run(sample: Sample, command: Command, tmp_path: Path) -> None:
    line = next(line for line in command("status", sample.root).out.splitlines() if line.startswith("  speed"))
    assert re.fullmatch(r"  speed      \d+\.\d fetches/s in the last run", line)
    assert command("status", sample.root, "--json").json()["pages_per_s"] == 0.0
    root = make_crawl(tmp_path / "crawl", ["http://a.example/"])
    assert "  speed      no run yet" in command("status", root).out.splitlines()


def test_people_read_durations_with_a_unit(sample: Sample, command: Command) -> None:
    url = next(url for url in sample.left.fetches(Outcome.OK) if url.endswith(".html"))
    text = command("explain", sample.root, url).out
    assert re.search(r"^ +interval = \d+(\.\d)? (s|min|h|days)\b", text, re.MULTILINE)
    assert re.search(r"^  expected  \S+ \(in \d+(\.\d)? (s|min|h|days)\): ", text, re.MULTILINE)
    assert "_s = " not in text
    assert "_s=" not in command("next", sample.root, "-n", 200).out
    assert time_text(846_424.8) == "9.8 days"
    assert time_text(5400) == "1.5 h"


def test_one_is_no_plural(sample: Sample, command: Command) -> None:
    texts = [command("explain", sample.root, url).out for url in sample.left.fetches(Outcome.OK)[:12]]
    assert any("1 link from a seed" in text for text in texts)
    assert any("fetched   1 time, changed 0 times" in text for text in texts)
    assert not any(re.search(r"\b1 (links|times|errors)\b", text) for text in texts)
    assert [count_text(count, "fetch") for count in (0, 1, 2000)] == ["0 fetches", "1 fetch", "2,000 fetches"]


# The folder


@pytest.mark.parametrize("words", [("serve",), ("status",), ("quality",), ("queries", "top")])
def test_a_file_is_called_a_file(command: Command, tmp_path: Path, words: tuple[str, ...]) -> None:
    file = tmp_path / "file"
    file.write_text("kept")
    ran = command(*words, file)
    assert ran.code == 2
    assert f"{file}: is a file, not a folder" in ran.err
    assert file.read_text() == "kept"


def test_a_moved_folder_works(sample: Sample, command: Command, tmp_path: Path) -> None:
    copied, moved = tmp_path / "copied", tmp_path / "deep" / "moved"
    shutil.copytree(sample.root, copied)
    moved.parent.mkdir()
    copied.rename(moved)
    before = command("status", sample.root, "--json").json()
    after = command("status", moved, "--json").json()
    volatile = ("folder", "pages_per_s", "hosts_waiting")
    assert {k: v for k, v in after.items() if k not in volatile} == {
        k: v for k, v in before.items() if k not in volatile
    }
    assert command("add", moved, "http://127.0.0.1:9/new").code == 0
    assert command("crawl", moved, "--for", "1s", "--workers", 1).code == 0
    Left(moved).check_agreement(tmp_path / "scratch")
    root = os.fsencode(sample.root)
    for path in moved.rglob("*"):
        if path.is_file():
            assert root not in path.read_bytes(), path


def test_a_lost_index_or_checkpoint_is_made_again(sample: Sample, command: Command, tmp_path: Path) -> None:
    root = tmp_path / "crawl"
    shutil.copytree(sample.root, root)
    indexed = Left(root).indexed()
    assert len(indexed) > 40
    shutil.rmtree(root / "index")
    (root / "columns.ckpt").unlink()
    assert command("status", root, "--json").json()["indexed"] == 0
    ran = command("crawl", root, "--for", "1s", "--rate", "0.1", "--workers", 1)
    assert ran.code == 0, ran.err
    assert "brought up to date in the index" in ran.err
    assert set(indexed) <= set(Left(root).indexed())
    Left(root).check_agreement(tmp_path / "scratch")


def test_init_writes_a_config_that_explains_itself(command: Command, tmp_path: Path) -> None:
    ran = command("init", tmp_path / "crawl", "--seed", "http://example.org/", "--contact", "me@example.org")
    assert ran.code == 0
    text = (tmp_path / "crawl" / "bowerbird.toml").read_text()
    assert 'contact = "me@example.org"' in text
    assert "# delay_s" in text or "delay_s = 1.0" in text
    settings = [line for line in text.splitlines() if re.match(r"(# )?[a-z_]+ = ", line)]
    comments = [line for line in text.splitlines() if re.match(r"# (?![a-z_]+ = )", line)]
    assert len(settings) > 40
    assert len(comments) >= len(settings)
    # every default that is commented out is the value it stands for
    bare = "\n".join(re.sub(r"^# ([a-z_]+ = )", r"\1", line) for line in text.splitlines())
    (tmp_path / "crawl" / "bowerbird.toml").write_text(bare)
    assert command("status", tmp_path / "crawl").code == 0


# Progress


def a_moment(**values: object) -> Progress:
    fields = {
        "elapsed_s": 1.0,
        "fetched": 10,
        "pages_per_s": 5.0,
        "frontier": 3,
        "known": 20,
        "in_flight": 1,
        "hosts_waiting": 1,
        "errors": 2,
        "price": 1.0,
        "next_bid": 1.5,
        "next_url": "http://example.org/",
        "by_kind": {"new": 10},
        "by_outcome": {"ok": 8, "gone": 2},
        "indexed_behind": 0,
        "wire_mb": 0.5,
        "refused": 0,
    }
    return Progress(**(fields | values))  # type: ignore[arg-type]  # fields of many types


def test_lines_where_there_is_no_terminal(sample: Sample) -> None:
    lines = sample.ran.err.splitlines()
    shown = [
        line for line in lines if re.match(r"\d\d:\d\d:\d\d fetched=\d+ speed=\S+/s frontier=\d+ known=\d+ ", line)
    ]
    assert shown
    assert "\x1b" not in sample.ran.err
    assert sample.ran.out.count("\n") == 1
    assert sample.ran.out.startswith("90 fetches in ")


def test_a_crawl_says_its_policy_first_and_what_the_last_run_went_by(command: Command, tmp_path: Path) -> None:
    root = make_crawl(tmp_path / "crawl", ["http://127.0.0.1:1/"])

    def policies() -> list[str]:  # on a new machine a line says that kernels are compiled
        lines = command("crawl", root, "--for", "0.2s").err.splitlines()
        return [line for line in lines if line.startswith("policy ")]

    assert policies() == [f"policy {PLAIN}"]
    set_policy(root, AUTO)
    told = (
        f"policy auto (the last run: {PLAIN}): new pages, refreshes and hubs bid in expected clicks; see docs/budget.md"
    )
    assert policies() == [told]
    assert "(the last run" not in policies()[0]
    assert "policy auto" not in command("crawl", root, "--for", "0.2s", "--quiet").err


def test_lines_come_every_few_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    display = make_display(quiet=False, terminal=False)
    assert isinstance(display, Lines)
    for second in range(12):
        display.show(a_moment(elapsed_s=float(second)))
    assert len(capsys.readouterr().err.splitlines()) == 3
    make_display(quiet=True, terminal=True).show(a_moment())
    assert capsys.readouterr().err == ""


def test_what_is_not_found_is_told_apart_from_errors(capsys: pytest.CaptureFixture[str]) -> None:
    moment = a_moment(errors=1, by_outcome={"ok": 8, "gone": 2, "timeout": 1})
    make_display(quiet=False, terminal=False).show(moment)
    assert "not-found=2 errors=1 " in capsys.readouterr().err
    with Panel() as panel:
        panel.show(moment)
    lines = [line.split() for line in capsys.readouterr().err.splitlines()]
    assert ["not", "found", "2"] in lines
    assert ["errors", "timeout", "1"] in lines


def test_the_study_that_bids_go_by_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    for values, told in (
        ({}, ""),
        ({"study_basis": "none yet"}, "none yet"),
        ({"study_basis": "prior", "study_age_s": 42.0}, "prior, 42 s ago"),
    ):
        make_display(quiet=False, terminal=False).show(a_moment(**values))
        assert capsys.readouterr().err.endswith(f" study={told}\n" if told else "next-bid=1.5\n")
        with Panel() as panel:
            panel.show(a_moment(**values))
        studies = [line.split() for line in capsys.readouterr().err.splitlines() if line.startswith("study")]
        assert studies == ([["study", *told.split()]] if told else [])


def test_a_panel_shows_any_url(capsys: pytest.CaptureFixture[str]) -> None:
    """A URL may look like the markup of the panel."""
    with Panel() as panel:
        panel.show(a_moment(next_url="http://example.org/[/bold]/[red]?a[]=1"))
    assert "[/bold]/[red]?a[]=1" in capsys.readouterr().err


def test_a_terminal_gets_a_panel(tmp_path: Path) -> None:
    with HostileServer() as server:
        server.routes["/robots.txt"] = answer(b"", "404 Not Found")
        server.routes["/"] = answer(b"<title>Home</title><p>a heron")
        root = make_crawl(tmp_path / "crawl", [server.url("/")])
        main, follower = pty.openpty()
        with subprocess.Popen(
            command_line("crawl", root, "--for", "2s", "--workers", 1),
            stdout=subprocess.PIPE,
            stderr=follower,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
        ) as process:
            os.close(follower)
            shown = b""
            end = time.monotonic() + 20
            while time.monotonic() < end:
                if not select.select([main], [], [], 0.2)[0]:
                    if process.poll() is not None:
                        break
                    continue
                try:
                    part = os.read(main, 65_536)
                except OSError:
                    break
                if not part:
                    break
                shown += part
            assert process.wait(5) == 0
        os.close(main)
    text = shown.decode()
    assert "\x1b[" in text
    for word in ("fetched", "frontier", "errors", "next bid"):
        assert word in text
    assert "Traceback" not in text


def test_a_closed_pipe_is_no_error(sample: Sample) -> None:
    """`bowerbird next DIR | head -1`."""
    process = subprocess.Popen(
        command_line("next", sample.root, "-n", 1000), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    process.wait(20)
    assert b"Traceback" not in err


def test_the_entry_point_is_installed() -> None:
    script = Path(sys.executable).with_name("bowerbird")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0
    assert bowerbird.__version__ in done.stdout
