"""Follows every link from some seeds, and says the title of each page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import scrapy
from scrapy.http import Response, TextResponse


class SiteSpider(scrapy.Spider):
    """scrapy crawl site -a seeds=seeds.txt [-a within=http://127.0.]: seeds are lines of a file."""

    name = "site"

    def __init__(self, seeds: str, within: str = "", **options: Any) -> None:
        super().__init__(**options)
        self.start_urls = [
            line.strip() for line in Path(seeds).read_text(encoding="utf-8").splitlines() if line.strip()
        ]
        self.hosts = {urlsplit(url).netloc for url in self.start_urls}
        self.within = within

    def parse(self, response: Response) -> Iterator[Any]:
        """One page: its title, and its links."""
        if not isinstance(response, TextResponse) or not hasattr(response, "css"):
            return
        yield {"url": response.url, "title": response.css("title::text").get()}
        for href in response.css("a::attr(href)").getall():
            url = response.urljoin(href)
            if url.startswith(self.within or "http") and (self.within or urlsplit(url).netloc in self.hosts):
                yield response.follow(href)
