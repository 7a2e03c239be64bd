"""The account of one data set: charge, settle, and what is checked before, wherever the rows are kept."""

import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Self

from discreet.kernel.errors import FAILED, DiscreetError, Failed, LedgerError, Refused
from discreet.kernel.event import OWNER, Event, Receipt, State, bounded_text, canonical
from discreet.kernel.exact import typed
from discreet.kernel.ledger.chain import Act, Kind, Row, departure, event_of, event_text, gone, moved_to
from discreet.kernel.ledger.checking import check_table
from discreet.kernel.ledger.head import Head, check_head, hash_at, lost_since
from discreet.kernel.ledger.interface import LONGEST_ANSWER
from discreet.kernel.ledger.storage import Session, Table
from discreet.kernel.ledger.terms import (
    Terms,
    check_name,
    check_price,
    check_split,
    read_loss,
    recorded,
    terms_text,
)
from discreet.kernel.loss import NOTHING, Budget, Loss

LONGEST_KEY = 200
UNKNOWN = "key: it was charged before and its outcome is unknown. Use another key, which is a new charge."
_LOST = event_text(Event(mechanism=canonical({"name": "lost"}), sensitivity="{}", question="lost in a rollback"))


class Account:
    """A ledger that is open, in whatever place its session leads to."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._quiet = 0, ""  # up to the row of this number and hash, every charge is settled or acknowledged

    def charge(self, loss: Loss, event: Event, key: str | None = None) -> Receipt:
        """Pay for a question before any data is read, or return what the same key paid for before.

        Claim: when it returns a receipt without an answer, the charge is durable, and what was spent, this
            included, is within the budget; when it raises Refused, nothing has changed. One key of one
            analyst is charged at most once. Of the charges that follow an earlier one there is at most one, whether it
            was settled or not, also if the ledger was rolled back in between. Nothing gives a charge back.
        Proof: looking up the key, reading the totals, checking and appending are one transaction, alone among
            all threads, processes and machines; it ends after the row is on the disk. A refusal is raised before
            anything is written. No
            statement of this package updates or deletes, and triggers stop those of others. Who follows a charge has
            its topic and is newer, so a second one finds that it is not the newest any more; a rollback must be
            acknowledged before the next charge, and nothing from before an acknowledgement is the newest.
        Needs: the session's writing(): atomic, alone and durable; check_price, row_after, check_head.
        Checked by: test_concurrent_processes_end_exactly_at_the_limit,
            test_concurrent_threads_end_exactly_at_the_limit, test_killed_workers_lose_nothing_that_was_seen,
            test_a_hundred_hundredths_fit_and_the_next_is_refused, test_the_ledger_agrees_with_a_simple_model,
            test_only_one_charge_follows_another, test_nothing_follows_what_was_charged_before_a_rollback
        Seal: e1214003d614
        """
        price, key = recorded(typed(Loss, loss, "loss")), _checked_key(key)
        by = typed(Event, event, "event").by
        with self._writing() as (table, last):
            terms = table.terms()
            check_name(terms, by)
            earlier = table.charge_with_key(by, key) if key else None
            if earlier:
                return _replayed(table, earlier, event)
            if any(table.newest(topic) != before for topic, before in event.follows):
                raise Refused("the same was asked by somebody else at this moment. Ask again.")
            check_price(terms, by, price, read_loss(last.spent), table.spent_by(by))
            receipt = Receipt(secrets.token_hex(12))
            body = event_text(event)
            table.append(last, Act(kind=Kind.CHARGE, by=by, key=key, receipt=receipt.id, loss=price, body=body))
        return receipt

    def settle(self, receipt: Receipt, answer: bytes) -> None:
        """Store the answer of a charge, once, before its first byte is sent.

        Claim: when it returns, the answer is durable, its hash is in the chain, and its key returns these
            bytes ever after; there is no answer without a charge, and no second answer to one.
        Proof: one transaction, alone, finds the charge, finds no settlement, and writes both the answer and
            the row with its hash; it ends after they are on the disk.
        Needs: the session's writing(): atomic, alone and durable; row_after, check_head.
        Checked by: test_the_same_key_returns_the_same_bytes,
            test_settling_twice_or_an_unknown_receipt_is_an_error,
            test_killed_workers_lose_nothing_that_was_seen
        Seal: 58698dd0aa3b
        """
        paid = typed(Receipt, receipt, "receipt").id
        if len(typed(bytes, answer, "answer")) > LONGEST_ANSWER:
            raise ValueError(f"answer must have at most {LONGEST_ANSWER} bytes, not {len(answer)}")
        with self._writing(moved=Failed(FAILED)) as (table, last):
            charge = table.about(Kind.CHARGE, paid)
            if charge is None or table.about(Kind.SETTLE, paid):
                raise LedgerError(f"receipt {paid!r} was {'settled before' if charge else 'never charged here'}")
            table.add_answer(paid, answer)
            body = canonical({"sha256": sha256(answer).hexdigest()})
            table.append(last, Act(kind=Kind.SETTLE, by=charge.by, receipt=paid, body=body))

    def spent(self, by: str | None = None) -> Loss:
        """Return what was lost in all, or by one analyst's questions: read from one row, not added up."""
        with self._session.reading() as table:
            return read_loss(table.last().spent) if by is None else table.spent_by(by)

    def events(self) -> list[Event]:
        """Return everything that was charged, oldest first."""
        with self._session.reading() as table:
            rows = [row for row in table.rows() if row.receipt]
        settled = {row.receipt for row in rows if row.kind == Kind.SETTLE}
        charges = [row for row in rows if row.kind != Kind.SETTLE]
        return [event_of(row, State.RELEASED if row.receipt in settled else State.RESERVED) for row in charges]

    def answers(self, topics: Iterable[str]) -> list[tuple[Event, bytes | None]]:
        """Return the charges that have any of these topics, oldest first, with their stored answers."""
        with self._session.reading() as table:
            found = [(row, _settled(table, row)) for row in table.about_topics(topics)]
        return [(event_of(row, _state(answer)), answer) for row, answer in found]

    def newest(self, topic: str) -> str | None:
        """Return the receipt of the newest charge with a topic, unless the owner acknowledged a loss since."""
        with self._session.reading() as table:
            return table.newest(topic)

    def with_key(self, by: str, key: str) -> Event | None:
        """Return the charge that an analyst made with a key."""
        with self._session.reading() as table:
            row = table.charge_with_key(by, key)
            return row and event_of(row, _state(_settled(table, row)))

    def verify(self) -> None:
        """Recompute every hash, total, state and answer, and compare the end with the head.

        Claim: if nothing is raised, the ledger is whole: everything that was charged and stored is there,
            unchanged, up to the head at least, or to the move to another place, and never exceeded the terms then in
            force.
        Proof: check_table for the rows and answers, check_head for their end.
        Needs: check_table, check_head.
        Checked by: test_any_changed_field_of_any_row_is_found, test_a_changed_answer_is_found,
            test_a_deleted_tail_is_found, test_dropped_triggers_are_found, test_a_changed_topic_is_found
        Seal: ffabe7f8d0f2
        """
        with self._session.reading() as table:
            head = self._session.place.head()  # before the first read of the rows, which may only be newer
            check_table(table)
            if moved_to(table.last()) is None:  # nothing follows a move: its end needs no witness
                self._check_head(table, head)
            table.check_file()

    @property
    def name(self) -> str:
        """The data set that the ledger belongs to."""
        return self._terms().name

    @property
    def budget(self) -> Budget:
        """How much may be lost in all."""
        return self._terms().budget

    @property
    def analysts(self) -> Mapping[str, Budget] | None:
        """The limits of the listed analysts; None if any name may ask."""
        return self._terms().analysts

    @property
    def promise(self) -> str:
        """Who is protected, in the owner's words."""
        return self._terms().promise

    def unsettled(self) -> list[Event]:
        """Return what was charged and has no answer, since the owner last acknowledged it."""
        with self._session.reading() as table:
            seq, known = self._quiet
            row = table.at(seq)
            rows, last = table.unsettled(seq if row and row.hash == known else 0), table.last()
        # What is settled stays so: the next look begins where this one found nothing, however long the ledger is.
        self._quiet = (rows[0].seq - 1, rows[0].previous) if rows else (last.seq, last.hash)
        return [event_of(row, State.RESERVED) for row in rows]

    def set_budget(self, budget: Budget, *, analysts: Mapping[str, Budget] | None, promise: str | None = None) -> None:
        """Change the limits: an owner's act, on record. What is spent stays spent, and delta's split stays put.

        Claim: the two limits of a delta are never traded for one another after an answer was seen.
        Proof: once something is charged, a budget with a delta is replaced only by one with the same delta and the
            same part of it set apart; epsilon, and analysts' limits, which are fairness, may change.
        Needs: Budget.covers.
        Checked by: test_the_split_of_delta_is_fixed_by_the_first_charge
        Seal: 96908a5e762b
        """
        with self._writing() as (table, last):
            before = table.terms()
            terms = Terms(before.name, budget, analysts, before.promise if promise is None else promise)
            check_split(before.budget, terms.budget, read_loss(last.spent))
            table.append(last, Act(kind=Kind.BUDGET, by=OWNER, body=terms_text(terms)))

    def acknowledge(self) -> None:
        """Let a ledger that was rolled back, lost its head or has failures serve again: an owner's act, on record.

        Claim: afterwards what is spent is not below what the head says was spent before the rollback.
        Proof: what was lost is charged to the owner in the same row. A ledger that is not the head's is refused.
        Needs: lost_since; a missing head says nothing, so what was lost with it is not known.
        Checked by: test_a_restored_old_copy_is_read_only_until_acknowledged
        Seal: f54e063e4e95
        """
        with self._session.writing() as table:
            last, head = table.last(), self._session.place.head()
            _check_here(last)
            lost = lost_since(head, last, table.at) if head else NOTHING
            receipt = None if lost == NOTHING else secrets.token_hex(12)
            table.append(last, Act(kind=Kind.ACKNOWLEDGE, by=OWNER, body=_LOST, loss=lost, receipt=receipt))

    @property
    def moved(self) -> str | None:
        """Where the ledger went, if it was moved: then it can be read and verified here, and nothing else."""
        with self._session.reading() as table:
            return moved_to(table.last())

    def depart(self, to: str, token: str) -> None:
        """End this ledger, durably: it goes on in the place that knows the token. An owner's act, on record."""
        with self._writing() as (table, last):
            table.append(last, departure(bounded_text(to, "to", longest=4000), token))

    def close(self) -> None:
        """Let go of the place; a closed ledger stays closed."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _terms(self) -> Terms:
        with self._session.reading() as table:
            return table.terms()

    @contextmanager
    def _writing(self, moved: DiscreetError | None = None) -> Iterator[tuple[Table, Row]]:
        """Run a transaction on a ledger that was not rolled back nor moved; give its last row."""
        with self._session.writing() as table:
            last = table.last()
            _check_here(last, moved)
            self._check_head(table, self._session.place.head())
            yield table, last

    def _check_head(self, table: Table, head: Head | None) -> None:
        check_head(head, table.last(), hash_at(head, table.at) if head else None)


def _check_here(last: Row, error: DiscreetError | None = None) -> None:
    """Stop, with another error if one is given, if the ledger goes on in another place."""
    to = moved_to(last)
    if to is not None:
        raise error or LedgerError(gone(to))


def _replayed(table: Table, charge: Row, event: Event) -> Receipt:
    """Return the answer that a key has paid for; what has none is never executed again."""
    if charge.body != event_text(event):
        raise Refused("key: it was used for another question before. Use another key.")
    answer = _settled(table, charge)
    if answer is None:
        raise Failed(UNKNOWN)
    return Receipt(charge.receipt or "", answer)


def _settled(table: Table, charge: Row) -> bytes | None:
    """Return the stored answer of a charge, checked against the chain; None if it has none."""
    settled = table.about(Kind.SETTLE, charge.receipt or "")
    if settled is None:
        return None
    answer = table.answer(charge.receipt or "")
    if answer is None or canonical({"sha256": sha256(answer).hexdigest()}) != settled.body:
        raise LedgerError(f"row {settled.seq}: its answer is missing or was changed")
    return answer


def _state(answer: bytes | None) -> State:
    return State.RESERVED if answer is None else State.RELEASED


def _checked_key(key: str | None) -> str | None:
    return None if key is None else bounded_text(key, "key", longest=LONGEST_KEY)
