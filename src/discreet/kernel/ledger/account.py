"""The account of one data set: charges, settlements and their checks, independent of the storage."""

import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Self

from discreet.kernel.errors import FAILED, DiscreetError, Failed, LedgerError, Refused
from discreet.kernel.event import OWNER, Event, EventState, Receipt, bounded_text, canonical_json
from discreet.kernel.ledger.chain import (
    RESTORE_HINT,
    Chain,
    LedgerRow,
    PendingRow,
    RowKind,
    departure_row,
    event_text,
    moved_message,
    moved_to,
    read_event,
    row_after,
)
from discreet.kernel.ledger.checkpoint import Checkpoint, check_checkpoint, rolled_back_loss
from discreet.kernel.ledger.protocol import MAX_ANSWER_BYTES
from discreet.kernel.ledger.storage import LedgerSession, LedgerTable, check_table
from discreet.kernel.ledger.terms import (
    Terms,
    check_analyst,
    check_cost,
    check_delta_split,
    read_loss,
    read_terms,
    round_for_ledger,
    terms_text,
)
from discreet.kernel.loss import ZERO_LOSS, Budget, Loss
from discreet.kernel.numbers import check_type

MAX_KEY_LENGTH = 200
UNKNOWN_OUTCOME = "key: charged before, but the outcome is unknown. Use another key, which is a new charge."
_ROLLED_BACK_EVENT = event_text(
    Event(mechanism=canonical_json({"name": "lost"}), sensitivity="{}", question="charges lost in a rollback")
)


class Account:
    """An open ledger; the session gives access to its storage."""

    def __init__(self, session: LedgerSession) -> None:
        self._session = session
        self._chain = Chain()  # the committed rows read so far

    def charge(self, loss: Loss, event: Event, key: str | None = None) -> Receipt:
        """Charge a query before any data is read, or return the stored answer of an earlier charge with the same key.

        Claim: when it returns a receipt without an answer, the charge is durable, and the total spent, including
            this charge, is within the budget; when it raises Refused, nothing has changed. One key of one analyst is
            charged at most once. At most one charge follows a given earlier charge, whether that was settled or not,
            even if the ledger was rolled back in between. No charge is ever refunded.
        Proof: looking up the key, reading the totals, checking and appending are one transaction, which excludes all
            other threads, processes and machines and ends after the row is on disk. All lookups use the chain of all
            committed rows, which the same transaction updates and compares with the checkpoint: modified, deleted or
            replaced rows raise an error. A refusal is raised before anything is written. No statement of this
            package updates or deletes, and triggers reject such statements of others. A charge that follows another
            has the same fingerprint and is later, so for a second one the earlier charge is no longer the latest; a
            rollback must be acknowledged before the next charge, and no charge from before an acknowledgement is the
            latest.
        Needs: the session's write_transaction(): atomic, exclusive and durable; check_cost, row_after,
            check_checkpoint, Chain.add.
        Checked by: test_concurrent_processes_end_exactly_at_the_limit,
            test_concurrent_threads_end_exactly_at_the_limit, test_killed_workers_lose_nothing_that_was_seen,
            test_a_hundred_hundredths_fit_and_the_next_is_refused, test_the_ledger_agrees_with_a_simple_model,
            test_only_one_charge_follows_another, test_nothing_follows_what_was_charged_before_a_rollback,
            test_a_changed_row_is_never_relied_upon, test_a_last_row_changed_while_open_is_never_relied_upon
        Seal: 5c3eafeb2391
        """
        cost, key = round_for_ledger(check_type(Loss, loss, "loss")), _check_key(key)
        by = check_type(Event, event, "event").by
        with self._write_transaction() as (table, chain):
            terms = read_terms(chain.terms)
            check_analyst(terms, by)
            if key is not None and (by, key) in chain.keys:
                return _replay_answer(table, chain, chain.keys[by, key], event)
            if any(chain.latest_receipts.get(fingerprint) != before for fingerprint, before in event.follows):
                raise Refused("another request charged for the same totals at the same time. Try again.")
            check_cost(terms, by, cost, read_loss(chain.last_row.spent), chain.spent_of(by))
            receipt = Receipt(secrets.token_hex(12))
            body = event_text(event)
            _append_row(
                table, chain, PendingRow(kind=RowKind.CHARGE, by=by, key=key, receipt=receipt.id, loss=cost, body=body)
            )
        return receipt

    def settle(self, receipt: Receipt, answer: bytes) -> None:
        """Store the answer to a charge, once, before its first byte is sent.

        Claim: when it returns, the answer is durable, its hash is in the chain, and its key returns these bytes from
            then on; no answer exists without a charge, and no charge has two answers.
        Proof: one exclusive transaction finds the charge and no settlement in the chain, and writes both the answer
            and the row with its hash; it ends after they are on disk.
        Needs: the session's write_transaction(): atomic, exclusive and durable; row_after, check_checkpoint,
            Chain.add.
        Checked by: test_the_same_key_returns_the_same_bytes,
            test_settling_twice_or_an_unknown_receipt_is_an_error,
            test_killed_workers_lose_nothing_that_was_seen
        Seal: dbc4795907ec
        """
        receipt_id = check_type(Receipt, receipt, "receipt").id
        if len(check_type(bytes, answer, "answer")) > MAX_ANSWER_BYTES:
            raise ValueError(f"answer must have at most {MAX_ANSWER_BYTES} bytes, not {len(answer)}")
        with self._write_transaction(moved_error=Failed(FAILED)) as (table, chain):
            if receipt_id not in chain.charges or receipt_id in chain.settlements:
                state = "is already settled" if receipt_id in chain.settlements else "does not exist"
                raise LedgerError(f"receipt {receipt_id!r} {state}")
            table.add_answer(receipt_id, answer)
            body = canonical_json({"sha256": sha256(answer).hexdigest()})
            _append_row(
                table,
                chain,
                PendingRow(kind=RowKind.SETTLE, by=chain.charges[receipt_id][1], receipt=receipt_id, body=body),
            )

    def spent(self, by: str | None = None) -> Loss:
        """Return the total loss, or that of one analyst's queries."""
        with self._read_transaction() as (_, chain):
            return read_loss(chain.last_row.spent) if by is None else chain.spent_of(by)

    def events(self) -> list[Event]:
        """Return all charges, oldest first."""
        with self._read_transaction() as (table, chain):
            rows = [
                _check_same_row(row, chain, row.seq)
                for row in table.rows()
                if row.receipt and row.kind != RowKind.SETTLE
            ]
            settled = set(chain.settlements)
        return [read_event(row, EventState.RELEASED if row.receipt in settled else EventState.RESERVED) for row in rows]

    def answers(self, fingerprints: Iterable[str]) -> list[tuple[Event, bytes | None]]:
        """Return the charges with any of these fingerprints, oldest first, and their stored answers.

        Claim: the list is complete; each charge is as it was recorded, and each answer as it was stored.
        Proof: the charges are found in the chain of all rows, which contains the row of the checkpoint; each row is
            read and has the hash that the chain has for it; each answer has the hash that its settlement names.
        Needs: Chain.add, check_checkpoint.
        Checked by: test_a_changed_row_is_never_relied_upon, test_a_row_changed_while_open_is_never_relied_upon,
            test_a_changed_or_missing_answer_is_never_recalled
        Seal: 2c29d0068294
        """
        with self._verified_read() as (table, chain):
            seqs = sorted(
                {seq for fingerprint in fingerprints for seq in chain.rows_by_fingerprint.get(fingerprint, ())}
            )
            return [_event_and_answer(table, chain, seq) for seq in seqs]

    def latest_receipt(self, fingerprint: str) -> str | None:
        """Return the receipt of the latest charge with a fingerprint; None after an acknowledgement."""
        with self._verified_read() as (_, chain):
            return chain.latest_receipts.get(fingerprint)

    def event_with_key(self, by: str, key: str) -> Event | None:
        """Return the charge of an analyst with a key; None if there is none."""
        with self._verified_read() as (table, chain):
            return _event_and_answer(table, chain, chain.keys[by, key])[0] if (by, key) in chain.keys else None

    def verify(self) -> None:
        """Recompute every hash, total, state and answer, and compare the ledger with its checkpoint.

        Claim: if nothing is raised, the ledger is intact: all charges and answers up to the checkpoint at least, or up
            to the move to another location, are present and unmodified, and never exceeded the terms then in force.
        Proof: check_table for the rows and answers, check_checkpoint for the end of the chain.
        Needs: check_table, check_checkpoint.
        Checked by: test_any_changed_field_of_any_row_is_found, test_a_changed_answer_is_found,
            test_a_deleted_tail_is_found, test_dropped_triggers_are_found
        Seal: ee7ecaa9a791
        """
        with self._session.read_transaction() as table:
            # Read before the rows: these may only be newer.
            checkpoint = self._session.location.checkpoint()
            _check_against_checkpoint(check_table(table), checkpoint)
            table.check_storage()

    @property
    def name(self) -> str:
        """The data set that the ledger belongs to."""
        return self._terms().name

    @property
    def budget(self) -> Budget:
        """The total budget."""
        return self._terms().budget

    @property
    def analysts(self) -> Mapping[str, Budget] | None:
        """The limits of the analysts; None if anyone may ask."""
        return self._terms().analysts

    @property
    def unit_declaration(self) -> str:
        """The declaration of the privacy unit, as the owner wrote it."""
        return self._terms().unit_declaration

    def unsettled_events(self) -> list[Event]:
        """Return the charges without an answer since the last acknowledgement by the owner."""
        with self._read_transaction() as (table, chain):
            return [
                read_event(_verified_row(table, chain, seq), EventState.RESERVED) for seq in chain.unsettled.values()
            ]

    def set_budget(
        self, budget: Budget, *, analysts: Mapping[str, Budget] | None, unit_declaration: str | None = None
    ) -> None:
        """Change the budget and the limits of analysts, and record the change; the loss already spent stays.

        Claim: the split of delta is never changed after an answer was seen.
        Proof: after the first charge, a budget with a delta can only be replaced by one with the same delta and the
            same share for partition selection; epsilon may change, and so may the limits of analysts, on which privacy
            does not depend.
        Needs: Budget.covers.
        Checked by: test_the_split_of_delta_is_fixed_by_the_first_charge
        Seal: 6e5f6f13050c
        """
        with self._write_transaction() as (table, chain):
            before = read_terms(chain.terms)
            terms = Terms(
                before.name, budget, analysts, before.unit_declaration if unit_declaration is None else unit_declaration
            )
            check_delta_split(before.budget, terms.budget, read_loss(chain.last_row.spent))
            _append_row(table, chain, PendingRow(kind=RowKind.BUDGET, by=OWNER, body=terms_text(terms)))

    def acknowledge(self) -> None:
        """Let a ledger serve again after a rollback, a lost checkpoint or failures, and record the acknowledgement.

        Claim: afterwards the total spent is not below the total that the checkpoint recorded before the rollback.
        Proof: the lost charges are charged to the owner in the same row. A ledger that does not belong to the
            checkpoint is refused.
        Needs: rolled_back_loss; if the checkpoint is missing, charges lost with it cannot be known.
        Checked by: test_a_restored_old_copy_is_read_only_until_acknowledged
        Seal: 373be027b63c
        """
        with self._session.write_transaction() as table:
            chain, checkpoint = self._update_chain(table), self._session.location.checkpoint()
            _check_not_moved(chain.last_row)
            lost = rolled_back_loss(checkpoint, chain.last_row, table.row_at) if checkpoint else ZERO_LOSS
            receipt = None if lost == ZERO_LOSS else secrets.token_hex(12)
            _append_row(
                table,
                chain,
                PendingRow(kind=RowKind.ACKNOWLEDGE, by=OWNER, body=_ROLLED_BACK_EVENT, loss=lost, receipt=receipt),
            )

    @property
    def moved_to(self) -> str | None:
        """The new location of a moved ledger, else None. A moved ledger can only be read and verified here."""
        with self._session.read_transaction() as table:
            return moved_to(table.last_row())

    def mark_moved(self, to: str, token: str) -> None:
        """Close this ledger for charges and record that it continues at the location that holds the token."""
        with self._write_transaction() as (table, chain):
            _append_row(table, chain, departure_row(bounded_text(to, "to", max_length=4000), token))

    def close(self) -> None:
        """Close the ledger; it cannot be reopened through this object."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _terms(self) -> Terms:
        with self._read_transaction() as (_, chain):
            return read_terms(chain.terms)

    @contextmanager
    def _write_transaction(self, moved_error: DiscreetError | None = None) -> Iterator[tuple[LedgerTable, Chain]]:
        """Run a transaction on a ledger that was not modified, rolled back or moved."""
        with self._session.write_transaction() as table:
            chain = self._update_chain(table)
            _check_not_moved(chain.last_row, moved_error)
            _check_against_checkpoint(chain, self._session.location.checkpoint())
            yield table, chain

    @contextmanager
    def _verified_read(self) -> Iterator[tuple[LedgerTable, Chain]]:
        """Read a ledger that was not modified or rolled back, so that its answers may be served."""
        with self._session.read_transaction() as table:
            # Read before the rows: these may only be newer.
            checkpoint = self._session.location.checkpoint()
            chain = self._update_chain(table)
            _check_against_checkpoint(chain, checkpoint)
            yield table, chain

    @contextmanager
    def _read_transaction(self) -> Iterator[tuple[LedgerTable, Chain]]:
        """Read a ledger that was not modified; it may have been rolled back or have lost its checkpoint."""
        with self._session.read_transaction() as table:
            checkpoint = self._session.location.checkpoint()
            chain = self._update_chain(table)
            if checkpoint and checkpoint.seq <= chain.last_row.seq:
                _check_against_checkpoint(chain, checkpoint)
            yield table, chain

    def _update_chain(self, table: LedgerTable) -> Chain:
        """Extend the chain by the rows that were added since, and return it; rebuild it if its last row is gone."""
        last = self._chain.last
        rows = table.rows(last.seq if last else 1)
        if last and next(rows, None) != last:  # rolled back or rewritten
            self._chain, rows = Chain(), table.rows()
        return self._chain.extend(rows)


def _check_against_checkpoint(chain: Chain, checkpoint: Checkpoint | None) -> None:
    """Raise LedgerError unless the chain contains the row of the checkpoint, or ends with a move."""
    if moved_to(chain.last_row) is None:
        check_checkpoint(checkpoint, chain.last_row, chain.hash_at(checkpoint.seq) if checkpoint else None)


def _append_row(table: LedgerTable, chain: Chain, pending: PendingRow) -> None:
    table.add_row(row_after(chain.last_row, chain.spent_of(pending.by), pending))


def _verified_row(table: LedgerTable, chain: Chain, seq: int) -> LedgerRow:
    return _check_same_row(table.row_at(seq), chain, seq)


def _check_same_row(row: LedgerRow | None, chain: Chain, seq: int) -> LedgerRow:
    """Return the row if its hash is the one in the chain."""
    if row is None or row.hash != chain.hash_at(seq):
        raise LedgerError(f"row {seq} was modified or deleted while the ledger was open{RESTORE_HINT}")
    return row


def _check_not_moved(last: LedgerRow, error: DiscreetError | None = None) -> None:
    """Raise an error if the ledger was moved."""
    to = moved_to(last)
    if to is not None:
        raise error or LedgerError(moved_message(to))


def _replay_answer(table: LedgerTable, chain: Chain, seq: int, event: Event) -> Receipt:
    """Return the receipt and stored answer of an earlier charge; a charge without an answer is not run again."""
    if _verified_row(table, chain, seq).body != event_text(event):
        raise Refused("key: already used for a different query. Use another key.")
    charge, answer = _event_and_answer(table, chain, seq)
    if answer is None:
        raise Failed(UNKNOWN_OUTCOME)
    return Receipt(charge.id, answer)


def _event_and_answer(table: LedgerTable, chain: Chain, seq: int) -> tuple[Event, bytes | None]:
    """Return a charge and its stored answer, if any, both checked against the chain."""
    row = _verified_row(table, chain, seq)
    settled = chain.settlements.get(row.receipt or "")
    if settled is None:
        return read_event(row, EventState.RESERVED), None
    answer = table.answer(row.receipt or "")
    if answer is None or sha256(answer).hexdigest() != settled[1]:
        raise LedgerError(f"row {settled[0]}: the stored answer is missing or was modified{RESTORE_HINT}")
    return read_event(row, EventState.RELEASED), answer


def _check_key(key: str | None) -> str | None:
    return None if key is None else bounded_text(key, "key", max_length=MAX_KEY_LENGTH)
