"""PEP 249, the Database API 2.0: `connect` and all that the specification wants beside it.

errors       the tree of PEP 249, joined with Discreet's own
types        what a column holds;  binding: values in the places of ? and :name
statements   SET, RESET, SHOW, EXPLAIN;  connection, cursor: what a program holds
"""

from discreet.dbapi.connection import Connection, connect
from discreet.dbapi.cursor import Cursor
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
paramstyle = "qmark"  # a mapping binds :name instead

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
