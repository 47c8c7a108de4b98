"""robots.txt against the specification's cases, real files and the samples of crawler-commons."""

from __future__ import annotations

import json
import tarfile
import time
from pathlib import Path

import pytest

from bowerbird.web.robots import RobotsRules

# RFC 9309 (2.2.2, table of encoded paths) has /foo/bar/%62%61%7A match /foo/bar/baz; this case denies it.
AGAINST_THE_RFC = {("correctness/non-ascii-paths.textproto", "/foo/bar/%62%61%7A", "http://foo.bar/foo/bar/baz")}


def to_bytes(text: str) -> bytes:
    try:
        return text.encode("latin1")  # the cases spell byte order marks byte by byte
    except UnicodeEncodeError:
        return text.encode()


@pytest.fixture(scope="module")
def robots(shared_data: Path) -> Path:
    return shared_data / "conformance" / "robots"


@pytest.fixture(scope="module")
def samples(shared_data: Path) -> Path:
    return shared_data / "conformance" / "crawler-commons" / "robots"


def test_decisions(robots: Path) -> None:
    cases = [json.loads(line) for line in (robots / "cases.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(cases) == 400
    failures = []
    for case in cases:
        allowed = RobotsRules.parse(to_bytes(case["robotstxt"]), case["agent"]).allows(case["url"])
        if allowed != (case["expected"] == "ALLOWED"):
            failures.append(case)
    unexpected = [
        case
        for case in failures
        if not any(
            case["file"] == file and pattern in case["robotstxt"] and case["url"] == url
            for file, pattern, url in AGAINST_THE_RFC
        )
    ]
    assert unexpected == []
    assert len(failures) == len(AGAINST_THE_RFC)


def test_real_files(robots: Path) -> None:
    started = time.process_time()
    count = forbidden = delayed = with_sitemaps = 0
    with tarfile.open(robots / "real-files.tar.xz") as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isfile() else None
            if file is None:
                continue
            rules = RobotsRules.parse(file.read(), "bowerbird")
            count += 1
            forbidden += not rules.allows("https://example.com/")
            delayed += rules.crawl_delay_s is not None
            with_sitemaps += bool(rules.sitemaps)
    assert count == 4231
    assert time.process_time() - started < 20
    assert 0 < forbidden < count // 4
    assert delayed > 100
    assert with_sitemaps > 1000


@pytest.mark.parametrize(
    ("name", "agent", "delay_s", "sitemaps"),
    [
        ("astore.amazon.com-robots.txt", "bowerbird", 5.0, 0),
        ("dos-line-endings.txt", "bowerbird", 1.0, 0),
        ("crawl-delay-group-merging.txt", "mybot", 10.0, 0),
        ("crawl-delay-group-merging.txt", "yourbot", None, 0),
        ("crawl-delay-group-merging.txt", "bowerbird", 30.0, 0),
        ("twitter.com-robots.txt", "slurp", 1.0, 0),
        ("twitter.com-robots.txt", "msnbot", 10.0, 0),
        ("twitter.com-robots.txt", "googlebot", None, 0),
        ("twitter.com-robots.txt", "bowerbird", None, 0),
        ("sitemap-robots.txt", "bowerbird", None, 2),
        ("sitemap-robots-dedup.txt", "bowerbird", None, 1),
        ("relative-sitemap-robots.txt", "bowerbird", None, 1),
        ("robots-with-utf8-bom.txt", "bowerbird", None, 1),
        ("robots-with-utf16le-bom.txt", "bowerbird", None, 1),
        ("robots-with-utf16be-bom.txt", "bowerbird", None, 1),
        ("www.flot.com-robots.txt", "bowerbird", None, 1),
        ("extension-robots.txt", "mybot", None, 1),
        ("format-errors-robots.txt", "bowerbird", None, 1),
        ("wildcards.txt", "bowerbird", None, 8),
    ],
)
def test_delays_and_sitemaps(samples: Path, name: str, agent: str, delay_s: float | None, sitemaps: int) -> None:
    rules = RobotsRules.parse((samples / name).read_bytes(), agent)
    assert rules.crawl_delay_s == delay_s
    assert len(rules.sitemaps) == sitemaps


def test_sitemaps_are_as_written(samples: Path) -> None:
    mixed = RobotsRules.parse((samples / "sitemap-robots.txt").read_bytes(), "bowerbird")
    assert mixed.sitemaps == ("http://domain.com/sitemap.xml", "http://domain.com/dir/MixedCased-sitemap.xml")
    relative = RobotsRules.parse((samples / "relative-sitemap-robots.txt").read_bytes(), "bowerbird")
    assert relative.sitemaps == ("/sitemap.xml",)
    utf16 = RobotsRules.parse((samples / "robots-with-utf16le-bom.txt").read_bytes(), "bowerbird")
    assert utf16.sitemaps == ("http://www.newsweek.com/sitemap_index.xml",)


@pytest.mark.parametrize(
    ("name", "agent", "forbidden", "allowed"),
    [
        ("robots-with-utf8-bom.txt", "bowerbird", ["/profile", "/x/output/print"], ["/"]),
        ("robots-with-utf16le-bom.txt", "bowerbird", ["/profile", "/x/output/print"], ["/"]),
        ("robots-with-utf16be-bom.txt", "googlebot", ["/profile", "/x/output/print"], ["/"]),
        ("rfc9309-example-simple-robots.txt", "foobot", ["/", "/x.gif"], ["/example/page.html"]),
        ("rfc9309-example-simple-robots.txt", "bazbot", ["/example/page.html"], ["/example/x.gif"]),
        ("rfc9309-example-simple-robots.txt", "quxbot", [], ["/example/", "/x.gif"]),
        (
            "rfc9309-example-simple-robots.txt",
            "bowerbird",
            ["/x.gif", "/example/"],
            ["/publications/", "/x.gif?"],
        ),
        (
            "rfc9309-example-longest-match-robots.txt",
            "foobot",
            ["/example/page/disallowed.gif"],
            ["/example/page/"],
        ),
        ("rfc9309-example-rule-group-merging.txt", "examplebot", ["/foo", "/bar", "/baz"], ["/"]),
        ("crawl-delay-group-merging.txt", "mybot", ["/private/"], ["/login/"]),
        ("crawl-delay-group-merging.txt", "yourbot", ["/private/", "/login/"], ["/"]),
        ("merge-rules.txt", "wget", ["/tmp/bar"], ["/foo/bar", "/ckh/bar"]),
        ("precedence-of-rules.txt", "testy", ["/foo", "/foo/baz"], ["/foo/bar"]),
        # product tokens have no digits: bot1 to bot4 are all "bot"
        (
            "directive-typos-robots.txt",
            "bot",
            ["/dissalow/", "/useragent/", "/useragent-no-colon/"],
            ["/desallow/"],
        ),
        ("format-errors-robots.txt", "bot", ["/", "/whitespace-before-colon/"], ["/whitespace-before-colon"]),
        ("malformed-path.txt", "bowerbird", ["/wiki/Wikipedia_talk:Mediation_Committee/"], ["/wiki/"]),
        ("many-user-agents.txt", "Alexibot", ["/"], []),
    ],
)
def test_samples(samples: Path, name: str, agent: str, forbidden: list[str], allowed: list[str]) -> None:
    rules = RobotsRules.parse((samples / name).read_bytes(), agent)
    assert [path for path in forbidden if rules.allows("http://example.com" + path)] == []
    assert [path for path in allowed if not rules.allows("http://example.com" + path)] == []


def test_every_sample_can_be_read(samples: Path) -> None:
    files = sorted(samples.glob("*.txt"))
    assert len(files) == 24
    for file in files:
        for agent in ("bowerbird", "wget", "bot3"):
            assert isinstance(RobotsRules.parse(file.read_bytes(), agent).allows("http://example.com/x"), bool)
