"""Moving a ledger to another place: no charge is lost, none counts twice, whatever stops in between.

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
from discreet.kernel.event import OWNER, canonical
from discreet.kernel.ledger.account import Account
from discreet.kernel.ledger.chain import Chain, Kind, Row, arrival, moved_to, row_after
from discreet.kernel.ledger.checking import check_table
from discreet.kernel.ledger.head import Head
from discreet.kernel.ledger.storage import Session, Table

Tell = Callable[[int, int], None]  # how many rows were copied, of how many
_NO_TRACE = (
    "row {row} of the ledger says that it moves here, and there is no trace of that: this may be another machine, or "
    "the place was emptied. Finish the move where it began."
)
_TAKEN = "there is a ledger already. Move it to a place where there is none."
_LEFT = "this ledger left from here with row {row}, and no place is used twice. Move it to another database or file."
_OTHERS = (
    "this place is reserved for another ledger, or by another try to move this one. Choose another place; a move that "
    "has begun is finished where it began."
)


class _Ends(NamedTuple):
    """The first and the last row of the source, and the last one again if it is a move."""

    first: Row
    last: Row
    left: Row | None


def move_ledger(source: Account, target: Account, *, to: str, tell: Tell | None = None) -> bool:
    """Move everything to the target; False if it had arrived before, and the two agree. `to` names the target.

    >>> from tempfile import mkdtemp
    >>> from discreet.kernel.ledger.sqlite import memory_ledger, target_ledger
    >>> from discreet.kernel.loss import Budget
    >>> place = mkdtemp() + "/kept.sqlite"
    >>> with memory_ledger(name="demo", budget=Budget(1)) as source, target_ledger(place) as target:
    ...     move_ledger(source, target, to=place), source.moved == place, target.budget
    (True, True, Budget(epsilon=1))

    Claim: at no time do two places take charges. Everything that was charged or stored in the source is in the target,
        once and unchanged. A move that was interrupted is finished by the same call, in the same place and in no other.
    Proof: the source takes nothing after the row that records the move, and the target has no rows before its only
        commit, which is later. So the rows up to that row are all that there will ever be, and they are recomputed in
        the target before the commit. That row has the token of the target's mark, which is random and was committed
        before: no place that was reserved at another time, or on another machine under the same name, has it.
    Needs: Account.depart, Session.writing, check_table; that nobody copies a ledger or a reserved place by hand.
    Checked by: test_a_move_survives_a_crash_at_every_step, test_charges_during_a_move_are_neither_lost_nor_doubled,
        test_two_places_never_take_charges, test_a_move_is_finished_in_the_same_place_only
    Seal: 939a196590f9
    """
    old, new = _session(source), _session(target)
    ends = _checked(source, to)
    mark = _reserve(new, ends)
    if mark is None:
        target.verify()
        return False
    with new.writing() as table:
        if table.is_empty or table.reserved() != mark:
            raise LedgerError("this move was finished by somebody else just now. Give the command again to see.")
        new.place.keep_head(Head.of(ends.last))  # a ledger has a witness from its first moment on
        table.create()
        with old.reading() as rows:
            copied = _copy(rows, table, tell)
        if ends.left is None:
            source.depart(to, json.loads(mark)["token"])
        with old.reading() as rows:
            _copy_rest(rows, table, copied)
        chain = Chain().extended(table.rows())
        table.add_row(row_after(chain.end, chain.spent_of(OWNER), arrival(chain.end)))
        check_table(table)
    return True


def _session(account: Account) -> Session:
    return account._session  # noqa: SLF001 - what is moved is what lies behind it


def _checked(source: Account, to: str) -> _Ends:
    """Stop unless the source is whole, and is not moving elsewhere."""
    source.verify()
    with _session(source).reading() as table:
        first, last = next(table.rows()), table.last()
        gone = moved_to(last)
        if gone is not None and gone != to:
            raise LedgerError(f"it moves to {gone} since row {last.seq}. Finish that, and move it on from there.")
    return _Ends(first, last, None if gone is None else last)


def _reserve(target: Session, ends: _Ends) -> str | None:
    """Mark the target for this ledger, and return the mark that it has; None if the ledger is there already."""
    with target.writing() as table:
        if table.is_empty:
            if ends.left:
                raise LedgerError(_NO_TRACE.format(row=ends.left.seq))
            mark = canonical({"first": ends.first.hash, "token": secrets.token_hex(16)})
            table.reserve(mark)
            return mark
        found = table.reserved()
        if found is None:
            if ends.left and _arrived(table, ends.left):
                return None
            last = table.last()
            back = last.kind == Kind.MOVE and table.at(1) == ends.first
            raise LedgerError(_LEFT.format(row=last.seq) if back else _TAKEN)
        said = json.loads(found)
        if said["first"] != ends.first.hash or (ends.left and said["token"] != json.loads(ends.left.body)["token"]):
            raise LedgerError(_OTHERS)
        return found


def _arrived(target: Table, left: Row) -> bool:
    """Whether a ledger goes on from where another left."""
    then = target.at(left.seq + 1)
    return target.at(left.seq) == left and then is not None and then.body == arrival(left).body


def _copy(old: Table, new: Table, tell: Tell | None) -> int:
    """Copy the rows that there are now, with their answers, one by one; return how many."""
    count = old.last().seq
    for row in old.rows():
        _copy_row(old, new, row)
        if tell:
            tell(row.seq, count)
    return count


def _copy_rest(old: Table, new: Table, copied: int) -> None:
    """Copy what was appended since."""
    while row := old.at(copied + 1):
        _copy_row(old, new, row)
        copied = row.seq


def _copy_row(old: Table, new: Table, row: Row) -> None:
    new.add_row(row)
    if row.kind == Kind.SETTLE and row.receipt is not None:
        new.add_answer(row.receipt, old.answer(row.receipt) or b"")
