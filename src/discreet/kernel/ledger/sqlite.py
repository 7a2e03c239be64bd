"""The ledger in SQLite: charge, settle, and what keeps them true across threads, processes and crashes."""

import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Self

from discreet.kernel.errors import Failed, LedgerError, PolicyError, Refused
from discreet.kernel.event import OWNER, Event, Receipt, State, bounded_text, canonical
from discreet.kernel.exact import typed
from discreet.kernel.ledger.chain import Act, Kind, Row, check_rows, event_of, event_text
from discreet.kernel.ledger.head import Head, check_head
from discreet.kernel.ledger.interface import LONGEST_ANSWER
from discreet.kernel.ledger.place import File, Memory, Place
from discreet.kernel.ledger.session import Session, named
from discreet.kernel.ledger.table import Table
from discreet.kernel.ledger.terms import (
    Terms,
    check_name,
    check_price,
    check_split,
    read_loss,
    recorded,
    shortfall,
    terms_text,
)
from discreet.kernel.loss import NOTHING, Budget, Loss

LONGEST_KEY = 200
UNKNOWN = "key: it was charged before and its outcome is unknown. Use another key, which is a new charge."
_LOST = event_text(Event(mechanism=canonical({"name": "lost"}), sensitivity="{}", question="lost in a rollback"))


class SQLiteLedger:
    """A ledger that is open. Made by create_ledger, open_ledger or memory_ledger."""

    def __init__(self, place: Place) -> None:
        self._session = Session(place)
        self._quiet = 0  # up to this row, every charge is settled or acknowledged

    def charge(self, loss: Loss, event: Event, key: str | None = None) -> Receipt:
        """Pay for a question before any data is read, or return what the same key paid for before.

        Claim: when it returns a receipt without an answer, the charge is durable, and what was spent, this
            included, is within the budget; when it raises Refused, nothing has changed. One key of one
            analyst is charged at most once. Of the charges that follow an earlier one there is at most one, whether it
            was settled or not, also if the ledger was rolled back in between. Nothing gives a charge back.
        Proof: looking up the key, reading the totals, checking and appending are one transaction, alone among
            all threads and processes; COMMIT returns after the row is on the disk (WAL, synchronous=FULL,
            both read back when the file is opened). A refusal is raised before anything is written. No
            statement of this package updates or deletes, and triggers stop those of others. Who follows a charge has
            its topic and is newer, so a second one finds that it is not the newest any more; a rollback must be
            acknowledged before the next charge, and nothing from before an acknowledgement is the newest.
        Needs: Session.writing, check_price, row_after, check_head; SQLite's atomic commit; a disk that keeps what
            it synced.
        Checked by: test_concurrent_processes_end_exactly_at_the_limit,
            test_concurrent_threads_end_exactly_at_the_limit, test_killed_workers_lose_nothing_that_was_seen,
            test_a_hundred_hundredths_fit_and_the_next_is_refused, test_the_ledger_agrees_with_a_simple_model,
            test_only_one_charge_follows_another, test_nothing_follows_what_was_charged_before_a_rollback
        Seal: da2123c83b2f
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
            the row with its hash; COMMIT returns after they are on the disk.
        Needs: Session.writing, row_after, check_head; SQLite's atomic commit; a disk that keeps what it synced.
        Checked by: test_the_same_key_returns_the_same_bytes,
            test_settling_twice_or_an_unknown_receipt_is_an_error,
            test_killed_workers_lose_nothing_that_was_seen
        Seal: ae8de953e849
        """
        paid = typed(Receipt, receipt, "receipt").id
        if len(typed(bytes, answer, "answer")) > LONGEST_ANSWER:
            raise ValueError(f"answer must have at most {LONGEST_ANSWER} bytes, not {len(answer)}")
        with self._writing() as (table, last):
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
            unchanged, up to the head at least, and never exceeded the terms then in force.
        Proof: check_rows for the rows, check_head for their end; each answer has the hash that its row names, and the
            topics are those of the rows.
        Needs: check_rows, check_head.
        Checked by: test_any_changed_field_of_any_row_is_found, test_a_changed_answer_is_found,
            test_a_deleted_tail_is_found, test_dropped_triggers_are_found, test_a_changed_topic_is_found
        Seal: b142e6b84ca5
        """
        with self._session.reading() as table:
            head = self._session.place.head()  # before the first read of the rows, which may only be newer
            settled, topics = check_rows(table.rows())
            if sorted(table.topics()) != sorted(topics):
                raise LedgerError("the topics are not those of the rows")
            for receipt, answer in table.answers():
                seq, digest = settled.pop(receipt, (0, ""))
                if sha256(answer).hexdigest() != digest:
                    raise LedgerError(f"row {seq}: its answer was changed" if seq else "an answer has no charge")
            for seq, _ in settled.values():
                raise LedgerError(f"row {seq}: its answer is missing")
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
            rows, last = table.unsettled(self._quiet), table.last().seq
        # What is settled stays so: the next look begins where this one found nothing, however long the ledger is.
        self._quiet = max(self._quiet, rows[0].seq - 1 if rows else last)
        return [event_of(row, State.RESERVED) for row in rows]

    def set_budget(self, budget: Budget, *, analysts: Mapping[str, Budget] | None, promise: str | None = None) -> None:
        """Change the limits: an owner's act, on record. What is spent stays spent, and delta's split stays put.

        Claim: the two limits of a delta are never traded for one another after an answer was seen.
        Proof: once something is charged, a budget with a delta is replaced only by one with the same delta and the
            same part of it set apart; epsilon, and analysts' limits, which are fairness, may change.
        Needs: Budget.covers.
        Checked by: test_the_split_of_delta_is_fixed_by_the_first_charge
        Seal: 300dd2432711
        """
        with self._writing() as (table, last):
            before = table.terms()
            terms = Terms(before.name, budget, analysts, before.promise if promise is None else promise)
            check_split(before.budget, terms.budget, read_loss(last.spent))
            table.append(last, Act(kind=Kind.BUDGET, by=OWNER, body=terms_text(terms)))

    def acknowledge(self) -> None:
        """Let a ledger that was rolled back, lost its head or has failures serve again: an owner's act, on record.

        Claim: afterwards what is spent is not below what the head says was spent before the rollback.
        Proof: the difference is charged to the owner in the same row. A ledger that is long enough to have
            the head's row, and has another one there, is refused.
        Needs: check_head, shortfall; a missing head says nothing, so what was lost with it is not known.
        Checked by: test_a_restored_old_copy_is_read_only_until_acknowledged
        Seal: 862db1346c17
        """
        with self._session.writing() as table:
            last, head = table.last(), self._session.place.head()
            if head and head.seq <= last.seq:
                self._check_head(table, head)
            lost = shortfall(read_loss(last.spent), read_loss(head.spent)) if head else NOTHING
            receipt = None if lost == NOTHING else secrets.token_hex(12)
            table.append(last, Act(kind=Kind.ACKNOWLEDGE, by=OWNER, body=_LOST, loss=lost, receipt=receipt))

    def close(self) -> None:
        """Let go of the file; a closed ledger stays closed."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _terms(self) -> Terms:
        with self._session.reading() as table:
            return table.terms()

    @contextmanager
    def _writing(self) -> Iterator[tuple[Table, Row]]:
        """Run a transaction on a ledger that was not rolled back; give its last row."""
        with self._session.writing() as table:
            self._check_head(table, self._session.place.head())
            yield table, table.last()

    def _check_head(self, table: Table, head: Head | None) -> None:
        named = table.at(head.seq) if head else None
        check_head(head, table.last(), named.hash if named else None)


def create_ledger(
    path: str | os.PathLike[str],
    *,
    name: str,
    budget: Budget,
    analysts: Mapping[str, Budget] | None = None,
    promise: str = "",
) -> SQLiteLedger:
    """Make a new ledger for the data set `name`, at a path where none was before.

    >>> from tempfile import mkdtemp
    >>> path = mkdtemp() + "/ledger.sqlite"
    >>> create_ledger(path, name="demo", budget=Budget(1)).close()
    >>> create_ledger(path, name="demo", budget=Budget(1))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    discreet.kernel.errors.LedgerError: ...ledger.sqlite: the file exists. Open it with open_ledger, ...
    """
    terms = Terms(name, budget, analysts, promise)
    place = File(path)
    with named(place):
        place.create()
    return _created(place, terms)


def memory_ledger(
    *, name: str, budget: Budget, analysts: Mapping[str, Budget] | None = None, promise: str = ""
) -> SQLiteLedger:
    """Make a ledger that ends with its process: for trying things out.

    >>> ledger = memory_ledger(name="demo", budget=Budget(1))
    >>> receipt = ledger.charge(Loss("1/4"), Event(mechanism="{}", sensitivity="{}", question="count"))
    >>> ledger.settle(receipt, b"42")
    >>> ledger.spent()
    Loss(epsilon=1/4, rho=1/32)
    >>> ledger.close()
    """
    return _created(Memory(), Terms(name, budget, analysts, promise))


def open_ledger(path: str | os.PathLike[str], *, name: str) -> SQLiteLedger:
    """Open the ledger of the data set `name`, which must exist.

    >>> open_ledger("nowhere.sqlite", name="demo")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    discreet.kernel.errors.LedgerError: ...nowhere.sqlite: there is no ledger here. Correct the path, ...
    """
    ledger = SQLiteLedger(File(path))
    try:
        with ledger._session.reading() as table:  # noqa: SLF001 - the constructor's other half
            older = table.is_older
        if older:
            with ledger._session.writing() as table:  # noqa: SLF001 - as above
                table.upgrade()
        with ledger._session.reading() as table:  # noqa: SLF001 - as above
            table.check_format()
            found = table.terms().name
    except BaseException:
        ledger.close()
        raise
    if found != name:
        ledger.close()
        raise PolicyError(f"name: the ledger {path} belongs to {found!r}, not {name!r}. Give each its own file.")
    return ledger


def _created(place: Place, terms: Terms) -> SQLiteLedger:
    ledger = SQLiteLedger(place)
    try:
        with ledger._session.writing() as table:  # noqa: SLF001 - the constructor's other half
            table.create()
            table.append(None, Act(kind=Kind.CREATE, by=OWNER, body=terms_text(terms)))
    except BaseException:
        ledger.close()
        raise
    return ledger


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
