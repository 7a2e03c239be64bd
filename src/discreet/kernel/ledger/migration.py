"""Move a ledger to another location without losing or repeating a charge.

    reserve the target ──► copy ──► last row of the source ──► copy the rest ──► arrive

The source takes charges until its last row, the move, is committed. The target is a ledger from its only commit on,
which comes later and brings all rows, answers and the arrival at once. Before either, the target keeps a random mark:
only a place that has the mark can finish the move.
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

ProgressCallback = Callable[[int, int], None]  # how many rows were copied, of how many
_NOT_RESERVED = (
    "row {row} of the ledger says that it moves here, and there is no trace of that: this may be another machine, or "
    "the place was emptied. Finish the move where it began."
)
_OCCUPIED = "there is a ledger already. Move it to a place where there is none."
_LEFT_FROM_HERE = (
    "this ledger left from here with row {row}, and no place is used twice. Move it to another database or file."
)
_RESERVED_FOR_ANOTHER = (
    "this place is reserved for another ledger, or by another try to move this one. Choose another place; a move that "
    "has begun is finished where it began."
)


class _SourceRows(NamedTuple):
    """The first and the last row of the source, and the last one again if it is a move."""

    first: LedgerRow
    last: LedgerRow
    departure: LedgerRow | None


def move_ledger(source: Account, target: Account, *, to: str, progress: ProgressCallback | None = None) -> bool:
    """Move everything to the target; False if it had arrived before, and the two agree. `to` names the target.

    >>> from tempfile import mkdtemp
    >>> from discreet.kernel.ledger.sqlite import memory_ledger, target_ledger
    >>> from discreet.kernel.loss import Budget
    >>> location = mkdtemp() + "/kept.sqlite"
    >>> with memory_ledger(name="demo", budget=Budget(1)) as source, target_ledger(location) as target:
    ...     move_ledger(source, target, to=location), source.moved == location, target.budget
    (True, True, Budget(epsilon=1))

    Claim: at no time do two places take charges. Everything that was charged or stored in the source is in the target,
        once and unchanged. A move that was interrupted is finished by the same call, in the same place and in no other.
    Proof: the source takes nothing after the row that records the move, and the target has no rows before its only
        commit, which is later. So the rows up to that row are all that there will ever be, and they are recomputed in
        the target before the commit. That row has the token of the target's mark, which is random and was committed
        before: no place that was reserved at another time, or on another machine under the same name, has it.
    Needs: Account.mark_moved, Session.write_transaction, check_table; that nobody copies a ledger or a reserved place by hand.
    Checked by: test_a_move_survives_a_crash_at_every_step, test_charges_during_a_move_are_neither_lost_nor_doubled,
        test_two_places_never_take_charges, test_a_move_is_finished_in_the_same_place_only
    Seal: 1d261d2f2750
    """
    old, new = _session_of(source), _session_of(target)
    source_rows = _check_source(source, to)
    marker = _reserve_target(new, source_rows)
    if marker is None:
        target.verify()
        return False
    with new.write_transaction() as table:
        if table.is_empty or table.reservation_marker() != marker:
            raise LedgerError("this move was finished by somebody else just now. Give the command again to see.")
        new.location.store_checkpoint(
            Checkpoint.of_row(source_rows.last)
        )  # a ledger has a witness from its first moment on
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
    return account._session  # noqa: SLF001 - what is moved is what lies behind it


def _check_source(source: Account, to: str) -> _SourceRows:
    """Stop unless the source is whole, and is not moving elsewhere."""
    source.verify()
    with _session_of(source).read_transaction() as table:
        first, last = next(table.rows()), table.last_row()
        destination = moved_to(last)
        if destination is not None and destination != to:
            raise LedgerError(
                f"it moves to {destination} since row {last.seq}. Finish that, and move it on from there."
            )
    return _SourceRows(first, last, None if destination is None else last)


def _reserve_target(target: LedgerSession, source_rows: _SourceRows) -> str | None:
    """Mark the target for this ledger, and return the mark that it has; None if the ledger is there already."""
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
    """Whether a ledger goes on from where another left."""
    next_row = target.row_at(departure.seq + 1)
    return (
        target.row_at(departure.seq) == departure
        and next_row is not None
        and next_row.body == arrival_row(departure).body
    )


def _copy(old: LedgerTable, new: LedgerTable, progress: ProgressCallback | None) -> int:
    """Copy the rows that there are now, with their answers, one by one; return how many."""
    count = old.last_row().seq
    for row in old.rows():
        _copy_row(old, new, row)
        if progress:
            progress(row.seq, count)
    return count


def _copy_rest(old: LedgerTable, new: LedgerTable, copied: int) -> None:
    """Copy what was appended since."""
    while row := old.row_at(copied + 1):
        _copy_row(old, new, row)
        copied = row.seq


def _copy_row(old: LedgerTable, new: LedgerTable, row: LedgerRow) -> None:
    new.add_row(row)
    if row.kind == RowKind.SETTLE and row.receipt is not None:
        new.add_answer(row.receipt, old.answer(row.receipt) or b"")
