"""The owner's log of what a service did, one JSON object per line: who asked what and how it ended, without answers."""

import json
import logging
from datetime import UTC, datetime

LOGGER = logging.getLogger("discreet.server")
LOGGER.propagate = False  # the owner's log of failures has its own form
LOGGER.addHandler(logging.NullHandler())
LOGGER.setLevel(logging.INFO)
_MAX_TEXT = 10_000  # characters of a query


def log_event(event: str, **fields: object) -> None:
    """Log an event with the fields that are not None; they must not contain answers or values of the data."""
    LOGGER.info(event, extra={"fields": {name: value for name, value in fields.items() if value is not None}})


class JsonLine(logging.Formatter):
    """Formats an event as one line of JSON.

    >>> record = logging.LogRecord("discreet.server", logging.INFO, "", 0, "start", (), None)
    >>> record.created, record.fields = 0.0, {"version": "0.1"}
    >>> JsonLine().format(record)
    '{"time": "1970-01-01T00:00:00.000+00:00", "event": "start", "version": "0.1"}'
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = {name: _shorten(value) for name, value in getattr(record, "fields", {}).items()}
        return json.dumps({"time": time, "event": record.getMessage(), **fields}, default=str)


def _shorten(value: object) -> object:
    return value[:_MAX_TEXT] if isinstance(value, str) else value
