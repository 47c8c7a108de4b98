"""Scrapy's scheduler with a crawl folder behind it: `SCHEDULER = "bowerbird.integrations.scrapy.Scheduler"`."""

from bowerbird.integrations.scrapy.scheduler import Scheduler

__all__ = ["Scheduler"]
