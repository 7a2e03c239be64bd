"""Create and open ledgers in SQLite: in a file, or in memory."""

import os
from collections.abc import Mapping

from discreet.kernel.ledger.ledger import Ledger, create_in, open_in
from discreet.kernel.ledger.terms import Terms
from discreet.kernel.loss import Budget
from discreet.ledger_sqlite.location import FileLocation, MemoryLocation
from discreet.ledger_sqlite.session import SQLiteSession, ledger_errors


def create_ledger(
    path: str | os.PathLike[str],
    *,
    name: str,
    budget: Budget,
    analysts: Mapping[str, Budget] | None = None,
    unit_declaration: str = "",
) -> Ledger:
    """Create a ledger for the data set `name` at a path where none exists.

    >>> from tempfile import mkdtemp
    >>> path = mkdtemp() + "/ledger.sqlite"
    >>> create_ledger(path, name="demo", budget=Budget(1)).close()
    >>> create_ledger(path, name="demo", budget=Budget(1))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    discreet.kernel.errors.LedgerError: ...ledger.sqlite: the file already exists. Open it with open_ledger, ...
    """
    terms, location = Terms(name, budget, analysts, unit_declaration), FileLocation(path)
    with ledger_errors(location):
        location.create()
    return create_in(SQLiteSession(location), terms)


def memory_ledger(
    *, name: str, budget: Budget, analysts: Mapping[str, Budget] | None = None, unit_declaration: str = ""
) -> Ledger:
    """Create a ledger that exists only in memory, for trials.

    >>> from discreet.kernel.event import Event
    >>> from discreet.kernel.loss import Loss
    >>> ledger = memory_ledger(name="demo", budget=Budget(1))
    >>> receipt = ledger.charge(Loss("1/4"), Event(mechanism="{}", sensitivity="{}", question="count"))
    >>> ledger.settle(receipt, b"42")
    >>> ledger.spent()
    Loss(epsilon=1/4, rho=1/32)
    >>> ledger.close()
    """
    return create_in(SQLiteSession(MemoryLocation()), Terms(name, budget, analysts, unit_declaration))


def open_ledger(path: str | os.PathLike[str], *, name: str) -> Ledger:
    """Open the existing ledger of the data set `name`.

    >>> open_ledger("nowhere.sqlite", name="demo")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    discreet.kernel.errors.LedgerError: ...nowhere.sqlite: the ledger does not exist. Correct the path, ...
    """
    return open_in(SQLiteSession(FileLocation(path)), name)
