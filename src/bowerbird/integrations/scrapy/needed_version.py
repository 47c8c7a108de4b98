"""The Scrapy that is needed: what an older one lacks would show in the middle of a crawl."""

from __future__ import annotations

import scrapy

from bowerbird.model.errors import ConfigError

LEAST = (2, 18)


def check_version() -> None:
    """Raise where Scrapy is too old."""
    if tuple(scrapy.version_info[:2]) < LEAST:
        least = ".".join(map(str, LEAST))
        raise ConfigError(
            f"Scrapy {scrapy.__version__} is too old for bowerbird.integrations.scrapy, which needs {least} or later. "
            "Update it: pip install 'bowerbird[scrapy]'"
        )
