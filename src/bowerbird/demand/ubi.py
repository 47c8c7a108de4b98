"""OpenSearch User Behavior Insights: documents of `ubi_queries` and `ubi_events`, as JSON lines or in bulk form.

Of a query: `user_query`, `timestamp`, the number of `query_response_hit_ids`. Of an event: what was shown or
clicked, at which position. Ids of clients, users and sessions are not read; a query's own id becomes a keyed
hash, by which events find their query where they do not name it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bowerbird.demand.jsonl import parse_object
from bowerbird.demand.lines import RecordFormat
from bowerbird.demand.records import MAX_RANK, BadLine, Context, Unused, parse_count, parse_query_text
from bowerbird.demand.tally import Tally

CLICKS = frozenset({"click", "item_click", "result_click", "product_click", "clickthrough", "onclick"})
IMPRESSIONS = frozenset({"impression", "item_impression", "result_impression", "product_impression", "view"})
_BULK_ACTIONS = frozenset({"index", "create", "update", "delete"})

#: keyed hash of a query id -> key of its query, from earlier imports
Lookup = Callable[[str], int | None]


class UserBehaviorInsights(RecordFormat):
    """Both kinds of documents, told apart by their fields."""

    name = "ubi"

    def __init__(
        self, context: Context, find_query: Lookup, *, first_position: int = 1, hits_shown: bool = False
    ) -> None:
        self.context = context
        self.find_query = find_query
        self.first_position = first_position
        self.hits_shown = hits_shown

    def take_line(self, line: str, tally: Tally) -> None:
        """Add one document."""
        document = parse_object(line)
        if len(document) == 1 and document.keys() <= _BULK_ACTIONS and isinstance(next(iter(document.values())), dict):
            raise Unused("bulk action")
        source = document.get("_source", document)
        if not isinstance(source, dict):
            raise BadLine("_source is not an object")
        if "action_name" in source:
            self._take_event(source, tally)
        elif "user_query" in source:
            self._take_query(source, tally)
        else:
            raise BadLine("neither a query (no user_query) nor an event (no action_name)")

    def _time(self, source: dict[str, Any]) -> tuple[float, bool]:
        value = source.get("timestamp")
        return (self.context.at, False) if value in (None, "") else (self.context.time_of(value), True)

    def _take_query(self, source: dict[str, Any], tally: Tally) -> None:
        if source["user_query"] in (None, ""):
            raise Unused("query without text")
        text = parse_query_text(source["user_query"])
        at, timed = self._time(source)
        hits = source.get("query_response_hit_ids")
        if hits is None:
            hits = source.get("query_response_object_ids")
        urls = []
        if isinstance(hits, list) and self.hits_shown:
            urls = [self.context.url_of(str(hit)) for hit in hits]
        tally.ask(text, at, 1, len(hits) if isinstance(hits, list) else None, timed=timed)
        key = tally.key_of(text)
        identifier = source.get("query_id")
        if isinstance(identifier, str) and identifier:
            tally.query_ids[tally.key_of(identifier)] = key
        for rank, url in enumerate(urls, 1):
            tally.show(key, url, rank, at)

    def _take_event(self, source: dict[str, Any], tally: Tally) -> None:
        action = str(source["action_name"]).lower()
        clicked = action in CLICKS
        if not clicked and action not in IMPRESSIONS:
            raise Unused("other actions than clicks and impressions")
        attributes = source.get("event_attributes")
        if not isinstance(attributes, dict):
            raise BadLine(f"{action} without event_attributes")
        thing = attributes.get("object")
        if not isinstance(thing, dict):
            raise BadLine(f"{action} without event_attributes.object")
        address = thing.get("url") or thing.get("object_id")
        if address in (None, ""):
            raise BadLine(f"{action} without object_id")
        url = self.context.url_of(str(address))
        at, timed = self._time(source)
        rank = self._rank(attributes.get("position"))
        query = self._query(source, tally)
        if clicked:
            tally.click(query, url, rank, at, timed=timed)
        elif query is None or rank is None:
            raise Unused("shown, without query or rank")
        else:
            tally.show(query, url, rank, at)

    def _rank(self, position: Any) -> int | None:
        ordinal = position.get("ordinal") if isinstance(position, dict) else position
        if ordinal is None:
            return None
        number = parse_count(ordinal, "position", 0, MAX_RANK - 1)
        if number < self.first_position:
            raise BadLine("position 0: where positions start at 0, say --first-position 0")
        return number - self.first_position + 1

    def _query(self, source: dict[str, Any], tally: Tally) -> int | None:
        text = source.get("user_query")
        if isinstance(text, str) and text.strip():
            return tally.key_of(parse_query_text(text))
        identifier = source.get("query_id")
        if not isinstance(identifier, str) or not identifier:
            return None
        key = tally.query_ids.get(tally.key_of(identifier))
        return self.find_query(identifier) if key is None else key
