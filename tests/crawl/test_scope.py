from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bowerbird.crawl.scope import Scope, ScopeRules
from bowerbird.web.url import Canonicaliser

SEEDS = ["https://www.example.org/", "http://shop.example.co.uk:8080/", "http://127.0.0.1:9000/"]
hosts = st.one_of(
    st.sampled_from(
        [
            "example.org",
            "www.example.org",
            "EXAMPLE.org",
            "example.org.",
            "badexample.org",
            "a.example.co.uk",
            "co.uk",
            "127.0.0.1",
            "0177.0.0.1",
            "0x7f.1",
            "2130706433",
            "user@example.org",
            "user:x@example.org:80",
            "example%2Eorg",
            "example.org:443",
            "ex\xadample.org",
            "ｅxample.org",
            "127.1",
            "[::1]",
            "example.org\t",
        ]
    ),
    st.from_regex(r"[a-z0-9.-]{1,12}(\.org|\.co\.uk|\.0\.0\.1)?(:[0-9]{1,4})?", fullmatch=True),
)


@given(st.sampled_from(["host", "domain", "anywhere"]), st.sampled_from(["http://", "https://"]), hosts, st.text())
def test_what_is_excluded_at_a_glance_would_not_be_admitted(scope: str, scheme: str, host: str, rest: str) -> None:
    href = f"{scheme}{host}/{rest}"
    gate = Scope(ScopeRules(scope), SEEDS)
    canonical = Canonicaliser().canonical(href)
    if gate.surely_excludes(href):
        assert canonical is None or not gate.admits(canonical)


def test_a_plain_foreign_host_is_seen_at_a_glance() -> None:
    assert Scope(ScopeRules("domain"), SEEDS).surely_excludes("https://elsewhere.example/path")
    assert not Scope(ScopeRules("anywhere"), SEEDS).surely_excludes("https://elsewhere.example/path")
