from __future__ import annotations

import doctest

import pytest

import bowerbird.web.domain as domain_module
from bowerbird.web.domain import registered_domain


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("www.example.com", "example.com"),
        ("example.com", "example.com"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("joe.blogspot.com", "joe.blogspot.com"),
        ("www.city.kobe.jp", "city.kobe.jp"),
        ("www.xn--85x722f.com.cn", "xn--85x722f.com.cn"),
        ("WWW.Example.COM.", "example.com"),
        ("com", "com"),
        ("localhost", "localhost"),
        ("intranet.nosuchtld", "intranet.nosuchtld"),
        ("192.168.0.1", "192.168.0.1"),
        ("2001:db8::1", "2001:db8::1"),
        ("[::1]", "::1"),
        ("", ""),
        ("a..b", "a..b"),
    ],
)
def test_registered_domain(host: str, expected: str) -> None:
    assert registered_domain(host) == expected


def test_registered_domain_is_a_fixed_point() -> None:
    for host in ("a.b.c.example.org", "x.y.co.jp", "deep.sub.github.io"):
        domain = registered_domain(host)
        assert registered_domain(domain) == domain
        assert host.endswith(domain)


def test_examples_in_docstrings() -> None:
    results = doctest.testmod(domain_module)
    assert results.attempted >= 1
    assert results.failed == 0
