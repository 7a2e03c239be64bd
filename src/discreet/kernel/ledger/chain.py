"""The rows of a ledger: each carries the running totals and the hash of the one before."""

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
_HASH_BYTES = 32  # bytes
RESTORE_HINT = ". Stop serving, and restore the ledger from a backup."
_FILE_HINT = "It is a file on the machine on which the move was made, and only that one can use it."


class RowKind(StrEnum):
    """What a row records."""

    CREATE = "create"
    CHARGE = "charge"
    SETTLE = "settle"
    BUDGET = "budget"
    ACKNOWLEDGE = "acknowledge"
    MOVE = "move"
    ARRIVE = "arrive"


@dataclass(frozen=True, kw_only=True)
class PendingRow:
    """Something that is about to be recorded."""

    kind: RowKind
    by: str
    body: str
    loss: Loss = ZERO_LOSS
    receipt: str | None = None
    key: str | None = None


class LedgerRow(NamedTuple):
    """One row, as it is stored; the fields are the columns."""

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
        """Hash everything in the row but the hash itself."""
        return sha256(canonical_json(self[:-1]).encode()).hexdigest()


def row_after(last: LedgerRow | None, spent_by: Loss, pending: PendingRow) -> LedgerRow:
    """Make the row that records an act after the last one; `spent_by` is what its author spent before.

    Claim: the row's totals are those before it and the act's loss; no total falls.
    Proof: a loss is never negative, and recorded() never rounds down.
    Needs: recorded, Loss.__add__; that `last` and `spent_by` were read in the same transaction.
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
    """Make the row that creates a ledger."""
    return row_after(None, ZERO_LOSS, PendingRow(kind=RowKind.CREATE, by=OWNER, body=terms_text(terms)))


def event_text(event: Event) -> str:
    """Write what the caller said about an event."""
    record = {"mechanism": event.mechanism, "question": event.question, "sensitivity": event.sensitivity}
    optional = {"fingerprints": event.fingerprints, "follows": event.follows}
    return canonical_json(record | {name: parts for name, parts in optional.items() if parts})


def read_event(row: LedgerRow, state: EventState) -> Event:
    """Read the event that a charge recorded."""
    record = json.loads(row.body)
    record |= {name: tuple(map(tuple, record[name])) for name in ("fingerprints", "follows") if name in record}
    return Event(**record, by=row.by, id=row.receipt or "", time=row.time, state=state, loss=read_loss(row.loss))


def fingerprints_in(body: str) -> list[str]:
    """Return the topics that a charge recorded, each once."""
    return list(
        dict.fromkeys(
            fingerprint for part in json.loads(body).get("fingerprints", ()) for fingerprint in part if fingerprint
        )
    )


def departure_row(to: str, token: str) -> PendingRow:
    """Say that the ledger goes on in another place, where the token is known.

    >>> departure_row("/srv/visits.sqlite", "5e1f").body
    '{"to":"/srv/visits.sqlite","token":"5e1f"}'
    """
    return PendingRow(kind=RowKind.MOVE, by=OWNER, body=canonical_json({"to": to, "token": token}))


def arrival_row(row: LedgerRow) -> PendingRow:
    """Say that the ledger goes on here, after the row with which it left its earlier place.

    >>> arrival_row(row_after(None, ZERO_LOSS, departure_row("/srv/visits.sqlite", "5e1f"))).body
    '{"token":"5e1f"}'
    """
    return PendingRow(kind=RowKind.ARRIVE, by=OWNER, body=canonical_json({"token": json.loads(row.body)["token"]}))


def moved_to(row: LedgerRow) -> str | None:
    """Return where the ledger went, if this is the row with which it left.

    >>> moved_to(row_after(None, ZERO_LOSS, departure_row("/srv/visits.sqlite", "5e1f")))
    '/srv/visits.sqlite'
    """
    return str(json.loads(row.body)["to"]) if row.kind == RowKind.MOVE else None


def moved_message(to: str) -> str:
    """Say where a ledger went, and what to do.

    >>> moved_message("/srv/visits.sqlite")  # doctest: +ELLIPSIS
    'The ledger was moved: write ledger = "/srv/visits.sqlite" into the policy. ...'
    """
    setting = f"ledger = {json.dumps(to, ensure_ascii=False)}"
    more = _FILE_HINT if to.startswith("/") else "Add the user and the options that this server connects with."
    return (
        f"The ledger was moved: write {setting} into the policy. {more} If it was interrupted, give its command again."
    )


@dataclass
class Chain:
    """The rows of a ledger that were read and linked so far: their hashes, what they amount to, and where each is.

    Whatever is looked up in a ledger is looked up here: the tables have no index that would have to be trusted.
    """

    last: LedgerRow | None = None
    terms: str = ""
    spent_by: dict[str, str] = field(default_factory=dict)
    charges: dict[str, tuple[int, str]] = field(default_factory=dict)  # receipt: its row, and by whom
    settlements: dict[str, tuple[int, str]] = field(default_factory=dict)  # receipt: its row, and the answer's hash
    unsettled: dict[str, int] = field(default_factory=dict)  # receipt: its row, since the last acknowledgement
    keys: dict[tuple[str, str], int] = field(default_factory=dict)
    rows_by_fingerprint: dict[str, list[int]] = field(default_factory=dict)
    latest_receipts: dict[str, str] = field(default_factory=dict)
    _hashes: bytearray = field(default_factory=bytearray)

    @property
    def last_row(self) -> LedgerRow:
        """The last row."""
        if self.last is None:
            raise LedgerError("there are no rows: the ledger was not completely created")
        return self.last

    def spent_of(self, by: str) -> Loss:
        """Return what one analyst has spent."""
        return read_loss(self.spent_by[by]) if by in self.spent_by else ZERO_LOSS

    def hash_at(self, seq: int) -> str | None:
        """Return the hash of a row by its number; before the first row it is always the same."""
        end = _HASH_BYTES * seq
        return GENESIS_HASH if seq == 0 else self._hashes[end - _HASH_BYTES : end].hex() or None

    def add(self, row: LedgerRow) -> None:
        """Continue the chain with the next row, which must be linked to the last one.

        Claim: if nothing is raised, the rows added so far are consecutive, each names the hash of the one before, and
            everything looked up here is what these rows say. So if the last hash, or that at a checkpoint, is
            the one that was written, every row up to there is as it was written.
        Proof: the links are compared, and each row's own hash was recomputed when it was read; a row that was changed
            and hashed anew has another hash than the next row names (SHA-256 has no known collisions). What is looked
            up is filled from the rows alone.
        Needs: Row.digest, which read_row compares for every row that a Table returns.
        Checked by: test_a_changed_row_is_never_relied_upon, test_a_row_changed_while_open_is_never_relied_upon,
            test_a_removed_row_is_found
        Seal: 23bcf7650816
        """
        problem = _link_problem(self.last, row)
        try:
            if not problem:
                self._index_row(row)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            problem = f"cannot be read ({error})"
        if problem:
            raise LedgerError(f"row {row.seq} {problem}{RESTORE_HINT}")
        self.spent_by[row.by] = row.spent_by
        self._hashes += bytes.fromhex(row.hash)
        self.last = row

    def extend(self, rows: Iterable[LedgerRow]) -> Self:
        """Add rows one by one, and return the chain."""
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
            self.latest_receipts.clear()  # what was lost may have followed any of them
            self.unsettled.clear()


def check_rows(rows: Iterable[LedgerRow]) -> Chain:
    """Recompute a whole chain; return what the answers must agree with.

    Claim: if nothing is raised, the rows are what row_after wrote, in order, none missing before the last;
        the totals are the sums of the losses, every charge fitted in the terms then in force, no key and no
        receipt was charged twice, no answer was stored without a charge or twice, whatever follows an earlier
        charge was the first to do so, with no acknowledgement in between, and nothing follows a move but its arrival.
    Proof: row by row, each of these is checked against what the rows before it amount to, which were checked in
        the same way; the links by Chain.add.
    Needs: Chain.add, check_cost, recorded; the last row is vouched for by the head only.
    Checked by: test_any_changed_field_of_any_row_is_found, test_a_removed_row_is_found,
        test_nothing_follows_a_move_but_its_arrival
    Seal: ee1c55589645
    """
    chain = Chain()
    for row in rows:
        try:
            problem = _link_problem(chain.last, row) or _row_problem(chain, row)
        except (DiscreetError, ValueError, TypeError, KeyError, AttributeError) as error:
            problem = f"cannot be read ({error})"
        if problem:
            raise LedgerError(f"row {row.seq} {problem}{RESTORE_HINT}")
        chain.add(row)
    if chain.last is None:
        raise LedgerError("there is no row 1: the ledger was not completely created")
    return chain


def _link_problem(last: LedgerRow | None, row: LedgerRow) -> str | None:
    if row.seq != (last.seq + 1 if last else 1):
        return "does not follow: rows before it are missing"
    if row.previous != (last.hash if last else GENESIS_HASH):
        return "does not continue the row before it"
    if (row.kind == RowKind.CREATE) != (last is None):
        return "is out of place: a ledger is created once, by its first row"
    if (row.kind == RowKind.ARRIVE) != (last is not None and last.kind == RowKind.MOVE):
        return "is out of place: the arrival follows the move, and nothing else does"
    return None


def _row_problem(chain: Chain, row: LedgerRow) -> str | None:
    """Say what is wrong with a row that is linked to those before it, if anything is."""
    loss = read_loss(row.loss)
    before = read_loss(chain.last.spent) if chain.last else ZERO_LOSS
    before_by = chain.spent_of(row.by)
    problem = _PROBLEM_CHECKS[RowKind(row.kind)](chain, row, loss)
    if not problem and row.kind == RowKind.CHARGE:
        check_cost(read_terms(chain.terms), row.by, loss, before, before_by)
    totals = [loss_text(round_for_ledger(total + loss)) for total in (before, before_by)]
    return problem or (None if [row.spent, row.spent_by] == totals else "has a wrong total")


def _terms_problem(chain: Chain, row: LedgerRow, loss: Loss) -> str | None:
    terms = read_terms(row.body)
    if chain.last:
        check_delta_split(read_terms(chain.terms).budget, terms.budget, read_loss(chain.last.spent))
    return None if loss == ZERO_LOSS else "charges for an owner's act"


def _charge_problem(chain: Chain, row: LedgerRow, _loss: Loss) -> str | None:
    if not row.receipt or row.receipt in chain.charges:
        return "charges a receipt twice"
    if row.key is not None and (row.by, row.key) in chain.keys:
        return "charges a key twice"
    follows = json.loads(row.body).get("follows", ())
    if any(chain.latest_receipts.get(fingerprint) != receipt for fingerprint, receipt in follows):
        return "follows a charge that is not the newest of its topic"
    return None


def _settle_problem(chain: Chain, row: LedgerRow, loss: Loss) -> str | None:
    if row.receipt is None or chain.charges.get(row.receipt, (0, ""))[1] != row.by or loss != ZERO_LOSS:
        return "settles what was not charged"
    return "settles a receipt twice" if row.receipt in chain.settlements else None


def _acknowledge_problem(_chain: Chain, _row: LedgerRow, _loss: Loss) -> str | None:
    return None  # it may charge anything: what was lost was spent already


def _move_problem(_chain: Chain, row: LedgerRow, loss: Loss) -> str | None:
    record = json.loads(row.body)
    if not isinstance(record["to"], str) or not isinstance(record["token"], str):
        return "does not say where the ledger went"
    return None if loss == ZERO_LOSS else "charges for an owner's act"


def _arrive_problem(chain: Chain, row: LedgerRow, loss: Loss) -> str | None:
    if row.body != arrival_row(chain.last_row).body:
        return "arrives with another token than the ledger left with"
    return None if loss == ZERO_LOSS else "charges for an owner's act"


_PROBLEM_CHECKS = {
    RowKind.CREATE: _terms_problem,
    RowKind.BUDGET: _terms_problem,
    RowKind.CHARGE: _charge_problem,
    RowKind.SETTLE: _settle_problem,
    RowKind.ACKNOWLEDGE: _acknowledge_problem,
    RowKind.MOVE: _move_problem,
    RowKind.ARRIVE: _arrive_problem,
}
