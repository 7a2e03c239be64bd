"""The ledger of a data set or of a population: charges, settlements and their checks, whatever the storage."""

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from hashlib import sha256

from discreet.kernel.errors import Failed, LedgerError, PolicyError, Refused
from discreet.kernel.event import OWNER, Event, EventState, Receipt, bounded_text, canonical_json
from discreet.kernel.ledger.chain import (
    Chain,
    RowKind,
    check_not_moved,
    event_text,
    moved_to,
)
from discreet.kernel.ledger.checkpoint import Checkpoint, check_checkpoint, rolled_back_loss
from discreet.kernel.ledger.table import (
    FORMAT,
    LedgerSession,
    LedgerTable,
    check_answers,
    closed_on_error,
    stored_answer,
)
from discreet.kernel.ledger.terms import (
    DatasetTerms,
    Terms,
    check_analyst,
    check_cost,
    check_delta_split,
    join_terms,
    read_terms,
    round_for_ledger,
    terms_text,
)
from discreet.kernel.loss import ZERO_LOSS, Budget, Loss
from discreet.kernel.numbers import check_type

MAX_ANSWER_BYTES = 64 * 1024 * 1024
UNKNOWN_OUTCOME = "key: charged before, but the outcome is unknown. Use another key, which is a new charge."
_ROLLED_BACK_EVENT = event_text(
    Event(mechanism=canonical_json({"name": "lost"}), sensitivity="{}", question="charges lost in a rollback")
)


class Ledger(AbstractContextManager["Ledger"]):
    """A durable, append-only account of the privacy loss of one data set, or of a population with several.

    The session gives access to the storage. Of a population's account, this is the view of one data set: it charges
    for it, and finds its answers, keys and failures only. `dataset` is "" if the account belongs to one data set.

    >>> from discreet.ledger_sqlite import memory_ledger
    >>> memory_ledger(name="demo", budget=Budget(1)).terms.budget
    Budget(epsilon=1)
    """

    def __init__(self, session: LedgerSession, dataset: str = "") -> None:
        self.session, self.dataset = session, dataset
        self._chain = Chain()  # the committed rows read so far

    def charge(self, loss: Loss, event: Event, key: str | None = None) -> Receipt:
        """Charge a query before any data is read, or return the stored answer of an earlier charge with the same key.

        Claim: when it returns a receipt without an answer, the charge is durable, and the total spent, including
            this charge, is within the budget, as are the limits of the analyst and of the data set; when it raises,
            nothing has changed. One key of one analyst is charged at most once per data set. At most one charge follows
            a given earlier charge, settled or not, even if the ledger was rolled back in between. No charge is ever
            refunded.
        Proof: looking up the key, reading the totals, checking and appending are one transaction (charge_together,
            with one charge), which excludes all other threads, processes and machines and ends after the row is on
            disk. All lookups use the chain of all committed rows, which the same transaction updates and compares with
            the checkpoint: modified, deleted or replaced rows raise an error. A refusal is raised before anything is
            written. No statement of this package updates or deletes, and triggers reject such statements of others. A
            charge that follows another has the same fingerprint and is later, so for a second one the earlier charge
            is no longer the latest; a rollback must be acknowledged before the next charge, and no charge from before
            an acknowledgement is the latest.
        Needs: Ledger.charge_together, SQLiteSession.write_transaction, PostgresSession.write_transaction,
            check_checkpoint, Chain.add, Chain.next_row, LedgerTable.rows, LedgerTable.row_at, LedgerTable.add_row,
            read_row, Terms, read_terms, check_cost, round_for_ledger, SQLITE_SCHEMA, create_statements.
        Checked by: test_concurrent_processes_end_exactly_at_the_limit,
            test_concurrent_threads_end_exactly_at_the_limit, test_killed_workers_lose_nothing_that_was_seen,
            test_a_hundred_hundredths_fit_and_the_next_is_refused, test_the_ledger_agrees_with_a_simple_model,
            test_only_one_charge_follows_another, test_nothing_follows_what_was_charged_before_a_rollback,
            test_a_changed_row_is_never_relied_upon, test_a_last_row_changed_while_open_is_never_relied_upon
        """
        return self.charge_together([(loss, event, key)])[0]

    def charge_together(self, charges: Sequence[tuple[Loss, Event, str | None]]) -> list[Receipt]:
        """Charge several queries, each with its key, at once: all of them, or none; otherwise like `charge`.

        Claim: when it returns, every charge is durable, within the limits that hold after those before it; when it
            raises, nothing has changed.
        Proof: one transaction; each row follows the one before, which is added to the chain. A chain that is ahead of
            what was committed is rebuilt before it is used again (_update_chain).
        Needs: Chain.add, Chain.next_row, LedgerTable.add_row, check_cost, check_checkpoint, round_for_ledger,
            SQLiteSession.write_transaction, PostgresSession.write_transaction.
        Checked by: test_charges_together_are_all_made_or_none, test_concurrent_processes_end_exactly_at_the_limit,
            test_an_interrupted_transaction_of_several_charges_leaves_nothing
        """
        with self.write_transaction() as (table, chain):
            return [self._charge_one(table, chain, *charge) for charge in charges]

    def _charge_one(self, table: LedgerTable, chain: Chain, loss: Loss, event: Event, key: str | None) -> Receipt:
        cost, by = round_for_ledger(check_type(Loss, loss, "loss")), check_type(Event, event, "event").by
        if key is not None:
            bounded_text(key, "key", max_length=200)
        terms = read_terms(chain.terms)
        check_analyst(terms, by)
        if (by, self.dataset, key) in chain.keys:
            return _replay_answer(table, chain, chain.keys[by, self.dataset, key], event)
        if any(chain.latest_receipts.get((self.dataset, total)) != before for total, before in event.follows):
            raise Refused("another request charged for the same totals at the same time. Try again.")
        check_cost(terms, by, self.dataset, cost, chain.spent)
        receipt, text = secrets.token_hex(12), event_text(event)
        row = chain.next_row(RowKind.CHARGE, by, text, dataset=self.dataset, loss=cost, receipt=receipt, key=key)
        table.add_row(row)
        chain.add(row)
        return Receipt(receipt)

    def redeem(self, receipt: Receipt, cost: Loss, event: Event) -> Receipt:
        """Return a receipt of `charge_together`, if it is for this event and has no answer yet.

        Claim: the event was charged in this data set, durably, with a loss of at least `cost`, and has no answer. As a
            receipt is settled once, at most one answer is returned for it, however often it is redeemed.
        Proof: the charge is read from the chain of committed rows, and compared; Ledger.settle refuses a second answer.
        Needs: Chain.event_of, Chain.add, check_checkpoint, LedgerTable.row_at, read_row, Loss.includes, Ledger.settle.
        Checked by: test_a_receipt_is_redeemed_for_its_own_event_only, test_a_receipt_has_one_answer
        """
        with self._read(check_checkpoint) as (table, chain):
            seq, by, dataset = chain.charges.get(receipt.id, (0, "", ""))
            charged = chain.event_of(seq, table.row_at(seq)) if seq else event
        if (
            (by, dataset) != (event.by, self.dataset)
            or charged.state is not EventState.RESERVED
            or event_text(charged) != event_text(event)
            or charged.loss is None
            or not charged.loss.includes(cost)
        ):
            raise LedgerError(f"receipt {receipt.id!r} was charged for something else, or has an answer already")
        return receipt

    def settle(self, receipt: Receipt, answer: bytes) -> None:
        """Store the answer to a charge, once, before its first byte is sent.

        Claim: when it returns, the answer is durable, its hash is in the chain, and its key returns these bytes from
            then on; no answer exists without a charge, and no charge has two answers.
        Proof: one exclusive transaction finds the charge and no settlement in the chain, and writes both the answer
            and the row with its hash; it ends after they are on disk.
        Needs: SQLiteSession.write_transaction, PostgresSession.write_transaction, check_checkpoint, Chain.add,
            Chain.next_row, LedgerTable.rows, LedgerTable.add_row, LedgerTable.add_answer, stored_answer.
        Checked by: test_the_same_key_returns_the_same_bytes,
            test_settling_twice_or_an_unknown_receipt_is_an_error,
            test_killed_workers_lose_nothing_that_was_seen
        """
        charged = check_type(Receipt, receipt, "receipt").id
        if len(check_type(bytes, answer, "answer")) > MAX_ANSWER_BYTES:
            raise ValueError(f"answer must have at most {MAX_ANSWER_BYTES} bytes, not {len(answer)}")
        with self.write_transaction() as (table, chain):
            if charged not in chain.charges or charged in chain.settlements:
                raise LedgerError(f"receipt {charged!r} is unknown or already settled")
            table.add_answer(charged, answer)
            body, (_, by, dataset) = canonical_json({"sha256": sha256(answer).hexdigest()}), chain.charges[charged]
            table.add_row(chain.next_row(RowKind.SETTLE, by, body, dataset=dataset, receipt=charged))

    def spent(self, by: str | None = None, *, dataset: str | None = None) -> Loss:
        """Return the total loss, or that of one analyst's queries, or of the queries of one data set."""
        scope = ("in", dataset) if dataset is not None else () if by is None else ("by", by)
        with self._read(_check_known_rows) as (_, chain):
            return chain.spent(*scope)

    def events(self) -> list[Event]:
        """Return all charges of all data sets, oldest first."""
        with self._read(_check_known_rows) as (table, chain):
            return [chain.event_of(row.seq, row) for row in table.rows() if row.receipt and row.kind != RowKind.SETTLE]

    def unsettled_events(self) -> list[Event]:
        """Return the charges without an answer since the last acknowledgement by the owner."""
        with self._read(_check_known_rows) as (table, chain):
            return [chain.event_of(seq, table.row_at(seq)) for seq in chain.unsettled.get(self.dataset, {}).values()]

    def answers(
        self, fingerprints: Iterable[str] = (), *, keys: Iterable[tuple[str, str]] = ()
    ) -> list[tuple[Event, bytes | None]]:
        """Return the charges with any of these fingerprints or keys (of analysts), oldest first, and their answers.

        Claim: the list is complete for this data set and has no charges of another; each charge is as it was recorded,
            and each answer as it was stored.
        Proof: the charges are found in the chain of all rows, which contains the row of the checkpoint; each row is
            read and has the hash that the chain has for it; each answer has the hash that its settlement names.
        Needs: Chain.add, check_checkpoint, LedgerTable.rows, LedgerTable.row_at, read_row, stored_answer.
        Checked by: test_a_changed_row_is_never_relied_upon, test_a_row_changed_while_open_is_never_relied_upon,
            test_a_changed_or_missing_answer_is_never_recalled, test_answers_and_keys_never_cross_data_sets
        """
        with self._read(check_checkpoint) as (table, chain):
            rows = chain.rows_by_fingerprint
            seqs = {seq for fingerprint in fingerprints for seq in rows.get((self.dataset, fingerprint), ())}
            seqs |= {chain.keys[by, self.dataset, key] for by, key in keys if (by, self.dataset, key) in chain.keys}
            events = [chain.event_of(seq, table.row_at(seq)) for seq in sorted(seqs)]
            return [(event, stored_answer(table, chain, event.id)) for event in events]

    def latest_receipt(self, fingerprint: str) -> str | None:
        """Return the receipt of the latest charge with a fingerprint; None after an acknowledgement."""
        with self._read(check_checkpoint) as (_, chain):
            return chain.latest_receipts.get((self.dataset, fingerprint))

    def verify(self) -> None:
        """Read all rows and answers again and compare them with the chain and the checkpoint.

        Claim: if nothing is raised, all rows and answers up to the checkpoint at least, or up to the move to another
            location, are present and as they were written, and there are no other answers.
        Proof: Chain.add for the rows, check_checkpoint for the end of the chain; each answer has the hash that its row
            names, and there are as many answers as such rows, at most one for each.
        Needs: Chain.add, check_checkpoint, LedgerTable.rows, LedgerTable.count_answers, read_row, stored_answer.
        Checked by: test_any_changed_field_of_any_row_is_found, test_a_changed_answer_is_found,
            test_a_deleted_tail_is_found
        """
        with self.session.read_transaction() as table:
            checkpoint = self.session.location.checkpoint()  # before the rows, which may only be newer
            chain = Chain().extend(table.rows())
            check_answers(table, chain)
            check_checkpoint(chain, checkpoint)

    @property
    def terms(self) -> Terms:
        """The terms set by the owner, as they are now: name, budget, limits of analysts, privacy unit."""
        with self._read(_check_known_rows) as (_, chain):
            return read_terms(chain.terms)

    @property
    def moved_to(self) -> str | None:
        """The new location of a moved ledger, else None. A moved ledger can only be read and verified here."""
        with self._read(_check_known_rows) as (_, chain):
            return moved_to(chain.last)

    def join(self, member: DatasetTerms) -> None:
        """Add this data set to the population, and record it; a data set of other people has its own ledger."""
        with self.write_transaction() as (table, chain):
            terms = join_terms(read_terms(chain.terms), self.dataset, member)
            table.add_row(chain.next_row(RowKind.JOIN, OWNER, terms_text(terms), dataset=self.dataset))

    def set_budget(
        self,
        budget: Budget,
        *,
        analysts: Mapping[str, Budget] | None,
        unit_declaration: str | None = None,
        member: DatasetTerms | None = None,
        replaces: Terms | None = None,
    ) -> None:
        """Change the budget and the limits of analysts, and record the change; the loss already spent stays.

        `member` is this data set of a population; the change is refused if the terms that it `replaces` are outdated.

        Claim: the split of delta is never changed after an answer was seen.
        Proof: after the first charge, a budget with a delta can only be replaced by one with the same delta and the
            same share for partition selection; epsilon may change, and so may the limits of analysts, on which privacy
            does not depend.
        Needs: check_delta_split, Chain.spent, Chain.next_row, Budget.covers.
        Checked by: test_the_split_of_delta_is_fixed_by_the_first_charge
        """
        with self.write_transaction() as (table, chain):
            before = read_terms(chain.terms)
            if replaces not in (None, before):
                raise PolicyError("[budget]: the terms were changed at the same time. Try again.")
            unit = before.unit_declaration if unit_declaration is None else unit_declaration
            datasets = before.datasets if member is None else {**(before.datasets or {}), self.dataset: member}
            terms = Terms(before.name, budget, analysts, unit, datasets)
            check_delta_split(before.budget, terms.budget, chain.spent())
            table.add_row(chain.next_row(RowKind.BUDGET, OWNER, terms_text(terms)))

    def acknowledge(self) -> None:
        """Let a ledger serve again after a rollback, a lost checkpoint or failures, and record the acknowledgement.

        Claim: afterwards the total spent is not below the total that the checkpoint recorded before the rollback.
        Proof: the lost charges are charged to the owner in the same row, and to no data set, because theirs is unknown.
            A ledger that does not belong to the checkpoint is refused.
        Needs: rolled_back_loss, Chain.add, Chain.next_row, SQLiteSession.write_transaction,
            PostgresSession.write_transaction, LedgerTable.rows, LedgerTable.row_at; if the checkpoint is missing,
            charges lost with it cannot be known.
        Checked by: test_a_restored_old_copy_is_read_only_until_acknowledged
        """
        with self.session.write_transaction() as table:
            chain, checkpoint = self._update_chain(table), self.session.location.checkpoint()
            check_not_moved(chain.last)
            lost = rolled_back_loss(chain, checkpoint, table.row_at) if checkpoint else ZERO_LOSS
            receipt = None if lost == ZERO_LOSS else secrets.token_hex(12)
            kind, of, text = RowKind.ACKNOWLEDGE, "" if receipt else self.dataset, _ROLLED_BACK_EVENT
            table.add_row(chain.next_row(kind, OWNER, text, dataset=of, loss=lost, receipt=receipt))

    def record_act(self, act: Mapping[str, object]) -> None:
        """Record an act of the owner that concerns no charge, such as issuing a token; privacy does not rest on it."""
        with self.write_transaction() as (table, chain):
            text = bounded_text(canonical_json(act), "act", max_length=10_000)
            table.add_row(chain.next_row(RowKind.ACT, OWNER, text, dataset=self.dataset))

    def close(self) -> None:
        """Close the ledger; it cannot be reopened through this object."""
        self.session.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def write_transaction(self) -> Iterator[tuple[LedgerTable, Chain]]:
        """Run a transaction on a ledger that was not modified, rolled back or moved."""
        with self.session.write_transaction() as table:
            chain = self._update_chain(table)
            check_not_moved(chain.last)
            check_checkpoint(chain, self.session.location.checkpoint())
            yield table, chain

    @contextmanager
    def _read(self, check: Callable[[Chain, Checkpoint | None], None]) -> Iterator[tuple[LedgerTable, Chain]]:
        """Read a ledger that was not modified; `check` decides whether it may have been rolled back."""
        with self.session.read_transaction() as table:
            checkpoint = self.session.location.checkpoint()  # before the rows, which may only be newer
            chain = self._update_chain(table)
            check(chain, checkpoint)
            yield table, chain

    def _update_chain(self, table: LedgerTable) -> Chain:
        """Extend the chain by the rows that were added since, and return it; rebuild it if its last row is gone."""
        last = self._chain.last
        rows = table.rows(max(1, last.seq))
        if last.seq and next(rows, None) != last:  # rolled back or rewritten
            self._chain, rows = Chain(), table.rows()
        table.last_checked = self._chain.extend(rows).last
        return self._chain


def create_in(session: LedgerSession, terms: Terms, dataset: str = "") -> Ledger:
    """Create a ledger where there is none, and return the view of a data set.

    Claim: the ledger begins with these terms and without a loss, and no other ledger was replaced by it.
    Proof: the tables and the first row are one transaction; a file that exists is not created, and neither are a schema
        or tables that exist.
    Needs: create_ledger, memory_ledger, create_postgres_ledger, FileLocation.create, LedgerTable.create,
        Chain.next_row, SQLiteSession.write_transaction, PostgresSession.write_transaction.
    Checked by: test_creating_never_replaces_a_ledger_nor_the_trace_of_one, test_creation_is_atomic,
        test_a_half_created_ledger_is_not_an_empty_one
    """
    with closed_on_error(session), session.write_transaction() as table:
        table.create()
        table.add_row(Chain().next_row(RowKind.CREATE, OWNER, terms_text(terms)))
    return Ledger(session, dataset)


def open_in(session: LedgerSession, name: str, dataset: str = "") -> Ledger:
    """Open the existing ledger of the data set or population `name`, and return the view of a data set.

    Claim: a ledger is never mistaken for an empty one, nor for that of another data set or population.
    Proof: a location without a ledger of this format is refused, and so is a first row with another name.
    Needs: open_ledger, open_postgres_ledger, has_postgres_ledger, LedgerTable.check_format, Chain.extend, read_terms,
        FileLocation.connect.
    Checked by: test_a_missing_ledger_is_an_error_and_not_a_fresh_one, test_a_half_created_ledger_is_not_an_empty_one,
        test_a_ledger_belongs_to_its_name
    """
    with closed_on_error(session):
        with session.read_transaction() as table:
            table.check_format(FORMAT)
            stored = read_terms(Chain().extend(filter(None, [table.row_at(1)])).terms).name
        if stored != name:
            raise PolicyError(
                f"name: the ledger {session.location} belongs to {stored!r}, not to {name!r}. Give {name!r} a ledger "
                f'of its own: ledger = "{name.replace("/", "_")}.sqlite" in [data].'
            )
    return Ledger(session, dataset)


def _check_known_rows(chain: Chain, checkpoint: Checkpoint | None) -> None:
    """Raise LedgerError if a row differs from the checkpoint; rows may be missing, or the checkpoint itself."""
    if checkpoint and checkpoint.seq <= chain.last.seq:
        check_checkpoint(chain, checkpoint)


def _replay_answer(table: LedgerTable, chain: Chain, seq: int, event: Event) -> Receipt:
    """Return the receipt and stored answer of an earlier charge; a charge without an answer is not run again."""
    charge = chain.event_of(seq, table.row_at(seq))
    if event_text(charge) != event_text(event):
        raise Refused("key: already used for a different query. Use another key.")
    answer = stored_answer(table, chain, charge.id)
    if answer is None:
        raise Failed(UNKNOWN_OUTCOME)
    return Receipt(charge.id, answer)
