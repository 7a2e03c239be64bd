"""The account of one data set: charge, settle, and what is checked before, wherever the rows are kept."""

import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Self

from discreet.kernel.errors import FAILED, DiscreetError, Failed, LedgerError, Refused
from discreet.kernel.event import OWNER, Event, Receipt, State, bounded_text, canonical
from discreet.kernel.exact import typed
from discreet.kernel.ledger.chain import (
    RESTORE,
    Act,
    Chain,
    Kind,
    Row,
    departure,
    event_of,
    event_text,
    gone,
    moved_to,
    row_after,
)
from discreet.kernel.ledger.checking import check_table
from discreet.kernel.ledger.head import Head, check_head, lost_since
from discreet.kernel.ledger.interface import LONGEST_ANSWER
from discreet.kernel.ledger.storage import Session, Table
from discreet.kernel.ledger.terms import (
    Terms,
    check_name,
    check_price,
    check_split,
    read_loss,
    read_terms,
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
        self._chain = Chain()  # the committed rows that were read so far

    def charge(self, loss: Loss, event: Event, key: str | None = None) -> Receipt:
        """Pay for a question before any data is read, or return what the same key paid for before.

        Claim: when it returns a receipt without an answer, the charge is durable, and what was spent, this
            included, is within the budget; when it raises Refused, nothing has changed. One key of one
            analyst is charged at most once. Of the charges that follow an earlier one there is at most one, whether it
            was settled or not, also if the ledger was rolled back in between. Nothing gives a charge back.
        Proof: looking up the key, reading the totals, checking and appending are one transaction, alone among
            all threads, processes and machines; it ends after the row is on the disk. What is looked up comes from the
            chain of all committed rows, which the same transaction brings up to date and compares with the head: rows
            that were changed, removed or exchanged are an error. A refusal is raised before anything is written. No
            statement of this package updates or deletes, and triggers stop those of others. Who follows a charge has
            its topic and is newer, so a second one finds that it is not the newest any more; a rollback must be
            acknowledged before the next charge, and nothing from before an acknowledgement is the newest.
        Needs: the session's writing(): atomic, alone and durable; check_price, row_after, check_head, Chain.add.
        Checked by: test_concurrent_processes_end_exactly_at_the_limit,
            test_concurrent_threads_end_exactly_at_the_limit, test_killed_workers_lose_nothing_that_was_seen,
            test_a_hundred_hundredths_fit_and_the_next_is_refused, test_the_ledger_agrees_with_a_simple_model,
            test_only_one_charge_follows_another, test_nothing_follows_what_was_charged_before_a_rollback,
            test_a_changed_row_is_never_relied_upon, test_a_last_row_changed_while_open_is_never_relied_upon
        Seal: 5eeab6fbbdcf
        """
        price, key = recorded(typed(Loss, loss, "loss")), _checked_key(key)
        by = typed(Event, event, "event").by
        with self._writing() as (table, chain):
            terms = read_terms(chain.terms)
            check_name(terms, by)
            if key is not None and (by, key) in chain.keys:
                return _replayed(table, chain, chain.keys[by, key], event)
            if any(chain.newest.get(topic) != before for topic, before in event.follows):
                raise Refused("the same was asked by somebody else at this moment. Ask again.")
            check_price(terms, by, price, read_loss(chain.end.spent), chain.spent_of(by))
            receipt = Receipt(secrets.token_hex(12))
            body = event_text(event)
            _append(table, chain, Act(kind=Kind.CHARGE, by=by, key=key, receipt=receipt.id, loss=price, body=body))
        return receipt

    def settle(self, receipt: Receipt, answer: bytes) -> None:
        """Store the answer of a charge, once, before its first byte is sent.

        Claim: when it returns, the answer is durable, its hash is in the chain, and its key returns these
            bytes ever after; there is no answer without a charge, and no second answer to one.
        Proof: one transaction, alone, finds the charge in the chain and no settlement, and writes both the answer and
            the row with its hash; it ends after they are on the disk.
        Needs: the session's writing(): atomic, alone and durable; row_after, check_head, Chain.add.
        Checked by: test_the_same_key_returns_the_same_bytes,
            test_settling_twice_or_an_unknown_receipt_is_an_error,
            test_killed_workers_lose_nothing_that_was_seen
        Seal: 442b8ad065c0
        """
        paid = typed(Receipt, receipt, "receipt").id
        if len(typed(bytes, answer, "answer")) > LONGEST_ANSWER:
            raise ValueError(f"answer must have at most {LONGEST_ANSWER} bytes, not {len(answer)}")
        with self._writing(moved=Failed(FAILED)) as (table, chain):
            if paid not in chain.charged or paid in chain.settled:
                was = "settled before" if paid in chain.settled else "never charged here"
                raise LedgerError(f"receipt {paid!r} was {was}")
            table.add_answer(paid, answer)
            body = canonical({"sha256": sha256(answer).hexdigest()})
            _append(table, chain, Act(kind=Kind.SETTLE, by=chain.charged[paid][1], receipt=paid, body=body))

    def spent(self, by: str | None = None) -> Loss:
        """Return what was lost in all, or by one analyst's questions: read from one row, not added up."""
        with self._reading() as (_, chain):
            return read_loss(chain.end.spent) if by is None else chain.spent_of(by)

    def events(self) -> list[Event]:
        """Return everything that was charged, oldest first."""
        with self._reading() as (table, chain):
            rows = [_same(row, chain, row.seq) for row in table.rows() if row.receipt and row.kind != Kind.SETTLE]
            settled = set(chain.settled)
        return [event_of(row, State.RELEASED if row.receipt in settled else State.RESERVED) for row in rows]

    def answers(self, topics: Iterable[str]) -> list[tuple[Event, bytes | None]]:
        """Return the charges that have any of these topics, oldest first, with their stored answers.

        Claim: they are all that there are, each as it was charged, and each answer as it was stored.
        Proof: the charges are found in the chain of all rows, which ends as the head says; the row of each is read
            and has the hash that the chain has for it; each answer has the hash that its settlement names.
        Needs: Chain.add, check_head.
        Checked by: test_a_changed_row_is_never_relied_upon, test_a_row_changed_while_open_is_never_relied_upon,
            test_a_changed_or_missing_answer_is_never_recalled
        Seal: de0b256dc370
        """
        with self._recalling() as (table, chain):
            seqs = sorted({seq for topic in topics for seq in chain.topics.get(topic, ())})
            return [_with_answer(table, chain, seq) for seq in seqs]

    def newest(self, topic: str) -> str | None:
        """Return the receipt of the newest charge with a topic, unless the owner acknowledged a loss since."""
        with self._recalling() as (_, chain):
            return chain.newest.get(topic)

    def with_key(self, by: str, key: str) -> Event | None:
        """Return the charge that an analyst made with a key."""
        with self._recalling() as (table, chain):
            return _with_answer(table, chain, chain.keys[by, key])[0] if (by, key) in chain.keys else None

    def verify(self) -> None:
        """Recompute every hash, total, state and answer, and compare the end with the head.

        Claim: if nothing is raised, the ledger is whole: everything that was charged and stored is there,
            unchanged, up to the head at least, or to the move to another place, and never exceeded the terms then in
            force.
        Proof: check_table for the rows and answers, check_head for their end.
        Needs: check_table, check_head.
        Checked by: test_any_changed_field_of_any_row_is_found, test_a_changed_answer_is_found,
            test_a_deleted_tail_is_found, test_dropped_triggers_are_found
        Seal: 1d94be8eefb3
        """
        with self._session.reading() as table:
            head = self._session.place.head()  # before the first read of the rows, which may only be newer
            _check_end(check_table(table), head)
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
        with self._reading() as (table, chain):
            return [event_of(_row(table, chain, seq), State.RESERVED) for seq in chain.unsettled.values()]

    def set_budget(self, budget: Budget, *, analysts: Mapping[str, Budget] | None, promise: str | None = None) -> None:
        """Change the limits: an owner's act, on record. What is spent stays spent, and delta's split stays put.

        Claim: the two limits of a delta are never traded for one another after an answer was seen.
        Proof: once something is charged, a budget with a delta is replaced only by one with the same delta and the
            same part of it set apart; epsilon, and analysts' limits, which are fairness, may change.
        Needs: Budget.covers.
        Checked by: test_the_split_of_delta_is_fixed_by_the_first_charge
        Seal: 9214b4b178f3
        """
        with self._writing() as (table, chain):
            before = read_terms(chain.terms)
            terms = Terms(before.name, budget, analysts, before.promise if promise is None else promise)
            check_split(before.budget, terms.budget, read_loss(chain.end.spent))
            _append(table, chain, Act(kind=Kind.BUDGET, by=OWNER, body=terms_text(terms)))

    def acknowledge(self) -> None:
        """Let a ledger that was rolled back, lost its head or has failures serve again: an owner's act, on record.

        Claim: afterwards what is spent is not below what the head says was spent before the rollback.
        Proof: what was lost is charged to the owner in the same row. A ledger that is not the head's is refused.
        Needs: lost_since; a missing head says nothing, so what was lost with it is not known.
        Checked by: test_a_restored_old_copy_is_read_only_until_acknowledged
        Seal: 86e16478ac98
        """
        with self._session.writing() as table:
            chain, head = self._linked(table), self._session.place.head()
            _check_here(chain.end)
            lost = lost_since(head, chain.end, table.at) if head else NOTHING
            receipt = None if lost == NOTHING else secrets.token_hex(12)
            _append(table, chain, Act(kind=Kind.ACKNOWLEDGE, by=OWNER, body=_LOST, loss=lost, receipt=receipt))

    @property
    def moved(self) -> str | None:
        """Where the ledger went, if it was moved: then it can be read and verified here, and nothing else."""
        with self._session.reading() as table:
            return moved_to(table.last())

    def depart(self, to: str, token: str) -> None:
        """End this ledger, durably: it goes on in the place that knows the token. An owner's act, on record."""
        with self._writing() as (table, chain):
            _append(table, chain, departure(bounded_text(to, "to", longest=4000), token))

    def close(self) -> None:
        """Let go of the place; a closed ledger stays closed."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _terms(self) -> Terms:
        with self._reading() as (_, chain):
            return read_terms(chain.terms)

    @contextmanager
    def _writing(self, moved: DiscreetError | None = None) -> Iterator[tuple[Table, Chain]]:
        """Run a transaction on a ledger that was not changed, rolled back nor moved."""
        with self._session.writing() as table:
            chain = self._linked(table)
            _check_here(chain.end, moved)
            _check_end(chain, self._session.place.head())
            yield table, chain

    @contextmanager
    def _recalling(self) -> Iterator[tuple[Table, Chain]]:
        """Read a ledger that was not changed nor rolled back: what is in it may be served."""
        with self._session.reading() as table:
            head = self._session.place.head()  # before the first read of the rows, which may only be newer
            chain = self._linked(table)
            _check_end(chain, head)
            yield table, chain

    @contextmanager
    def _reading(self) -> Iterator[tuple[Table, Chain]]:
        """Read a ledger that was not changed; the owner may also look at one that was rolled back or lost its head."""
        with self._session.reading() as table:
            head = self._session.place.head()
            chain = self._linked(table)
            if head and head.seq <= chain.end.seq:
                _check_end(chain, head)
            yield table, chain

    def _linked(self, table: Table) -> Chain:
        """Return the chain of all rows; those that were read before are not read again, but for the last."""
        last = self._chain.last
        rows = table.rows(last.seq if last else 1)
        if last and next(rows, None) != last:  # rolled back, or written anew: from the beginning
            self._chain, rows = Chain(), table.rows()
        return self._chain.extended(rows)


def _check_end(chain: Chain, head: Head | None) -> None:
    """Stop unless the chain has the row that the head names; nothing follows a move, so its end needs no witness."""
    if moved_to(chain.end) is None:
        check_head(head, chain.end, chain.hash_at(head.seq) if head else None)


def _append(table: Table, chain: Chain, act: Act) -> None:
    table.add_row(row_after(chain.end, chain.spent_of(act.by), act))


def _row(table: Table, chain: Chain, seq: int) -> Row:
    return _same(table.at(seq), chain, seq)


def _same(row: Row | None, chain: Chain, seq: int) -> Row:
    """Return a row if it is the one in the chain."""
    if row is None or row.hash != chain.hash_at(seq):
        raise LedgerError(f"row {seq} was changed or removed while the ledger was open{RESTORE}")
    return row


def _check_here(last: Row, error: DiscreetError | None = None) -> None:
    """Stop, with another error if one is given, if the ledger goes on in another place."""
    to = moved_to(last)
    if to is not None:
        raise error or LedgerError(gone(to))


def _replayed(table: Table, chain: Chain, seq: int, event: Event) -> Receipt:
    """Return the answer that a key has paid for; what has none is never executed again."""
    if _row(table, chain, seq).body != event_text(event):
        raise Refused("key: it was used for another question before. Use another key.")
    charge, answer = _with_answer(table, chain, seq)
    if answer is None:
        raise Failed(UNKNOWN)
    return Receipt(charge.id, answer)


def _with_answer(table: Table, chain: Chain, seq: int) -> tuple[Event, bytes | None]:
    """Return a charge with its stored answer, checked against the chain; None if it has none."""
    row = _row(table, chain, seq)
    settled = chain.settled.get(row.receipt or "")
    if settled is None:
        return event_of(row, State.RESERVED), None
    answer = table.answer(row.receipt or "")
    if answer is None or sha256(answer).hexdigest() != settled[1]:
        raise LedgerError(f"row {settled[0]}: its answer is missing or was changed{RESTORE}")
    return event_of(row, State.RELEASED), answer


def _checked_key(key: str | None) -> str | None:
    return None if key is None else bounded_text(key, "key", longest=LONGEST_KEY)
