"""Settings as `scrapy startproject` leaves them, and one line more."""

BOT_NAME = "pages"
SPIDER_MODULES = ["pages.spiders"]
USER_AGENT = "pages (+https://example.org/contact)"
ROBOTSTXT_OBEY = True
CONCURRENT_REQUESTS_PER_DOMAIN = 4
DOWNLOAD_DELAY = 0.0  # for a web on loopback; be gentler elsewhere
TELNETCONSOLE_ENABLED = False

SCHEDULER = "bowerbird.integrations.scrapy.Scheduler"
