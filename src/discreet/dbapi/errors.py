"""The errors of PEP 249, and Discreet's own as such: each can be caught as either.

DiscreetError
├── Error
│   ├── InterfaceError                used after it was closed, or fetched without a question
│   └── DatabaseError
│       ├── ProgrammingError ──────── QuestionRefused, which is Refused too: not charged
│       ├── OperationalError ──────── QuestionFailed, which is Failed too: charged
│       │                        ├─── LedgerStopped, which is LedgerError too
│       │                        └─── PolicyUnusable, which is PolicyError too
│       ├── NotSupportedError         executemany
│       └── DataError, IntegrityError, InternalError: never raised
└── Refused, Failed, LedgerError, PolicyError
"""

from collections.abc import Iterator
from contextlib import contextmanager

from discreet.kernel.errors import DiscreetError, Failed, LedgerError, PolicyError, Refused


class Warning(Exception):  # noqa: A001, N818 - PEP 249's name
    """Never raised; PEP 249 wants it to be there."""


class Error(DiscreetError):
    """The root of all errors of this module."""


class InterfaceError(Error):
    """The connection or cursor is closed, or has nothing to give."""


class DatabaseError(Error):
    """The question, the data or the ledger."""


class DataError(DatabaseError):
    """Never raised: a value that does not fit is NULL."""


class OperationalError(DatabaseError):
    """Something that is not the question's fault."""


class IntegrityError(DatabaseError):
    """Never raised: questions change nothing."""


class InternalError(DatabaseError):
    """Never raised."""


class ProgrammingError(DatabaseError):
    """The question cannot be answered as it stands."""


class NotSupportedError(DatabaseError):
    """Something that PEP 249 has and a private curator has not."""


class QuestionRefused(ProgrammingError, Refused):  # noqa: N818 - an outcome
    """Not answered and not charged; see discreet.Refused."""


class QuestionFailed(OperationalError, Failed):  # noqa: N818 - an outcome
    """Charged and not answered; see discreet.Failed."""


class LedgerStopped(OperationalError, LedgerError):  # noqa: N818 - an outcome
    """The ledger cannot be used; see discreet.LedgerError."""


class PolicyUnusable(OperationalError, PolicyError):  # noqa: N818 - an outcome
    """The policy cannot be used; see discreet.PolicyError."""


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise Discreet's errors as those of PEP 249 that they are as well."""
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
