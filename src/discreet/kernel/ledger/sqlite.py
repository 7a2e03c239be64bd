"""The ledger in SQLite: a file that the processes of one machine share, or the memory of one process."""

import os
from collections.abc import Mapping

from discreet.kernel.errors import PolicyError
from discreet.kernel.ledger.account import Account
from discreet.kernel.ledger.chain import first_row
from discreet.kernel.ledger.place import File, Memory, Place
from discreet.kernel.ledger.session import SQLiteSession, named
from discreet.kernel.ledger.storage import name_in
from discreet.kernel.ledger.terms import Terms
from discreet.kernel.loss import Budget


class SQLiteLedger(Account):
    """A ledger that is open. Made by create_ledger, open_ledger or memory_ledger."""

    _session: SQLiteSession

    def __init__(self, place: Place) -> None:
        super().__init__(SQLiteSession(place))


def create_ledger(
    path: str | os.PathLike[str],
    *,
    name: str,
    budget: Budget,
    analysts: Mapping[str, Budget] | None = None,
    promise: str = "",
) -> SQLiteLedger:
    """Make a new ledger for the data set `name`, at a path where none was before.

    >>> from tempfile import mkdtemp
    >>> path = mkdtemp() + "/ledger.sqlite"
    >>> create_ledger(path, name="demo", budget=Budget(1)).close()
    >>> create_ledger(path, name="demo", budget=Budget(1))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    discreet.kernel.errors.LedgerError: ...ledger.sqlite: the file exists. Open it with open_ledger, ...
    """
    terms = Terms(name, budget, analysts, promise)
    return _created(empty_ledger(path), terms)


def empty_ledger(path: str | os.PathLike[str]) -> SQLiteLedger:
    """Take a path where no ledger was; whoever does must make the tables and the first row, in one transaction.

    >>> from tempfile import mkdtemp
    >>> with empty_ledger(mkdtemp() + "/ledger.sqlite") as ledger:
    ...     ledger.spent()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    discreet.kernel.errors.LedgerError: ...ledger.sqlite: the ledger cannot be read or written (no such table: rows)...
    """
    place = File(path)
    with named(place):
        place.create()
    return SQLiteLedger(place)


def target_ledger(path: str | os.PathLike[str]) -> SQLiteLedger:
    """Open a path that a ledger moves to: a fresh one, or one where an earlier try came to some point.

    >>> from tempfile import mkdtemp
    >>> target_ledger(mkdtemp() + "/moved.sqlite").close()
    """
    place = File(path)
    with named(place):
        place.take()
    return SQLiteLedger(place)


def memory_ledger(
    *, name: str, budget: Budget, analysts: Mapping[str, Budget] | None = None, promise: str = ""
) -> SQLiteLedger:
    """Make a ledger that ends with its process: for trying things out.

    >>> from discreet.kernel.event import Event
    >>> from discreet.kernel.loss import Loss
    >>> ledger = memory_ledger(name="demo", budget=Budget(1))
    >>> receipt = ledger.charge(Loss("1/4"), Event(mechanism="{}", sensitivity="{}", question="count"))
    >>> ledger.settle(receipt, b"42")
    >>> ledger.spent()
    Loss(epsilon=1/4, rho=1/32)
    >>> ledger.close()
    """
    return _created(SQLiteLedger(Memory()), Terms(name, budget, analysts, promise))


def open_ledger(path: str | os.PathLike[str], *, name: str) -> SQLiteLedger:
    """Open the ledger of the data set `name`, which must exist.

    >>> open_ledger("nowhere.sqlite", name="demo")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    discreet.kernel.errors.LedgerError: ...nowhere.sqlite: there is no ledger here. Correct the path, ...
    """
    ledger = SQLiteLedger(File(path))
    try:
        with ledger._session.reading() as table:  # noqa: SLF001 - the constructor's other half
            table.check_format()
            found = name_in(table)
    except BaseException:
        ledger.close()
        raise
    if found != name:
        ledger.close()
        raise PolicyError(f"name: the ledger {path} belongs to {found!r}, not {name!r}. Give each its own file.")
    return ledger


def _created(ledger: SQLiteLedger, terms: Terms) -> SQLiteLedger:
    try:
        with ledger._session.writing() as table:  # noqa: SLF001 - the constructor's other half
            table.create()
            table.add_row(first_row(terms))
    except BaseException:
        ledger.close()
        raise
    return ledger
