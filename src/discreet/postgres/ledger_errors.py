"""What went wrong with a shared ledger, in words of ours: what a server says may quote what is stored there."""

from collections.abc import Iterator
from contextlib import contextmanager

from discreet.kernel.errors import LedgerError
from discreet.postgres.connecting import Unreachable, driver
from discreet.postgres.ledger_place import Database

_LOST = (
    "the connection was lost, and nothing was written there. When the server answers, ask again, or give the command "
    "again."
)
_READS = "the server only reads: it is a standby, or was told so. Give the URL of the one that writes."
_SAID = {
    "55P03": "others have held the ledger for too long. Look in pg_stat_activity for a client that stands still.",
    "57014": "the server took too long, or somebody cancelled this. Look in pg_stat_activity for what it is busy with.",
    "25P03": "this process stood still in the middle of a transaction, so the server ended it. Nothing was written.",
    "25006": _READS,
    "0A000": _READS,
    "42501": (
        "the user may not do this. Whoever owns the ledger can allow it: GRANT USAGE ON SCHEMA {schema}, and GRANT "
        "SELECT, INSERT ON ALL TABLES IN SCHEMA {schema}. Making a ledger needs GRANT CREATE ON DATABASE."
    ),
    "42P01": "a table of schema {schema} is missing. Restore the ledger from a backup.",
    "42P06": "there is a ledger of this name already. Open it with open_postgres_ledger, or choose another name.",
    "23505": "somebody wrote without waiting for the others. Nothing was written. Find out who has rights on {schema}.",
    "53100": "the server's disk is full, and nothing was written. Make room there.",
    "P0001": "a trigger of schema {schema} stopped this, and nothing was written.",
}


def is_lost(error: BaseException) -> bool:
    """Whether the connection itself is gone: the server stopped, or ended it, or the network did."""
    state = getattr(error, "sqlstate", None)
    return isinstance(error, driver().OperationalError) and (
        state is None or state.startswith(("08", "57P")) or state in ("25P03", "25P04")
    )


@contextmanager
def named(place: Database) -> Iterator[None]:
    """Turn what goes wrong into a LedgerError that names the place."""
    try:
        yield
    except LedgerError as error:
        raise LedgerError(f"{place}: {error}") from error.__cause__
    except Unreachable as error:
        raise LedgerError(str(error)) from None
    except OSError as cause:
        raise LedgerError(
            f"{place}: the head file cannot be read or written ({cause}). What was charged stays charged. Check that "
            "its folder is there, can be written to and has space."
        ) from cause
    except driver().Error as error:
        raise LedgerError(f"{place}: {_said(error, place.schema)}") from None


def _said(error: BaseException, schema: str) -> str:
    state = getattr(error, "sqlstate", None)
    if state in _SAID:
        return _SAID[state].format(schema=schema)
    if is_lost(error):
        return _LOST
    return f"the server refused with SQLSTATE {state}, and nothing was written. Its log has the reason."
