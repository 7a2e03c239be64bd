"""Move a ledger to another location without losing or repeating a charge.

    reserve the target ──► copy ──► last row of the source ──► copy the rest ──► arrival

The source accepts charges until its last row, the move, is committed. The target becomes a ledger with a single commit,
which comes later and adds all rows, answers and the arrival at once. Before both, a random marker is stored in the
target: only a location with this marker can finish the move.
"""

import json
import secrets
from collections.abc import Callable
from typing import NamedTuple

from discreet.kernel.errors import LedgerError
from discreet.kernel.event import OWNER, canonical_json
from discreet.kernel.ledger.account import Account
from discreet.kernel.ledger.chain import Chain, LedgerRow, RowKind, arrival_row, moved_to, row_after
from discreet.kernel.ledger.checkpoint import Checkpoint
from discreet.kernel.ledger.storage import LedgerSession, LedgerTable, check_table

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


def move_ledger(source: Account, target: Account, *, to: str, progress: ProgressCallback | None = None) -> bool:
    """Move the ledger to the target, which `to` names; return False if it had arrived there before.

    >>> from tempfile import mkdtemp
    >>> from discreet.kernel.ledger.sqlite import memory_ledger, open_target_ledger
    >>> from discreet.kernel.loss import Budget
    >>> location = mkdtemp() + "/moved.sqlite"
    >>> with memory_ledger(name="demo", budget=Budget(1)) as source, open_target_ledger(location) as target:
    ...     move_ledger(source, target, to=location), source.moved_to == location, target.budget
    (True, True, Budget(epsilon=1))

    Claim: two locations never accept charges at the same time. All charges and answers of the source are in the target,
        once and unmodified. An interrupted move is finished by the same call, at the same location and at no other.
    Proof: the source accepts nothing after the row that records the move, and the target has no rows before its only
        commit, which is later. So the source never gets rows after that one, and all its rows are recomputed in the
        target before the commit. That row contains the token of the target's marker, which is random and was committed
        before: no location that was reserved at another time, or on another machine under the same name, has it.
    Needs: Account.mark_moved, LedgerSession.write_transaction, check_table; nobody copies a ledger or a reserved
        location by hand.
    Checked by: test_a_move_survives_a_crash_at_every_step, test_charges_during_a_move_are_neither_lost_nor_doubled,
        test_two_places_never_take_charges, test_a_move_is_finished_in_the_same_place_only
    Seal: 90ba9ffe384e
    """
    old, new = _session_of(source), _session_of(target)
    source_rows = _check_source(source, to)
    marker = _reserve_target(new, source_rows)
    if marker is None:
        target.verify()
        return False
    with new.write_transaction() as table:
        if table.is_empty or table.reservation_marker() != marker:
            raise LedgerError("another process has just finished this move. Run the command again to check.")
        # Before the commit, so that the ledger is never without a checkpoint.
        new.location.store_checkpoint(Checkpoint.of_row(source_rows.last))
        table.create()
        with old.read_transaction() as rows:
            copied = _copy(rows, table, progress)
        if source_rows.departure is None:
            source.mark_moved(to, json.loads(marker)["token"])
        with old.read_transaction() as rows:
            _copy_rest(rows, table, copied)
        chain = Chain().extend(table.rows())
        table.add_row(row_after(chain.last_row, chain.spent_of(OWNER), arrival_row(chain.last_row)))
        check_table(table)
    return True


def _session_of(account: Account) -> LedgerSession:
    return account._session  # noqa: SLF001 - the move works on the storage


def _check_source(source: Account, to: str) -> _SourceRows:
    """Raise LedgerError unless the source is intact and is not being moved elsewhere."""
    source.verify()
    with _session_of(source).read_transaction() as table:
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
        if table.is_empty:
            if source_rows.departure:
                raise LedgerError(_NOT_RESERVED.format(row=source_rows.departure.seq))
            new_marker = canonical_json({"first": source_rows.first.hash, "token": secrets.token_hex(16)})
            table.reserve(new_marker)
            return new_marker
        marker = table.reservation_marker()
        if marker is None:
            if source_rows.departure and _has_arrived(table, source_rows.departure):
                return None
            last = table.last_row()
            back = last.kind == RowKind.MOVE and table.row_at(1) == source_rows.first
            raise LedgerError(_LEFT_FROM_HERE.format(row=last.seq) if back else _OCCUPIED)
        record = json.loads(marker)
        if record["first"] != source_rows.first.hash or (
            source_rows.departure and record["token"] != json.loads(source_rows.departure.body)["token"]
        ):
            raise LedgerError(_RESERVED_FOR_ANOTHER)
        return marker


def _has_arrived(target: LedgerTable, departure: LedgerRow) -> bool:
    """Return whether the target contains this departure and its arrival."""
    next_row = target.row_at(departure.seq + 1)
    return (
        target.row_at(departure.seq) == departure
        and next_row is not None
        and next_row.body == arrival_row(departure).body
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
