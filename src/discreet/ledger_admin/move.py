"""Move a ledger to another location without losing or repeating a charge.

    reserve the target ──► copy ──► last row of the source ──► copy the rest ──► arrival

The source accepts charges until its last row, the move, is committed. The target becomes a ledger with a single commit,
which comes later and adds all rows, answers and the arrival at once. Before both, a random marker is stored in the
target: only a location with this marker can finish the move.
"""

import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from discreet.kernel.errors import LedgerError
from discreet.kernel.event import OWNER, bounded_text, canonical_json
from discreet.kernel.ledger.chain import Chain, LedgerRow, RowKind, moved_to
from discreet.kernel.ledger.checkpoint import checkpoint_of
from discreet.kernel.ledger.ledger import Ledger
from discreet.kernel.ledger.table import FORMAT, RESERVED, LedgerSession, LedgerTable
from discreet.ledger_admin.verify import arrival_text, check_table, verify_ledger
from discreet.ledger_postgres.location import PostgresLocation
from discreet.ledger_postgres.session import PostgresSession
from discreet.ledger_sqlite.location import FileLocation
from discreet.ledger_sqlite.session import SQLiteSession, ledger_errors

ProgressCallback = Callable[[int, int], None]  # rows copied, rows in total
_NOT_RESERVED = (
    "row {row} of the ledger records a move to this location, but the location is not reserved for it: this may be "
    "another machine, or the location was emptied. Finish the move on the machine where it began."
)
_OCCUPIED = "a ledger already exists here. Choose an empty location."
_LEFT_FROM_HERE = (
    "this ledger was moved away from here with row {row}, and a location cannot be used twice. Choose another location."
)
_RESERVED_FOR_ANOTHER = (
    "this location is reserved for another ledger, or by another attempt to move this one. Choose another location; a "
    "move that has begun must be finished to its original destination."
)


class _SourceRows(NamedTuple):
    """The first and last row of the source, and its departure if it was moved."""

    first: LedgerRow
    last: LedgerRow
    departure: LedgerRow | None


def move_ledger(source: Ledger, target: Ledger, *, to: str, progress: ProgressCallback | None = None) -> bool:
    """Move the ledger to the target, which `to` names; return False if it had arrived there before.

    >>> from tempfile import mkdtemp
    >>> from discreet.ledger_sqlite import memory_ledger
    >>> from discreet.kernel.loss import Budget
    >>> location = mkdtemp() + "/moved.sqlite"
    >>> with memory_ledger(name="demo", budget=Budget(1)) as source, open_target_ledger(location) as target:
    ...     move_ledger(source, target, to=location), source.moved_to == location, target.terms.budget
    (True, True, Budget(epsilon=1))

    Claim: two locations never accept charges at the same time. All charges and answers of the source are in the target,
        once and unmodified. An interrupted move is finished by the same call, at the same location and at no other.
    Proof: the source accepts nothing after the row that records the move, and the target has no rows before its only
        commit, which is later. So the source never gets rows after that one, and all its rows are recomputed in the
        target before the commit. That row contains the token of the target's marker, which is random and was committed
        before: no location that was reserved at another time, or on another machine under the same name, has it.
    Needs: mark_moved, verify_ledger, check_table, Chain.add, Chain.next_row, SQLiteSession.write_transaction,
        PostgresSession.write_transaction, LedgerTable.rows, LedgerTable.row_at, LedgerTable.add_row; nobody copies a
        ledger or a reserved location by hand.
    Checked by: test_a_move_survives_a_crash_at_every_step, test_charges_during_a_move_are_neither_lost_nor_doubled,
        test_two_locations_never_both_accept_charges, test_a_move_is_finished_at_the_same_location_only
    """
    old, new = source.session, target.session
    source_rows = _check_source(source, to)
    marker = _reserve_target(new, source_rows)
    if marker is None:
        verify_ledger(target)
        return False
    with new.write_transaction() as table:
        if table.format() != RESERVED or _marker(table) != marker:
            raise LedgerError("another process has just finished this move. Run the command again to check.")
        # Before the commit, so that the ledger is never without a checkpoint.
        new.location.store_checkpoint(checkpoint_of(source_rows.last))
        for statement in (f"DROP TABLE {table.dialect.schema}.moving", *table.dialect.create_tables):
            table.connection.execute(statement)
        table.write_format(FORMAT)
        with old.read_transaction() as rows:
            copied = _copy(rows, table, progress)
        if source_rows.departure is None:
            mark_moved(source, to, json.loads(marker)["token"])
        with old.read_transaction() as rows:
            _copy_rest(rows, table, copied)
        chain = Chain().extend(table.rows())
        table.add_row(chain.next_row(RowKind.ARRIVE, OWNER, arrival_text(chain.last)))
        check_table(table)
    return True


def open_target_ledger(path: str | os.PathLike[str]) -> Ledger:
    """Open the destination of a move: a new file, or one that an interrupted move left behind.

    >>> from tempfile import mkdtemp
    >>> open_target_ledger(mkdtemp() + "/moved.sqlite").close()
    """
    location = FileLocation(path)
    if not Path(path).is_file():
        with ledger_errors(location):
            location.create()
    location.formats = (None, RESERVED, FORMAT)
    return Ledger(SQLiteSession(location))


def open_target_postgres_ledger(url: str, *, name: str, checkpoint: str | os.PathLike[str] | None = None) -> Ledger:
    """Open the destination of a move: an empty one, or one that an interrupted move left behind.

    >>> open_target_postgres_ledger("postgresql://127.0.0.1:1/clinic", name="demo").close()
    """
    return Ledger(PostgresSession(PostgresLocation(url, name, checkpoint)))


def mark_moved(source: Ledger, to: str, token: str) -> None:
    """Close a ledger for charges and record that it continues at the location that holds the token."""
    with source.write_transaction() as (table, chain):
        body = canonical_json({"to": bounded_text(to, "to", max_length=4000), "token": token})
        table.add_row(chain.next_row(RowKind.MOVE, OWNER, body))


def _check_source(source: Ledger, to: str) -> _SourceRows:
    """Raise LedgerError unless the source is intact and is not being moved elsewhere."""
    verify_ledger(source)
    with source.session.read_transaction() as table:
        first, last = next(table.rows()), table.last_row()
        destination = moved_to(last)
        if destination is not None and destination != to:
            raise LedgerError(
                f"a move to {destination} began at row {last.seq}. Finish that move, then move the ledger from there."
            )
    return _SourceRows(first, last, None if destination is None else last)


def _reserve_target(target: LedgerSession, source_rows: _SourceRows) -> str | None:
    """Reserve the target for this ledger and return its marker; None if the ledger is already there."""
    with target.write_transaction() as table:
        if table.format() is None:
            if source_rows.departure:
                raise LedgerError(_NOT_RESERVED.format(row=source_rows.departure.seq))
            new_marker = canonical_json({"first": source_rows.first.hash, "token": secrets.token_hex(16)})
            _reserve(table, new_marker)
            return new_marker
        if table.format() != RESERVED:
            table.check_format(FORMAT)
            if source_rows.departure and _has_arrived(table, source_rows.departure):
                return None
            last = table.last_row()
            back = last.kind == RowKind.MOVE and table.row_at(1) == source_rows.first
            raise LedgerError(_LEFT_FROM_HERE.format(row=last.seq) if back else _OCCUPIED)
        marker = _marker(table)
        record = json.loads(marker)
        if record["first"] != source_rows.first.hash or (
            source_rows.departure and record["token"] != json.loads(source_rows.departure.body)["token"]
        ):
            raise LedgerError(_RESERVED_FOR_ANOTHER)
        return marker


def _reserve(table: LedgerTable, marker: str) -> None:
    """Reserve an empty location for the move with this marker."""
    schema = table.dialect.schema
    for statement in (*table.dialect.create_schema, f"CREATE TABLE {schema}.moving (mark text NOT NULL)"):
        table.connection.execute(statement)
    table.query(f"INSERT INTO {schema}.moving (mark) VALUES (?)", marker)  # noqa: S608 - constant
    table.write_format(RESERVED)


def _marker(table: LedgerTable) -> str:
    """Return the marker of an unfinished move."""
    return str(table.query(f"SELECT mark FROM {table.dialect.schema}.moving")[0][0])  # noqa: S608 - constant


def _has_arrived(target: LedgerTable, departure: LedgerRow) -> bool:
    """Return whether the target contains this departure and its arrival."""
    next_row = target.row_at(departure.seq + 1)
    return (
        target.row_at(departure.seq) == departure and next_row is not None and next_row.body == arrival_text(departure)
    )


def _copy(old: LedgerTable, new: LedgerTable, progress: ProgressCallback | None) -> int:
    """Copy the present rows with their answers and return their number."""
    count = old.last_row().seq
    for row in old.rows():
        _copy_row(old, new, row)
        if progress:
            progress(row.seq, count)
    return count


def _copy_rest(old: LedgerTable, new: LedgerTable, copied: int) -> None:
    """Copy the rows that were appended since."""
    while row := old.row_at(copied + 1):
        _copy_row(old, new, row)
        copied = row.seq


def _copy_row(old: LedgerTable, new: LedgerTable, row: LedgerRow) -> None:
    new.add_row(row)
    if row.kind == RowKind.SETTLE and row.receipt is not None:
        new.add_answer(row.receipt, old.answer(row.receipt) or b"")
