"""Errors of a PostgreSQL server without its own messages, which may quote values of the data."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pyarrow as pa

from discreet.engines.table_source import EngineError, Unavailable
from discreet.kernel.errors import DiscreetError
from discreet.postgres.server import ServerUnreachable, driver

INVALID_PARAMETER_VALUE = "22023"
_LOCK_NOT_AVAILABLE = "55P03"
MISSING_OR_FORBIDDEN = ("42P01", "3F000", "42501")  # undefined table, undefined schema, insufficient privilege
_UNKNOWN_REASON = "the server reported an error"
_REASONS: dict[str | None, str] = {
    _LOCK_NOT_AVAILABLE: "another session holds a lock on a table",
    "57014": "the query exceeded the time limit or was cancelled",
    "42501": "the role has lost a privilege that it had when the engine was opened",
    "42P01": "a table does not exist any more",
    "53100": "the server's disk is full",
    "53200": "the server is out of memory",
    "53400": "the query exceeds a configured limit of the server",
    **dict.fromkeys(("57P01", "57P02", "57P03", "25P03"), "the server ended the connection"),
    None: "the connection was lost",
}


class PostgresServerError(EngineError):
    """The server reported an error, with its `sqlstate` if there is one."""

    def __init__(self, reason: str, sqlstate: str | None) -> None:
        super().__init__(f"the engine failed: {reason}. The server's log has the details.")
        self.sqlstate = sqlstate


@contextmanager
def translate_errors() -> Iterator[None]:
    """Turn errors of the driver and the server into EngineErrors without the original, not even as the cause.

    The SQLSTATE and the time identify the entry in the server's own log.
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
        raise EngineError(f"the engine failed: its result cannot be read ({type(error).__name__})") from None


@contextmanager
def refuse_if_locked(tables: Iterable[str]) -> Iterator[None]:
    """Refuse if another session locks one of these tables for too long; only ACCESS EXCLUSIVE keeps out readers."""
    try:
        with translate_errors():
            yield
    except PostgresServerError as error:
        if error.sqlstate != _LOCK_NOT_AVAILABLE:
            raise
        message = (
            f"table {' or '.join(sorted(tables))} is locked by another session (ACCESS EXCLUSIVE), such as a "
            "migration. Nothing was charged. Try again later."
        )
        raise Unavailable(error, message) from None
