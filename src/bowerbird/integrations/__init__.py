"""Beside other people's crawlers: the frontier as a service for any fetcher, and as Scrapy's scheduler."""
