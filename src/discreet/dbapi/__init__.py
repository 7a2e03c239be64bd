"""The Python Database API 2.0 (PEP 249).

connection   connect, Connection, and the statements SET, RESET, SHOW and EXPLAIN
cursor       Cursor
parameters   binding of values to ? and :name
types        type codes and constructors
errors       the exceptions of PEP 249, combined with Discreet's own
"""

from discreet.dbapi.connection import Connection, Cursor, connect
from discreet.dbapi.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    LedgerStopped,
    NotSupportedError,
    OperationalError,
    PolicyUnusable,
    ProgrammingError,
    QuestionFailed,
    QuestionRefused,
    Warning,  # noqa: A004 - PEP 249's name
)
from discreet.dbapi.types import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)

apilevel = "2.0"
threadsafety = 2  # threads may share the module and connections, but not cursors
paramstyle = "qmark"  # with a dict, placeholders are :name

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "LedgerStopped",
    "NotSupportedError",
    "OperationalError",
    "PolicyUnusable",
    "ProgrammingError",
    "QuestionFailed",
    "QuestionRefused",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]
