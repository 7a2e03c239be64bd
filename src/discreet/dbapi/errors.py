"""The exceptions of PEP 249; those that correspond to one of Discreet's own can be caught as either.

DiscreetError
├── Error
│   ├── InterfaceError                closed, or nothing to fetch
│   └── DatabaseError
│       ├── ProgrammingError ──────── QuestionRefused, also a Refused: not charged
│       ├── OperationalError ──────── QuestionFailed, also a Failed: charged
│       │                        ├─── LedgerStopped, also a LedgerError
│       │                        └─── PolicyUnusable, also a PolicyError
│       ├── NotSupportedError         executemany
│       └── DataError, IntegrityError, InternalError: never raised
└── Refused, Failed, LedgerError, PolicyError
"""

from collections.abc import Iterator
from contextlib import contextmanager

from discreet.kernel.errors import DiscreetError, Failed, LedgerError, PolicyError, Refused


class Warning(Exception):  # noqa: A001, N818 - PEP 249's name
    """Never raised; required by PEP 249."""


class Error(DiscreetError):
    """The base class of all exceptions of this module."""


class InterfaceError(Error):
    """The connection or cursor is closed, or has no result."""


class DatabaseError(Error):
    """An error of the query, the data or the ledger."""


class DataError(DatabaseError):
    """Never raised: values out of range become NULL."""


class OperationalError(DatabaseError):
    """An error that is not caused by the query."""


class IntegrityError(DatabaseError):
    """Never raised: queries do not change data."""


class InternalError(DatabaseError):
    """Never raised."""


class ProgrammingError(DatabaseError):
    """The query is not valid or not allowed."""


class NotSupportedError(DatabaseError):
    """A feature of PEP 249 that Discreet does not support."""


class QuestionRefused(ProgrammingError, Refused):  # noqa: N818 - an outcome
    """The query was not answered and not charged; see discreet.Refused."""


class QuestionFailed(OperationalError, Failed):  # noqa: N818 - an outcome
    """The query was charged but not answered; see discreet.Failed."""


class LedgerStopped(OperationalError, LedgerError):  # noqa: N818 - an outcome
    """The ledger cannot be used; see discreet.LedgerError."""


class PolicyUnusable(OperationalError, PolicyError):  # noqa: N818 - an outcome
    """The policy cannot be used; see discreet.PolicyError."""


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise Discreet's errors as the corresponding ones of PEP 249."""
    try:
        yield
    except Error:
        raise
    except Refused as error:
        raise QuestionRefused(str(error)) from None
    except Failed as error:
        raise QuestionFailed(str(error)) from None
    except LedgerError as error:
        raise LedgerStopped(str(error)) from None
    except PolicyError as error:
        raise PolicyUnusable(str(error)) from None
