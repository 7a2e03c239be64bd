"""The ledger in PostgreSQL, which several servers share: create, open, find."""

import os
from collections.abc import Mapping

from discreet.kernel.errors import LedgerError, PolicyError
from discreet.kernel.ledger.account import Account
from discreet.kernel.ledger.chain import first_row
from discreet.kernel.ledger.storage import data_set_name
from discreet.kernel.ledger.terms import Terms
from discreet.kernel.loss import Budget
from discreet.ledger_postgres.location import PostgresLocation
from discreet.ledger_postgres.session import PostgresSession


class PostgresLedger(Account):
    """A shared ledger that is open. Made by create_postgres_ledger or open_postgres_ledger."""

    _session: PostgresSession

    def __init__(self, location: PostgresLocation) -> None:
        super().__init__(PostgresSession(location))


def create_postgres_ledger(  # noqa: PLR0913 - all but the URL by name
    url: str,
    *,
    name: str,
    budget: Budget,
    analysts: Mapping[str, Budget] | None = None,
    unit_declaration: str = "",
    checkpoint: str | os.PathLike[str] | None = None,
) -> PostgresLedger:
    """Make a new ledger for the data set `name` in a database where it has none; `checkpoint` is this server's own file.

    The tables are in a schema of their own, and belong to the user who makes them.

    >>> create_postgres_ledger("postgresql://127.0.0.1:1/clinic", name="demo", budget=Budget(1))
    Traceback (most recent call last):
    discreet.kernel.errors.LedgerError: PostgreSQL at 127.0.0.1:1, database clinic: the server does not answer. Check \
host and port, and that it runs.
    """
    terms = Terms(name, budget, analysts, unit_declaration)
    ledger = PostgresLedger(PostgresLocation(url, name, checkpoint))
    try:
        _create(ledger._session, terms)  # noqa: SLF001 - the constructor's other half
    except BaseException:
        ledger.close()
        raise
    return ledger


def open_postgres_ledger(url: str, *, name: str, checkpoint: str | os.PathLike[str] | None = None) -> PostgresLedger:
    """Open the ledger of the data set `name`, which must exist; a server that never had a head file gets one.

    >>> open_postgres_ledger("postgresql://127.0.0.1:1/clinic", name="demo")
    Traceback (most recent call last):
    discreet.kernel.errors.LedgerError: PostgreSQL at 127.0.0.1:1, database clinic: the server does not answer. Check \
host and port, and that it runs.
    """
    ledger = PostgresLedger(PostgresLocation(url, name, checkpoint))
    try:
        _check_opened(ledger._session, name)  # noqa: SLF001 - the constructor's other half
    except BaseException:
        ledger.close()
        raise
    return ledger


def has_postgres_ledger(url: str, *, name: str) -> bool:
    """Tell whether the data set `name` has a ledger in a database, or one that is moving there.

    >>> has_postgres_ledger("postgresql://127.0.0.1:1/clinic", name="demo")
    Traceback (most recent call last):
    discreet.kernel.errors.LedgerError: PostgreSQL at 127.0.0.1:1, database clinic: the server does not answer. Check \
host and port, and that it runs.
    """
    with PostgresLedger(PostgresLocation(url, name, None)) as ledger, ledger._session.read_transaction() as table:  # noqa: SLF001 - ours
        return not table.is_empty


def open_target_postgres_ledger(
    url: str, *, name: str, checkpoint: str | os.PathLike[str] | None = None
) -> PostgresLedger:
    """Open a place that a ledger moves to: a fresh one, or one where an earlier try came to some point.

    >>> open_target_postgres_ledger("postgresql://127.0.0.1:1/clinic", name="demo").close()
    """
    return PostgresLedger(PostgresLocation(url, name, checkpoint))


def _create(session: PostgresSession, terms: Terms) -> None:
    with session.write_transaction() as table:
        if not table.is_empty:
            raise LedgerError(
                "there is a ledger of this name already. Open it with open_postgres_ledger, or choose another name."
            )
        if session.location.has_checkpoint:
            raise LedgerError("a ledger was here, its head file remains. Restore the ledger from a backup.")
        table.create()
        table.add_row(first_row(terms))


def _check_opened(session: PostgresSession, name: str) -> None:
    with session.read_transaction() as table:
        table.check_format()
        stored_name = data_set_name(table)
    if stored_name != name:
        raise PolicyError(f"name: the ledger belongs to {stored_name!r}, not {name!r}. Its schema was renamed.")
    session.create_checkpoint()
