"""The names of the methods that rank a graph without a crawl behind it. Loads nothing, for commands show them."""

from __future__ import annotations

RANK_TOLERANCE = 1e-8  # of walks that rank tables and files
METHODS = ("random", "indegree", "pagerank", "rw", "rw-eg", "learned", "query-driven", "hybrid", "boosted")
OTHER_NAMES = {"in-degree": "indegree"}
ASKING = ("query-driven", "hybrid", "boosted")  # which cannot do without queries
WALKS = ("pagerank", "rw", "rw-eg")
SPARK_METHODS = ("indegree", *WALKS)
