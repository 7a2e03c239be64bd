"""Create, open and find ledgers in PostgreSQL."""

import os
from collections.abc import Mapping

from discreet.kernel.errors import LedgerError
from discreet.kernel.ledger.ledger import Ledger, create_in, open_in
from discreet.kernel.ledger.table import closed_on_error
from discreet.kernel.ledger.terms import DatasetTerms, Terms
from discreet.kernel.loss import Budget
from discreet.ledger_postgres.location import PostgresLocation
from discreet.ledger_postgres.session import PostgresSession


def create_postgres_ledger(  # noqa: PLR0913 - keyword-only except the URL
    url: str,
    *,
    name: str,
    budget: Budget,
    analysts: Mapping[str, Budget] | None = None,
    unit_declaration: str = "",
    datasets: Mapping[str, DatasetTerms] | None = None,
    dataset: str = "",
    checkpoint: str | os.PathLike[str] | None = None,
) -> Ledger:
    """Create a ledger in a database, as create_ledger does in a file; `checkpoint` is a local file of this server.

    The tables are in a schema of their own and belong to the user who creates them.

    >>> create_postgres_ledger("postgresql://127.0.0.1:1/clinic", name="demo", budget=Budget(1))
    Traceback (most recent call last):
    discreet.kernel.errors.LedgerError: PostgreSQL at 127.0.0.1:1, database clinic: cannot connect to the server. \
Check the host and port, and that the server is running.
    """
    terms = Terms(name, budget, analysts, unit_declaration, datasets)
    location = PostgresLocation(url, name, checkpoint)
    if location.has_checkpoint and not has_postgres_ledger(url, name=name):
        missing = "the ledger is missing, but its checkpoint exists. Restore the ledger from a backup."
        raise LedgerError(f"{location}: {missing}")
    return create_in(PostgresSession(location), terms, dataset)


def open_postgres_ledger(
    url: str, *, name: str, dataset: str = "", checkpoint: str | os.PathLike[str] | None = None
) -> Ledger:
    """Open an existing ledger, as open_ledger does in a file; a server without a checkpoint file gets one.

    >>> open_postgres_ledger("postgresql://127.0.0.1:1/clinic", name="demo")
    Traceback (most recent call last):
    discreet.kernel.errors.LedgerError: PostgreSQL at 127.0.0.1:1, database clinic: cannot connect to the server. \
Check the host and port, and that the server is running.
    """
    session = PostgresSession(PostgresLocation(url, name, checkpoint))
    ledger = open_in(session, name, dataset)
    with closed_on_error(session):
        session.create_checkpoint()
    return ledger


def has_postgres_ledger(url: str, *, name: str) -> bool:
    """Return whether a database has a ledger for the data set `name`, or a reservation for one.

    >>> has_postgres_ledger("postgresql://127.0.0.1:1/clinic", name="demo")
    Traceback (most recent call last):
    discreet.kernel.errors.LedgerError: PostgreSQL at 127.0.0.1:1, database clinic: cannot connect to the server. \
Check the host and port, and that the server is running.
    """
    with (
        Ledger(PostgresSession(PostgresLocation(url, name, None))) as ledger,
        ledger.session.read_transaction() as table,
    ):
        return table.format() is not None
