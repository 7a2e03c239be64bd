"""Create, open and find ledgers in PostgreSQL."""

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
    """An open ledger in PostgreSQL, returned by create_postgres_ledger and open_postgres_ledger."""

    _session: PostgresSession

    def __init__(self, location: PostgresLocation) -> None:
        super().__init__(PostgresSession(location))


def create_postgres_ledger(  # noqa: PLR0913 - keyword-only except the URL
    url: str,
    *,
    name: str,
    budget: Budget,
    analysts: Mapping[str, Budget] | None = None,
    unit_declaration: str = "",
    checkpoint: str | os.PathLike[str] | None = None,
) -> PostgresLedger:
    """Create a ledger for the data set `name` in a database; `checkpoint` is a local file of this server.

    The tables are in a schema of their own and belong to the user who creates them.

    >>> create_postgres_ledger("postgresql://127.0.0.1:1/clinic", name="demo", budget=Budget(1))
    Traceback (most recent call last):
    discreet.kernel.errors.LedgerError: PostgreSQL at 127.0.0.1:1, database clinic: cannot connect to the server. \
Check the host and port, and that the server is running.
    """
    terms = Terms(name, budget, analysts, unit_declaration)
    ledger = PostgresLedger(PostgresLocation(url, name, checkpoint))
    try:
        _create(ledger._session, terms)  # noqa: SLF001 - part of the construction
    except BaseException:
        ledger.close()
        raise
    return ledger


def open_postgres_ledger(url: str, *, name: str, checkpoint: str | os.PathLike[str] | None = None) -> PostgresLedger:
    """Open the existing ledger of the data set `name`; a server without a checkpoint file gets one.

    >>> open_postgres_ledger("postgresql://127.0.0.1:1/clinic", name="demo")
    Traceback (most recent call last):
    discreet.kernel.errors.LedgerError: PostgreSQL at 127.0.0.1:1, database clinic: cannot connect to the server. \
Check the host and port, and that the server is running.
    """
    ledger = PostgresLedger(PostgresLocation(url, name, checkpoint))
    try:
        _check_opened(ledger._session, name)  # noqa: SLF001 - part of the construction
    except BaseException:
        ledger.close()
        raise
    return ledger


def has_postgres_ledger(url: str, *, name: str) -> bool:
    """Return whether a database has a ledger for the data set `name`, or a reservation for one.

    >>> has_postgres_ledger("postgresql://127.0.0.1:1/clinic", name="demo")
    Traceback (most recent call last):
    discreet.kernel.errors.LedgerError: PostgreSQL at 127.0.0.1:1, database clinic: cannot connect to the server. \
Check the host and port, and that the server is running.
    """
    with PostgresLedger(PostgresLocation(url, name, None)) as ledger, ledger._session.read_transaction() as table:  # noqa: SLF001
        return not table.is_empty


def open_target_postgres_ledger(
    url: str, *, name: str, checkpoint: str | os.PathLike[str] | None = None
) -> PostgresLedger:
    """Open the destination of a move: an empty one, or one that an interrupted move left behind.

    >>> open_target_postgres_ledger("postgresql://127.0.0.1:1/clinic", name="demo").close()
    """
    return PostgresLedger(PostgresLocation(url, name, checkpoint))


def _create(session: PostgresSession, terms: Terms) -> None:
    with session.write_transaction() as table:
        if not table.is_empty:
            raise LedgerError(
                "a ledger with this name already exists. Open it with open_postgres_ledger, or choose another name."
            )
        if session.location.has_checkpoint:
            raise LedgerError("the ledger is missing, but its checkpoint exists. Restore the ledger from a backup.")
        table.create()
        table.add_row(first_row(terms))


def _check_opened(session: PostgresSession, name: str) -> None:
    with session.read_transaction() as table:
        table.check_format()
        stored_name = data_set_name(table)
    if stored_name != name:
        raise PolicyError(
            f"name: the ledger belongs to data set {stored_name!r}, not {name!r}. Rename the schema back."
        )
    session.create_checkpoint()
