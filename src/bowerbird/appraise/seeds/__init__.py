"""Where to start? The few pages from which a crawl reaches most of what is worth having, within so many links."""
