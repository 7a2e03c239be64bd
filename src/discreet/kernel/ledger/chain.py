"""The rows of a ledger: each contains the running totals and the hash of the previous row."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from typing import NamedTuple, Self

from discreet.kernel.errors import DiscreetError, LedgerError
from discreet.kernel.event import OWNER, Event, EventState, canonical_json
from discreet.kernel.ledger.terms import (
    Terms,
    check_cost,
    check_delta_split,
    loss_text,
    read_loss,
    read_terms,
    round_for_ledger,
    terms_text,
)
from discreet.kernel.loss import ZERO_LOSS, Loss

GENESIS_HASH = "0" * 64
_HASH_BYTES = 32
RESTORE_HINT = ". Stop serving and restore the ledger from a backup."
_FILE_HINT = "The file is on the machine where the move was made, and only that machine can use it."


class RowKind(StrEnum):
    """The kind of event that a row records."""

    CREATE = "create"
    CHARGE = "charge"
    SETTLE = "settle"
    BUDGET = "budget"
    ACKNOWLEDGE = "acknowledge"
    MOVE = "move"
    ARRIVE = "arrive"


@dataclass(frozen=True, kw_only=True)
class PendingRow:
    """The content of a row to be appended."""

    kind: RowKind
    by: str
    body: str
    loss: Loss = ZERO_LOSS
    receipt: str | None = None
    key: str | None = None


class LedgerRow(NamedTuple):
    """One stored row; the fields are the columns."""

    seq: int
    time: str
    kind: str
    by: str
    key: str | None
    receipt: str | None
    body: str
    loss: str
    spent: str
    spent_by: str
    previous: str
    hash: str = ""

    def digest(self) -> str:
        """Return the hash of all other fields."""
        return sha256(canonical_json(self[:-1]).encode()).hexdigest()


def row_after(last: LedgerRow | None, spent_by: Loss, pending: PendingRow) -> LedgerRow:
    """Return the row to append after `last`; `spent_by` is the loss of the same analyst before it.

    Claim: the totals of the row are the previous totals plus its loss; no total decreases.
    Proof: a loss is never negative, and round_for_ledger() never rounds down.
    Needs: round_for_ledger, Loss.__add__; `last` and `spent_by` were read in the same transaction.
    Checked by: test_the_ledger_agrees_with_a_simple_model, test_refunds_are_stopped_by_triggers
    Seal: dac98a5a6469
    """
    spent = read_loss(last.spent) if last else ZERO_LOSS
    row = LedgerRow(
        seq=last.seq + 1 if last else 1,
        time=datetime.now(UTC).isoformat(timespec="milliseconds"),
        kind=pending.kind.value,
        by=pending.by,
        key=pending.key,
        receipt=pending.receipt,
        body=pending.body,
        loss=loss_text(pending.loss),
        spent=loss_text(round_for_ledger(spent + pending.loss)),
        spent_by=loss_text(round_for_ledger(spent_by + pending.loss)),
        previous=last.hash if last else GENESIS_HASH,
    )
    return row._replace(hash=row.digest())


def first_row(terms: Terms) -> LedgerRow:
    """Return the row that creates a ledger."""
    return row_after(None, ZERO_LOSS, PendingRow(kind=RowKind.CREATE, by=OWNER, body=terms_text(terms)))


def event_text(event: Event) -> str:
    """Write the caller's part of an event as canonical JSON."""
    record = {"mechanism": event.mechanism, "question": event.question, "sensitivity": event.sensitivity}
    optional = {"fingerprints": event.fingerprints, "follows": event.follows}
    return canonical_json(record | {name: parts for name, parts in optional.items() if parts})


def read_event(row: LedgerRow, state: EventState) -> Event:
    """Return the event that a charge recorded."""
    record = json.loads(row.body)
    record |= {name: tuple(map(tuple, record[name])) for name in ("fingerprints", "follows") if name in record}
    return Event(**record, by=row.by, id=row.receipt or "", time=row.time, state=state, loss=read_loss(row.loss))


def fingerprints_in(body: str) -> list[str]:
    """Return the distinct fingerprints that a charge recorded."""
    return list(
        dict.fromkeys(
            fingerprint for part in json.loads(body).get("fingerprints", ()) for fingerprint in part if fingerprint
        )
    )


def departure_row(to: str, token: str) -> PendingRow:
    """Return the row that records a move to another location, which holds the token.

    >>> departure_row("/srv/visits.sqlite", "5e1f").body
    '{"to":"/srv/visits.sqlite","token":"5e1f"}'
    """
    return PendingRow(kind=RowKind.MOVE, by=OWNER, body=canonical_json({"to": to, "token": token}))


def arrival_row(row: LedgerRow) -> PendingRow:
    """Return the row that records the arrival after a move; `row` is the departure.

    >>> arrival_row(row_after(None, ZERO_LOSS, departure_row("/srv/visits.sqlite", "5e1f"))).body
    '{"token":"5e1f"}'
    """
    return PendingRow(kind=RowKind.ARRIVE, by=OWNER, body=canonical_json({"token": json.loads(row.body)["token"]}))


def moved_to(row: LedgerRow) -> str | None:
    """Return the destination if the row records a move, else None.

    >>> moved_to(row_after(None, ZERO_LOSS, departure_row("/srv/visits.sqlite", "5e1f")))
    '/srv/visits.sqlite'
    """
    return str(json.loads(row.body)["to"]) if row.kind == RowKind.MOVE else None


def moved_message(to: str) -> str:
    """Return the message that names the new location of a ledger.

    >>> moved_message("/srv/visits.sqlite")  # doctest: +ELLIPSIS
    'the ledger was moved. Set ledger = "/srv/visits.sqlite" in the policy. ...'
    """
    setting = f"ledger = {json.dumps(to, ensure_ascii=False)}"
    more = _FILE_HINT if to.startswith("/") else "Add the user name and connection options of this server."
    return f"the ledger was moved. Set {setting} in the policy. {more} If the move was interrupted, run it again."


@dataclass
class Chain:
    """An index of the verified rows of a ledger: hashes, totals and positions.

    All lookups use this index, so that no index of the database has to be trusted.
    """

    last: LedgerRow | None = None
    terms: str = ""
    spent_by: dict[str, str] = field(default_factory=dict)
    charges: dict[str, tuple[int, str]] = field(default_factory=dict)  # by receipt: row and analyst
    settlements: dict[str, tuple[int, str]] = field(default_factory=dict)  # by receipt: row and hash of the answer
    unsettled: dict[str, int] = field(default_factory=dict)  # by receipt: row; since the last acknowledgement
    keys: dict[tuple[str, str], int] = field(default_factory=dict)
    rows_by_fingerprint: dict[str, list[int]] = field(default_factory=dict)
    latest_receipts: dict[str, str] = field(default_factory=dict)
    _hashes: bytearray = field(default_factory=bytearray)

    @property
    def last_row(self) -> LedgerRow:
        """The last row."""
        if self.last is None:
            raise LedgerError("the ledger has no rows: its creation was interrupted")
        return self.last

    def spent_of(self, by: str) -> Loss:
        """Return the loss of one analyst."""
        return read_loss(self.spent_by[by]) if by in self.spent_by else ZERO_LOSS

    def hash_at(self, seq: int) -> str | None:
        """Return the hash of row `seq`; GENESIS_HASH for 0, None beyond the last row."""
        end = _HASH_BYTES * seq
        return GENESIS_HASH if seq == 0 else self._hashes[end - _HASH_BYTES : end].hex() or None

    def add(self, row: LedgerRow) -> None:
        """Append the next row, which must contain the hash of the last one.

        Claim: if nothing is raised, the rows added so far are consecutive, each contains the hash of the previous row,
            and the index agrees with these rows. So if the last hash, or the hash at a checkpoint, is the one that was
            written, every row up to there is as it was written.
        Proof: the links are compared, and each row's own hash was recomputed when it was read; a row that was modified
            and rehashed has a different hash from the one in the next row (SHA-256 has no known collisions). The index
            is filled from the rows alone.
        Needs: LedgerRow.digest, which read_row compares for every row that a LedgerTable returns.
        Checked by: test_a_changed_row_is_never_relied_upon, test_a_row_changed_while_open_is_never_relied_upon,
            test_a_removed_row_is_found
        Seal: 6058c98d981d
        """
        problem = _link_problem(self.last, row)
        try:
            if not problem:
                self._index_row(row)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            problem = f"is not readable ({error})"
        if problem:
            raise LedgerError(f"row {row.seq} {problem}{RESTORE_HINT}")
        self.spent_by[row.by] = row.spent_by
        self._hashes += bytes.fromhex(row.hash)
        self.last = row

    def extend(self, rows: Iterable[LedgerRow]) -> Self:
        """Append rows and return the chain."""
        for row in rows:
            self.add(row)
        return self

    def _index_row(self, row: LedgerRow) -> None:
        receipt = row.receipt or ""
        if row.kind in (RowKind.CREATE, RowKind.BUDGET):
            self.terms = row.body
        elif row.kind == RowKind.CHARGE:
            for fingerprint in fingerprints_in(row.body):
                self.rows_by_fingerprint.setdefault(fingerprint, []).append(row.seq)
                self.latest_receipts[fingerprint] = receipt
            self.charges[receipt] = row.seq, row.by
            self.unsettled[receipt] = row.seq
            if row.key is not None:
                self.keys[row.by, row.key] = row.seq
        elif row.kind == RowKind.SETTLE:
            self.settlements[receipt] = row.seq, json.loads(row.body)["sha256"]
            self.unsettled.pop(receipt, None)
        elif row.kind == RowKind.ACKNOWLEDGE:
            self.latest_receipts.clear()  # a lost charge may have followed any of them
            self.unsettled.clear()


def check_rows(rows: Iterable[LedgerRow]) -> Chain:
    """Recompute all rows and return their chain.

    Claim: if nothing is raised, the rows are those that row_after wrote, in order, with none missing before the last;
        the totals are the sums of the losses, every charge was within the terms then in force, no key and no receipt
        was charged twice, no answer was stored without a charge or twice, every charge that follows an earlier one was
        the first to do so, with no acknowledgement in between, and only its arrival follows a move.
    Proof: row by row, each of these is checked against the state after the previous rows, which were checked in the
        same way; the links by Chain.add.
    Needs: Chain.add, check_cost, round_for_ledger; only the checkpoint attests the last row.
    Checked by: test_any_changed_field_of_any_row_is_found, test_a_removed_row_is_found,
        test_nothing_follows_a_move_but_its_arrival
    Seal: bfabf5edc0b9
    """
    chain = Chain()
    for row in rows:
        try:
            problem = _link_problem(chain.last, row) or _row_problem(chain, row)
        except (DiscreetError, ValueError, TypeError, KeyError, AttributeError) as error:
            problem = f"is not readable ({error})"
        if problem:
            raise LedgerError(f"row {row.seq} {problem}{RESTORE_HINT}")
        chain.add(row)
    if chain.last is None:
        raise LedgerError("the ledger has no rows: its creation was interrupted")
    return chain


def _link_problem(last: LedgerRow | None, row: LedgerRow) -> str | None:
    if row.seq != (last.seq + 1 if last else 1):
        return "is out of sequence: rows before it are missing"
    if row.previous != (last.hash if last else GENESIS_HASH):
        return "does not contain the hash of the previous row"
    if (row.kind == RowKind.CREATE) != (last is None):
        return "is out of place: only the first row creates the ledger"
    if (row.kind == RowKind.ARRIVE) != (last is not None and last.kind == RowKind.MOVE):
        return "is out of place: a move must be followed by its arrival, and by nothing else"
    return None


def _row_problem(chain: Chain, row: LedgerRow) -> str | None:
    """Return what is wrong with a correctly linked row, or None."""
    loss = read_loss(row.loss)
    before = read_loss(chain.last.spent) if chain.last else ZERO_LOSS
    before_by = chain.spent_of(row.by)
    problem = _PROBLEM_CHECKS[RowKind(row.kind)](chain, row, loss)
    if not problem and row.kind == RowKind.CHARGE:
        check_cost(read_terms(chain.terms), row.by, loss, before, before_by)
    totals = [loss_text(round_for_ledger(total + loss)) for total in (before, before_by)]
    return problem or (None if [row.spent, row.spent_by] == totals else "has incorrect totals")


def _terms_problem(chain: Chain, row: LedgerRow, loss: Loss) -> str | None:
    terms = read_terms(row.body)
    if chain.last:
        check_delta_split(read_terms(chain.terms).budget, terms.budget, read_loss(chain.last.spent))
    return None if loss == ZERO_LOSS else "has a loss, although its kind cannot be charged"


def _charge_problem(chain: Chain, row: LedgerRow, _loss: Loss) -> str | None:
    if not row.receipt or row.receipt in chain.charges:
        return "charges the same receipt twice"
    if row.key is not None and (row.by, row.key) in chain.keys:
        return "charges the same key twice"
    follows = json.loads(row.body).get("follows", ())
    if any(chain.latest_receipts.get(fingerprint) != receipt for fingerprint, receipt in follows):
        return "follows a charge that is not the latest with its fingerprint"
    return None


def _settle_problem(chain: Chain, row: LedgerRow, loss: Loss) -> str | None:
    if row.receipt is None or chain.charges.get(row.receipt, (0, ""))[1] != row.by or loss != ZERO_LOSS:
        return "settles a receipt that was not charged"
    return "settles the same receipt twice" if row.receipt in chain.settlements else None


def _acknowledge_problem(_chain: Chain, _row: LedgerRow, _loss: Loss) -> str | None:
    return None  # it may have any loss: the lost charges were spent already


def _move_problem(_chain: Chain, row: LedgerRow, loss: Loss) -> str | None:
    record = json.loads(row.body)
    if not isinstance(record["to"], str) or not isinstance(record["token"], str):
        return "does not name the destination of the move"
    return None if loss == ZERO_LOSS else "has a loss, although its kind cannot be charged"


def _arrive_problem(chain: Chain, row: LedgerRow, loss: Loss) -> str | None:
    if row.body != arrival_row(chain.last_row).body:
        return "has a different token from the move before it"
    return None if loss == ZERO_LOSS else "has a loss, although its kind cannot be charged"


_PROBLEM_CHECKS = {
    RowKind.CREATE: _terms_problem,
    RowKind.BUDGET: _terms_problem,
    RowKind.CHARGE: _charge_problem,
    RowKind.SETTLE: _settle_problem,
    RowKind.ACKNOWLEDGE: _acknowledge_problem,
    RowKind.MOVE: _move_problem,
    RowKind.ARRIVE: _arrive_problem,
}
