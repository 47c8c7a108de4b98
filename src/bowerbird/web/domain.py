"""Who registered a host name: the part of it that one owner answers for."""

from __future__ import annotations

import ipaddress
from functools import cache, lru_cache

from publicsuffixlist import PublicSuffixList


@cache
def _suffixes() -> PublicSuffixList:
    # Reading the list takes a while; a process that never asks should not wait for it.
    return PublicSuffixList()


@lru_cache(maxsize=100_000)
def registered_domain(host: str) -> str:
    """The registered domain of a host, by the public suffix list; an address or a bare suffix is its own.

    >>> registered_domain("news.bbc.co.uk"), registered_domain("joe.github.io"), registered_domain("10.0.0.1")
    ('bbc.co.uk', 'joe.github.io', '10.0.0.1')
    """
    host = host.lower().rstrip(".")
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        domain: str | None = _suffixes().privatesuffix(host)
        return domain or host
    return host.strip("[]")
