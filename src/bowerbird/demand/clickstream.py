"""The Wikipedia clickstream: prev, curr, type, n. Visits from search engines are clicks on the page `curr`."""

from __future__ import annotations

from bowerbird.demand.lines import RecordFormat
from bowerbird.demand.records import BadLine, Context, Unused, parse_count
from bowerbird.demand.tally import Tally
from bowerbird.model.errors import ConfigError

FROM_SEARCH = ("other-search", "other-google", "other-yahoo", "other-bing")
_COLUMNS = 4


class Clickstream(RecordFormat):
    """Four columns without a header (a header is tolerated); counts of a month, so the time of a click is unknown."""

    name = "clickstream"

    def __init__(self, context: Context) -> None:
        if not context.url_prefix:
            raise ConfigError(
                "clickstream: it names pages by title. Say where they are, e.g. "
                "--url-prefix https://hr.wikipedia.org/wiki/."
            )
        self.context = context

    def take_line(self, line: str, tally: Tally) -> None:
        """Add one row."""
        cells = line.split("\t")
        if len(cells) != _COLUMNS:
            raise BadLine(f"{len(cells)} columns instead of prev, curr, type, n")
        source, title, _, count = cells
        if source not in FROM_SEARCH:
            if source == "prev" and count == "n":
                raise Unused("header")
            parse_count(count, "n")
            raise Unused("not from search")
        clicks = parse_count(count, "n", 1)
        if not title:
            raise BadLine("no page")
        tally.click(None, self.context.url_of(title), None, self.context.at, clicks, timed=False)
