"""Errors of a PostgreSQL server, reworded: its own messages may quote a value."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pyarrow as pa

from discreet.engines.table_source import EngineError
from discreet.kernel.errors import DiscreetError
from discreet.postgres.server import ServerUnreachable, driver

INVALID_PARAMETER_VALUE = "22023"
LOCK_NOT_AVAILABLE = "55P03"
MISSING_OR_FORBIDDEN = ("42P01", "3F000", "42501")  # a table, a schema, or the right to use it
_UNKNOWN_REASON = "the server refused"
_REASONS: dict[str | None, str] = {
    LOCK_NOT_AVAILABLE: "others hold a lock on a table for too long",
    "57014": "the question took too long, or somebody cancelled it",
    "42501": "the role may not read what it could when the engine was opened",
    "42P01": "a table is gone",
    "53100": "the server's disk is full",
    "53200": "the server has no memory left",
    "53400": "the question needs more room than the server's limits allow",
    **dict.fromkeys(("57P01", "57P02", "57P03", "25P03"), "the server ended the connection"),
    None: "the connection was lost",
}


class PostgresServerError(EngineError):
    """The server did not do what it was asked for; `sqlstate` is its code for the reason, if it gave one."""

    def __init__(self, reason: str, sqlstate: str | None) -> None:
        super().__init__(f"the engine stopped: {reason}. The server's log has the reason.")
        self.sqlstate = sqlstate


@contextmanager
def translate_errors() -> Iterator[None]:
    """Turn whatever the driver or the server says into an EngineError; what led to it is not kept, not even as a cause.

    With the code and the time, the reason can be found in the server's own log.
    """
    try:
        yield
    except ServerUnreachable as error:
        raise EngineError(str(error)) from None
    except DiscreetError:
        raise
    except driver().Error as error:
        sqlstate, now = error.sqlstate, datetime.now(UTC)
        raise PostgresServerError(
            f"{_REASONS.get(sqlstate, _UNKNOWN_REASON)} (SQLSTATE {sqlstate}, {now:%Y-%m-%d %H:%M:%S} UTC)", sqlstate
        ) from None
    except (pa.ArrowException, KeyError, ValueError, OverflowError, UnicodeError) as error:
        raise EngineError(f"the engine stopped: its answer cannot be read ({type(error).__name__})") from None
