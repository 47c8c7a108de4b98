"""Scrapy's scheduler with a crawl folder behind it: `SCHEDULER = "bowerbird.integrations.scrapy.Scheduler"`."""

from bowerbird.integrations.scrapy.needed_version import check_version

check_version()

from bowerbird.integrations.scrapy.scheduler import Scheduler  # noqa: E402 - an older Scrapy lacks what that imports

__all__ = ["Scheduler"]
