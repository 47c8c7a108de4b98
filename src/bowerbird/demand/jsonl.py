"""JSON lines: one object a line, with the keys of `records.NAMES`."""

from __future__ import annotations

import orjson

from bowerbird.demand.lines import RecordFormat
from bowerbird.demand.records import FIELD_OF, BadLine, Context, take_record
from bowerbird.demand.tally import Tally


class JsonLines(RecordFormat):
    """Objects with `query`, `time`, `count`, `results`, `url`, `rank`, `clicked`, `shown`; other keys are ignored."""

    name = "jsonl"

    def __init__(self, context: Context) -> None:
        self.context = context

    def take_line(self, line: str, tally: Tally) -> None:
        """Add one object."""
        values = parse_object(line)
        record: dict[str, object] = {}
        for name, value in values.items():
            field = FIELD_OF.get(name.lower())
            if field is not None:
                record.setdefault(field, value)
        take_record(record, tally, self.context)


def parse_object(line: str) -> dict[str, object]:
    """A line that is one JSON object."""
    try:
        values = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise BadLine(f"not JSON ({error.msg if hasattr(error, 'msg') else error})") from None
    if not isinstance(values, dict):
        raise BadLine("not a JSON object")
    return values
