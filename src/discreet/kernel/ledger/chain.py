"""The rows of a ledger: each contains the running totals and the hash of the previous row."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from typing import NamedTuple, Self

from discreet.kernel.errors import LedgerError
from discreet.kernel.event import Event, EventState, canonical_json
from discreet.kernel.ledger.terms import loss_text, read_loss, round_for_ledger
from discreet.kernel.loss import ZERO_LOSS, Loss

RESTORE_HINT = ". Stop serving and restore the ledger from a backup."
NO_ROWS = "the ledger has no rows: its creation was interrupted"
_HASH_BYTES = 32
_NOTHING = loss_text(ZERO_LOSS)


class RowKind(StrEnum):
    """The kind of event that a row records."""

    CREATE = "create"
    CHARGE = "charge"
    SETTLE = "settle"
    BUDGET = "budget"
    JOIN = "join"
    ACKNOWLEDGE = "acknowledge"
    ACT = "act"
    MOVE = "move"
    ARRIVE = "arrive"


class LedgerRow(NamedTuple):
    """One stored row; the fields are the columns. `dataset` is "" for rows that concern the whole account."""

    seq: int
    time: str
    kind: str
    by: str
    dataset: str
    key: str | None
    receipt: str | None
    body: str
    loss: str
    spent: str
    spent_by: str
    spent_in: str
    previous: str
    hash: str = ""

    def digest(self) -> str:
        """Return the hash of all other fields."""
        return sha256(canonical_json(self[:-1]).encode()).hexdigest()


# What the first row follows; it is not stored.
GENESIS = LedgerRow(
    0, "", "", "", "", None, None, "", _NOTHING, _NOTHING, _NOTHING, _NOTHING, "", "0" * 2 * _HASH_BYTES
)


def event_text(event: Event) -> str:
    """Write the caller's part of an event as canonical JSON."""
    record = {"mechanism": event.mechanism, "question": event.question, "sensitivity": event.sensitivity}
    optional = {"fingerprints": event.fingerprints, "follows": event.follows}
    return canonical_json(record | {name: parts for name, parts in optional.items() if parts})


def read_event(row: LedgerRow, state: EventState) -> Event:
    """Return the event that a charge recorded."""
    record = json.loads(row.body)
    pairs = {name: tuple(map(tuple, record[name])) for name in ("fingerprints", "follows") if name in record}
    record |= pairs | {"by": row.by, "dataset": row.dataset, "id": row.receipt or "", "time": row.time}
    return Event(**record, state=state, loss=read_loss(row.loss))


def moved_to(row: LedgerRow) -> str | None:
    """Return the destination if the row records a move, else None."""
    return str(json.loads(row.body)["to"]) if row.kind == RowKind.MOVE else None


def moved_message(to: str) -> str:
    """Return the message that names the new location of a ledger."""
    return f"the ledger was moved to {to}. Set this location in the policy. If the move was interrupted, run it again."


def check_not_moved(last: LedgerRow) -> None:
    """Raise LedgerError if the last row records a move."""
    if (to := moved_to(last)) is not None:
        raise LedgerError(moved_message(to))


@dataclass
class Chain:
    """An index of the verified rows of a ledger: hashes, totals and positions.

    All lookups use this index, so that no index of the database has to be trusted.
    """

    last: LedgerRow = GENESIS
    terms: str = ""
    charges: dict[str, tuple[int, str, str]] = field(default_factory=dict)  # by receipt: row, analyst and data set
    settlements: dict[str, tuple[int, str]] = field(default_factory=dict)  # by receipt: row and hash of the answer
    unsettled: dict[str, dict[str, int]] = field(default_factory=dict)  # since the last acknowledgement: by data set
    keys: dict[tuple[str, str, str | None], int] = field(default_factory=dict)  # by analyst, data set and key
    rows_by_fingerprint: dict[tuple[str, str], list[int]] = field(default_factory=dict)  # by data set and fingerprint
    latest_receipts: dict[tuple[str, str], str] = field(default_factory=dict)  # by data set and fingerprint
    _spent: dict[tuple[str, ...], str] = field(default_factory=dict)  # (), ("by", analyst) or ("in", data set)
    _hashes: bytearray = field(default_factory=bytearray)

    def spent(self, *scope: str) -> Loss:
        """Return the total loss, that of one analyst, ("by", name), or that of one data set, ("in", name)."""
        return read_loss(self._spent.get(scope, _NOTHING))

    def hash_at(self, seq: int) -> str | None:
        """Return the hash of row `seq`, None beyond the last row."""
        end = _HASH_BYTES * seq
        return GENESIS.hash if seq == 0 else self._hashes[end - _HASH_BYTES : end].hex() or None

    def event_of(self, seq: int, row: LedgerRow | None) -> Event:
        """Return the charge of row `seq`, which must have the hash in the chain."""
        if row is None or row.hash != self.hash_at(seq):
            raise LedgerError(f"row {seq} was modified or deleted while the ledger was open{RESTORE_HINT}")
        return read_event(row, EventState.RELEASED if row.receipt in self.settlements else EventState.RESERVED)

    def next_row(  # noqa: PLR0913 - the content of a row
        self,
        kind: RowKind,
        by: str,
        body: str,
        *,
        dataset: str = "",
        loss: Loss = ZERO_LOSS,
        receipt: str | None = None,
        key: str | None = None,
    ) -> LedgerRow:
        """Return the row to append after the last one.

        Claim: the totals of the row (of the account, its analyst and its data set) are the previous totals plus its
            loss; no total decreases.
        Proof: a loss is never negative, and round_for_ledger() never rounds down.
        Needs: Chain.add, Chain.spent, round_for_ledger, Loss.__add__, loss_text, read_loss, LedgerRow.digest.
        Checked by: test_the_ledger_agrees_with_a_simple_model, test_refunds_are_stopped_by_triggers
        """
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        cost, seq, totals = loss_text(loss), self.last.seq + 1, self.totals_after(by, dataset, loss)
        row = LedgerRow(seq, time, kind.value, by, dataset, key, receipt, body, cost, *totals, self.last.hash)
        return row._replace(hash=row.digest())

    def totals_after(self, by: str, dataset: str, loss: Loss) -> tuple[str, str, str]:
        """Return the totals after a row: of the account, of its analyst and of its data set."""
        before = (self.spent(*scope) for scope in ((), ("by", by), ("in", dataset)))
        total, own, inside = (loss_text(round_for_ledger(spent + loss)) for spent in before)
        return total, own, inside

    def add(self, row: LedgerRow) -> None:
        """Append the next row, which must contain the hash of the last one.

        Claim: if nothing is raised, the rows added so far are consecutive, each contains the hash of the previous row,
            and the index agrees with these rows. So if the last hash, or the hash at a checkpoint, is the one that was
            written, every row up to there is as it was written.
        Proof: the links are compared, and read_row recomputed each row's own hash; a row that was modified and rehashed
            has a different hash from the one in the next row (SHA-256 has no known collisions). The index is filled
            from the rows alone.
        Needs: LedgerRow.digest, read_row, link_problem.
        Checked by: test_a_changed_row_is_never_relied_upon, test_a_row_changed_while_open_is_never_relied_upon,
            test_a_removed_row_is_found
        """
        problem = link_problem(self.last, row)
        try:
            if not problem:
                self._index_row(row)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            problem = f"is not readable ({error})"
        if problem:
            raise LedgerError(f"row {row.seq} {problem}{RESTORE_HINT}")
        self._spent |= {(): row.spent, ("by", row.by): row.spent_by, ("in", row.dataset): row.spent_in}
        self._hashes += bytes.fromhex(row.hash)
        self.last = row

    def extend(self, rows: Iterable[LedgerRow]) -> Self:
        """Append rows and return the chain, which must not be empty."""
        for row in rows:
            self.add(row)
        if self.last is GENESIS:
            raise LedgerError(NO_ROWS)
        return self

    def _index_row(self, row: LedgerRow) -> None:
        receipt = row.receipt or ""
        if row.kind in (RowKind.CREATE, RowKind.BUDGET, RowKind.JOIN):
            self.terms = row.body
        elif row.kind == RowKind.CHARGE:
            parts = json.loads(row.body).get("fingerprints", ())
            for fingerprint in dict.fromkeys(text for part in parts for text in part if text):
                self.rows_by_fingerprint.setdefault((row.dataset, fingerprint), []).append(row.seq)
                self.latest_receipts[row.dataset, fingerprint] = receipt
            self.charges[receipt] = row.seq, row.by, row.dataset
            self.unsettled.setdefault(row.dataset, {})[receipt] = row.seq
            if row.key is not None:
                self.keys[row.by, row.dataset, row.key] = row.seq
        elif row.kind == RowKind.SETTLE:
            self.settlements[receipt] = row.seq, json.loads(row.body)["sha256"]
            self.unsettled.get(row.dataset, {}).pop(receipt, None)
        elif row.kind == RowKind.ACKNOWLEDGE:
            self.latest_receipts.clear()  # a lost charge may have followed any of them
            self.unsettled = {name: rows for name, rows in self.unsettled.items() if row.dataset not in ("", name)}


def link_problem(last: LedgerRow, row: LedgerRow) -> str | None:
    """Return why a row cannot follow another, or None."""
    if row.seq != last.seq + 1:
        return "is out of sequence: rows before it are missing"
    if row.previous != last.hash:
        return "does not contain the hash of the previous row"
    if (row.kind == RowKind.CREATE) != (last is GENESIS):
        return "is out of place: only the first row creates the ledger"
    if (row.kind == RowKind.ARRIVE) != (last.kind == RowKind.MOVE):
        return "is out of place: a move must be followed by its arrival, and by nothing else"
    return None
