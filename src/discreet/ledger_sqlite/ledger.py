"""Create and open ledgers in SQLite: in a file, or in memory."""

import os
from collections.abc import Mapping

from discreet.kernel.ledger.ledger import Ledger, create_in, open_in
from discreet.kernel.ledger.terms import DatasetTerms, Terms
from discreet.kernel.loss import Budget
from discreet.ledger_sqlite.location import FileLocation, MemoryLocation
from discreet.ledger_sqlite.session import SQLiteSession, ledger_errors


def create_ledger(  # noqa: PLR0913 - keyword-only except the path
    path: str | os.PathLike[str],
    *,
    name: str,
    budget: Budget,
    analysts: Mapping[str, Budget] | None = None,
    unit_declaration: str = "",
    datasets: Mapping[str, DatasetTerms] | None = None,
    dataset: str = "",
) -> Ledger:
    """Create a ledger at a path where none exists, for the data set `name` or the population `name` of `datasets`.

    A population's ledger is opened for one of its data sets, `dataset`.

    >>> from tempfile import mkdtemp
    >>> path = mkdtemp() + "/ledger.sqlite"
    >>> create_ledger(path, name="demo", budget=Budget(1)).close()
    >>> create_ledger(path, name="demo", budget=Budget(1))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    discreet.kernel.errors.LedgerError: ...ledger.sqlite: the file already exists. Open it with open_ledger, ...
    """
    terms, location = Terms(name, budget, analysts, unit_declaration, datasets), FileLocation(path)
    with ledger_errors(location):
        location.create()
    return create_in(SQLiteSession(location), terms, dataset)


def memory_ledger(  # noqa: PLR0913 - keyword-only
    *,
    name: str,
    budget: Budget,
    analysts: Mapping[str, Budget] | None = None,
    unit_declaration: str = "",
    datasets: Mapping[str, DatasetTerms] | None = None,
    dataset: str = "",
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
    terms = Terms(name, budget, analysts, unit_declaration, datasets)
    return create_in(SQLiteSession(MemoryLocation()), terms, dataset)


def open_ledger(path: str | os.PathLike[str], *, name: str, dataset: str = "") -> Ledger:
    """Open the existing ledger of the data set `name`, or of the population `name` for its data set `dataset`.

    >>> open_ledger("nowhere.sqlite", name="demo")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    discreet.kernel.errors.LedgerError: ...nowhere.sqlite: the ledger does not exist. Correct the path, ...
    """
    return open_in(SQLiteSession(FileLocation(path)), name, dataset)
