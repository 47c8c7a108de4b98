"""Which addresses a crawler may connect to.

A crawler runs inside somebody's network, and any page can link (or any name resolve) to a router, a database
or a cloud's metadata service there. Only public unicast addresses are fetched, unless the owner names others.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Final

from bowerbird.model.errors import ConfigError

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _networks(*texts: str) -> tuple[_Network, ...]:
    return tuple(ipaddress.ip_network(text) for text in texts)


# IANA's special-purpose registry. The standard library's own flags differ between Python releases.
_REFUSED_V4: Final = _networks(
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
    *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24"),
    *("203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
)
_UNICAST_V6: Final = ipaddress.IPv6Network("2000::/3")
_REFUSED_V6: Final = _networks("2001::/23", "2001:db8::/32", "3fff::/20")
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")

_NAMED: Final = {
    "loopback": _networks("127.0.0.0/8", "::1/128"),
    "private": _networks("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"),
}
_CACHE_SIZE: Final = 50_000


class AddressPolicy:
    """Says whether an address may be connected to.

    `allow` names networks to permit all the same: CIDR strings, `loopback` or `private`.

    >>> AddressPolicy().permits("93.184.216.34"), AddressPolicy().permits("::ffff:169.254.169.254")
    (True, False)
    >>> AddressPolicy(allow=("10.1.0.0/16",)).permits("10.1.2.3")
    True
    """

    def __init__(self, allow: tuple[str, ...] = ()) -> None:
        self.allow = allow
        self._allowed = tuple(network for text in allow for network in _read_network(text))
        self._known: dict[str, bool] = {}

    def __repr__(self) -> str:
        return f"AddressPolicy(allow={self.allow!r})"

    def permits(self, ip: str) -> bool:
        """May we connect to this address? What is not an address is refused."""
        known = self._known.get(ip)
        if known is None:
            if len(self._known) >= _CACHE_SIZE:
                self._known.clear()
            known = self._known[ip] = self._decide(ip)
        return known

    def _decide(self, ip: str) -> bool:
        try:
            address = ipaddress.ip_address(ip.strip("[]").partition("%")[0])
        except ValueError:
            return False
        if _within(address, self._allowed):
            return True
        if isinstance(address, ipaddress.IPv4Address):
            return not _within(address, _REFUSED_V4)
        embedded = _embedded_v4(address)
        if embedded is not None:
            return self._decide(str(embedded))
        return address in _UNICAST_V6 and not _within(address, _REFUSED_V6)


def _embedded_v4(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that traffic to an IPv4-mapped, 6to4 or NAT64 address ends at."""
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour


def _within(address: _Address, networks: Iterable[_Network]) -> bool:
    return any(address in network for network in networks if network.version == address.version)


def _read_network(text: str) -> tuple[_Network, ...]:
    named = _NAMED.get(text.strip().lower())
    if named is not None:
        return named
    try:
        return (ipaddress.ip_network(text.strip(), strict=False),)
    except ValueError:
        raise ConfigError(
            f"allowed address {text!r} is not a network: write 10.0.0.0/8, 10.1.2.3, 'loopback' or 'private'"
        ) from None
