from __future__ import annotations

import doctest
import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bowerbird.web.address as address_module
from bowerbird.model.errors import ConfigError
from bowerbird.web.address import AddressPolicy

REFUSED = [
    *("127.0.0.1", "127.8.9.1", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1"),
    *(
        "169.254.169.254",
        "169.254.0.1",
        "100.64.0.1",
        "100.127.255.255",
        "224.0.0.1",
        "239.1.1.1",
        "240.0.0.1",
    ),
    *("255.255.255.255", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "192.0.0.8"),
    *("::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "fec0::1", "ff02::1", "2001:db8::1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "2002:7f00:1::", "2002:a9fe:a9fe::1"),
    *("64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::8.8.8.8", "::127.0.0.1", "2001::1", "[::1]"),
    *("100::1", "fd00:ec2::254", "", "localhost", "1.2.3", "0x7f000001", "127.1"),
]
PERMITTED = [
    *(
        "8.8.8.8",
        "93.184.216.34",
        "172.15.0.1",
        "172.32.0.1",
        "100.63.255.255",
        "100.128.0.1",
        "223.255.255.255",
    ),
    *("2606:2800:220:1:248:1893:25c8:1946", "::ffff:8.8.8.8", "2002:808:808::1", "64:ff9b::8.8.8.8"),
    *("[2606:2800::1]", "2001:4860:4860::8888"),
]


@pytest.mark.parametrize("ip", REFUSED)
def test_refuses_what_is_not_public(ip: str) -> None:
    policy = AddressPolicy()
    assert policy.permits(ip) is False
    assert policy.permits(ip) is False  # from the table


@pytest.mark.parametrize("ip", PERMITTED)
def test_permits_public_addresses(ip: str) -> None:
    assert AddressPolicy().permits(ip) is True


def test_allowed_networks() -> None:
    policy = AddressPolicy(allow=("loopback", "10.1.0.0/16", "192.168.7.7", "fd00::/8"))
    for ip in ("127.0.0.1", "::1", "::ffff:127.0.0.1", "10.1.2.3", "192.168.7.7", "fd00::1", "8.8.8.8"):
        assert policy.permits(ip), ip
    for ip in ("10.2.0.1", "192.168.7.8", "169.254.169.254", "fe80::1"):
        assert not policy.permits(ip), ip


def test_private_does_not_open_the_metadata_service() -> None:
    policy = AddressPolicy(allow=("Private",))
    assert policy.permits("192.168.0.1")
    assert policy.permits("fc00::1")
    assert not policy.permits("169.254.169.254")
    assert not policy.permits("127.0.0.1")


def test_unusable_network_is_named() -> None:
    with pytest.raises(ConfigError, match=r"'10\.0\.0\.0/99'"):
        AddressPolicy(allow=("10.0.0.0/99",))


@given(st.ip_addresses(v=4))
def test_all_spellings_of_an_ipv4_address_are_judged_alike(ip: ipaddress.IPv4Address) -> None:
    policy = AddressPolicy()
    number = int(ip)
    spellings = (f"::ffff:{ip}", f"64:ff9b::{ip}", f"2002:{number >> 16:x}:{number & 0xFFFF:x}::")
    assert {policy.permits(spelling) for spelling in spellings} == {policy.permits(str(ip))}


@given(st.ip_addresses())
def test_never_permits_what_the_standard_library_calls_private(
    ip: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if ip.is_private or ip.is_multicast or ip.is_loopback or ip.is_link_local:
        embedded = getattr(ip, "ipv4_mapped", None)
        assert not AddressPolicy().permits(str(ip)) or embedded is not None


def test_repr_can_be_asserted_on() -> None:
    assert repr(AddressPolicy(("loopback",))) == "AddressPolicy(allow=('loopback',))"


def test_examples_in_docstrings() -> None:
    results = doctest.testmod(address_module)
    assert results.attempted >= 2
    assert results.failed == 0
