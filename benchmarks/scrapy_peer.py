"""Scrapy on the same task: follow every link of one host, drop duplicates, obey robots, keep nothing.

Run as its own process: `scrapy_peer.py URL --limit N --result FILE`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.exceptions import CloseSpider
from scrapy.linkextractors import LinkExtractor

ASYNCIO = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"
EPOLL = "twisted.internet.epollreactor.EPollReactor"


class FollowSpider(scrapy.Spider):
    """Every link of the seed's host."""

    name = "follow"

    def __init__(self, url: str, limit: int, result: Path, **more: Any) -> None:
        super().__init__(**more)
        self.start_urls = [url]
        self.extractor = LinkExtractor(allow_domains=[urlsplit(url).netloc])
        self.limit = limit
        self.result = result
        self.fetched: set[str] = set()
        self.began = self.ended = 0.0

    async def start(self) -> AsyncIterator[Any]:
        """The seed; timed from here, so that Scrapy's start-up is left out."""
        self.began = time.time()
        for url in self.start_urls:
            yield scrapy.Request(url)

    def parse(self, response: Any) -> Iterator[Any]:
        """Follow the links; stop counting at the limit."""
        if response.status == 200 and len(self.fetched) < self.limit:
            self.fetched.add(response.url)
            self.ended = time.time()
            if len(self.fetched) == self.limit:
                raise CloseSpider("limit")
        for link in self.extractor.extract_links(response):
            yield scrapy.Request(link.url)

    def closed(self, reason: str) -> None:
        """Leave the result."""
        seconds = self.ended - self.began
        self.result.write_text(json.dumps({"pages": len(self.fetched), "seconds": seconds, "reason": reason}))


def main() -> None:
    """Crawl one host."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--limit", type=int, required=True)
    parser.add_argument("--result", type=Path, required=True)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--reactor", choices=["asyncio", "epoll"], default="asyncio")
    options = parser.parse_args()
    settings = {
        "ROBOTSTXT_OBEY": True,
        "DOWNLOAD_DELAY": 0,
        "AUTOTHROTTLE_ENABLED": False,
        "CONCURRENT_REQUESTS": options.concurrency,
        "CONCURRENT_REQUESTS_PER_DOMAIN": options.concurrency,
        "COOKIES_ENABLED": False,
        "RETRY_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "LOG_LEVEL": "WARNING",
        "TWISTED_REACTOR": ASYNCIO if options.reactor == "asyncio" else EPOLL,
    }
    process = CrawlerProcess(settings)
    process.crawl(FollowSpider, url=options.url, limit=options.limit, result=options.result)
    process.start()


if __name__ == "__main__":
    main()
