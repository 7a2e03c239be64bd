"""The rows of a ledger: each carries the running totals and the hash of the one before."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from typing import NamedTuple, Self

from discreet.kernel.errors import DiscreetError, LedgerError
from discreet.kernel.event import OWNER, Event, State, canonical
from discreet.kernel.ledger.terms import (
    Terms,
    check_price,
    check_split,
    loss_text,
    read_loss,
    read_terms,
    recorded,
    terms_text,
)
from discreet.kernel.loss import NOTHING, Loss

START = "0" * 64
_HASH = 32  # bytes
RESTORE = ". Stop serving, and restore the ledger from a backup."
_FILE = "It is a file on the machine on which the move was made, and only that one can use it."


class Kind(StrEnum):
    """What a row records."""

    CREATE = "create"
    CHARGE = "charge"
    SETTLE = "settle"
    BUDGET = "budget"
    ACKNOWLEDGE = "acknowledge"
    MOVE = "move"
    ARRIVE = "arrive"


@dataclass(frozen=True, kw_only=True)
class Act:
    """Something that is about to be recorded."""

    kind: Kind
    by: str
    body: str
    loss: Loss = NOTHING
    receipt: str | None = None
    key: str | None = None


class Row(NamedTuple):
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
        return sha256(canonical(self[:-1]).encode()).hexdigest()


def row_after(last: Row | None, spent_by: Loss, act: Act) -> Row:
    """Make the row that records an act after the last one; `spent_by` is what its author spent before.

    Claim: the row's totals are those before it and the act's loss; no total falls.
    Proof: a loss is never negative, and recorded() never rounds down.
    Needs: recorded, Loss.__add__; that `last` and `spent_by` were read in the same transaction.
    Checked by: test_the_ledger_agrees_with_a_simple_model, test_refunds_are_stopped_by_triggers
    Seal: 14322aca43e1
    """
    spent = read_loss(last.spent) if last else NOTHING
    row = Row(
        seq=last.seq + 1 if last else 1,
        time=datetime.now(UTC).isoformat(timespec="milliseconds"),
        kind=act.kind.value,
        by=act.by,
        key=act.key,
        receipt=act.receipt,
        body=act.body,
        loss=loss_text(act.loss),
        spent=loss_text(recorded(spent + act.loss)),
        spent_by=loss_text(recorded(spent_by + act.loss)),
        previous=last.hash if last else START,
    )
    return row._replace(hash=row.digest())


def first_row(terms: Terms) -> Row:
    """Make the row that creates a ledger."""
    return row_after(None, NOTHING, Act(kind=Kind.CREATE, by=OWNER, body=terms_text(terms)))


def event_text(event: Event) -> str:
    """Write what the caller said about an event."""
    said = {"mechanism": event.mechanism, "question": event.question, "sensitivity": event.sensitivity}
    listed = {"topics": event.topics, "follows": event.follows}
    return canonical(said | {name: parts for name, parts in listed.items() if parts})


def event_of(row: Row, state: State) -> Event:
    """Read the event that a charge recorded."""
    said = json.loads(row.body)
    said |= {name: tuple(map(tuple, said[name])) for name in ("topics", "follows") if name in said}
    return Event(**said, by=row.by, id=row.receipt or "", time=row.time, state=state, loss=read_loss(row.loss))


def topics_in(body: str) -> list[str]:
    """Return the topics that a charge recorded, each once."""
    return list(dict.fromkeys(topic for part in json.loads(body).get("topics", ()) for topic in part if topic))


def departure(to: str, token: str) -> Act:
    """Say that the ledger goes on in another place, where the token is known.

    >>> departure("/srv/visits.sqlite", "5e1f").body
    '{"to":"/srv/visits.sqlite","token":"5e1f"}'
    """
    return Act(kind=Kind.MOVE, by=OWNER, body=canonical({"to": to, "token": token}))


def arrival(row: Row) -> Act:
    """Say that the ledger goes on here, after the row with which it left its earlier place.

    >>> arrival(row_after(None, NOTHING, departure("/srv/visits.sqlite", "5e1f"))).body
    '{"token":"5e1f"}'
    """
    return Act(kind=Kind.ARRIVE, by=OWNER, body=canonical({"token": json.loads(row.body)["token"]}))


def moved_to(row: Row) -> str | None:
    """Return where the ledger went, if this is the row with which it left.

    >>> moved_to(row_after(None, NOTHING, departure("/srv/visits.sqlite", "5e1f")))
    '/srv/visits.sqlite'
    """
    return str(json.loads(row.body)["to"]) if row.kind == Kind.MOVE else None


def gone(to: str) -> str:
    """Say where a ledger went, and what to do.

    >>> gone("/srv/visits.sqlite")  # doctest: +ELLIPSIS
    'The ledger was moved: write ledger = "/srv/visits.sqlite" into the policy. ...'
    """
    place = f"ledger = {json.dumps(to, ensure_ascii=False)}"
    more = _FILE if to.startswith("/") else "Add the user and the options that this server connects with."
    return f"The ledger was moved: write {place} into the policy. {more} If it was interrupted, give its command again."


@dataclass
class Chain:
    """The rows of a ledger that were read and linked so far: their hashes, what they amount to, and where each is.

    Whatever is looked up in a ledger is looked up here: the tables have no index that would have to be trusted.
    """

    last: Row | None = None
    terms: str = ""
    spent_by: dict[str, str] = field(default_factory=dict)
    charged: dict[str, tuple[int, str]] = field(default_factory=dict)  # receipt: its row, and by whom
    settled: dict[str, tuple[int, str]] = field(default_factory=dict)  # receipt: its row, and the answer's hash
    unsettled: dict[str, int] = field(default_factory=dict)  # receipt: its row, since the last acknowledgement
    keys: dict[tuple[str, str], int] = field(default_factory=dict)
    topics: dict[str, list[int]] = field(default_factory=dict)
    newest: dict[str, str] = field(default_factory=dict)
    _hashes: bytearray = field(default_factory=bytearray)

    @property
    def end(self) -> Row:
        """The last row."""
        if self.last is None:
            raise LedgerError("there are no rows: the ledger was not completely created")
        return self.last

    def spent_of(self, by: str) -> Loss:
        """Return what one analyst has spent."""
        return read_loss(self.spent_by[by]) if by in self.spent_by else NOTHING

    def hash_at(self, seq: int) -> str | None:
        """Return the hash of a row by its number; before the first row it is always the same."""
        end = _HASH * seq
        return START if seq == 0 else self._hashes[end - _HASH : end].hex() or None

    def add(self, row: Row) -> None:
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
        Seal: 5551e71f47da
        """
        problem = _link(self.last, row)
        try:
            if not problem:
                self._count(row)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            problem = f"cannot be read ({error})"
        if problem:
            raise LedgerError(f"row {row.seq} {problem}{RESTORE}")
        self.spent_by[row.by] = row.spent_by
        self._hashes += bytes.fromhex(row.hash)
        self.last = row

    def extended(self, rows: Iterable[Row]) -> Self:
        """Add rows one by one, and return the chain."""
        for row in rows:
            self.add(row)
        return self

    def _count(self, row: Row) -> None:
        receipt = row.receipt or ""
        if row.kind in (Kind.CREATE, Kind.BUDGET):
            self.terms = row.body
        elif row.kind == Kind.CHARGE:
            for topic in topics_in(row.body):
                self.topics.setdefault(topic, []).append(row.seq)
                self.newest[topic] = receipt
            self.charged[receipt] = row.seq, row.by
            self.unsettled[receipt] = row.seq
            if row.key is not None:
                self.keys[row.by, row.key] = row.seq
        elif row.kind == Kind.SETTLE:
            self.settled[receipt] = row.seq, json.loads(row.body)["sha256"]
            self.unsettled.pop(receipt, None)
        elif row.kind == Kind.ACKNOWLEDGE:
            self.newest.clear()  # what was lost may have followed any of them
            self.unsettled.clear()


def check_rows(rows: Iterable[Row]) -> Chain:
    """Recompute a whole chain; return what the answers must agree with.

    Claim: if nothing is raised, the rows are what row_after wrote, in order, none missing before the last;
        the totals are the sums of the losses, every charge fitted in the terms then in force, no key and no
        receipt was charged twice, no answer was stored without a charge or twice, whatever follows an earlier
        charge was the first to do so, with no acknowledgement in between, and nothing follows a move but its arrival.
    Proof: row by row, each of these is checked against what the rows before it amount to, which were checked in
        the same way; the links by Chain.add.
    Needs: Chain.add, check_price, recorded; the last row is vouched for by the head only.
    Checked by: test_any_changed_field_of_any_row_is_found, test_a_removed_row_is_found,
        test_nothing_follows_a_move_but_its_arrival
    Seal: cf5e15d9b044
    """
    chain = Chain()
    for row in rows:
        try:
            problem = _link(chain.last, row) or _problem(chain, row)
        except (DiscreetError, ValueError, TypeError, KeyError, AttributeError) as error:
            problem = f"cannot be read ({error})"
        if problem:
            raise LedgerError(f"row {row.seq} {problem}{RESTORE}")
        chain.add(row)
    if chain.last is None:
        raise LedgerError("there is no row 1: the ledger was not completely created")
    return chain


def _link(last: Row | None, row: Row) -> str | None:
    if row.seq != (last.seq + 1 if last else 1):
        return "does not follow: rows before it are missing"
    if row.previous != (last.hash if last else START):
        return "does not continue the row before it"
    if (row.kind == Kind.CREATE) != (last is None):
        return "is out of place: a ledger is created once, by its first row"
    if (row.kind == Kind.ARRIVE) != (last is not None and last.kind == Kind.MOVE):
        return "is out of place: the arrival follows the move, and nothing else does"
    return None


def _problem(chain: Chain, row: Row) -> str | None:
    """Say what is wrong with a row that is linked to those before it, if anything is."""
    loss = read_loss(row.loss)
    before = read_loss(chain.last.spent) if chain.last else NOTHING
    before_by = chain.spent_of(row.by)
    problem = _PROBLEMS[Kind(row.kind)](chain, row, loss)
    if not problem and row.kind == Kind.CHARGE:
        check_price(read_terms(chain.terms), row.by, loss, before, before_by)
    totals = [loss_text(recorded(total + loss)) for total in (before, before_by)]
    return problem or (None if [row.spent, row.spent_by] == totals else "has a wrong total")


def _terms_problem(chain: Chain, row: Row, loss: Loss) -> str | None:
    terms = read_terms(row.body)
    if chain.last:
        check_split(read_terms(chain.terms).budget, terms.budget, read_loss(chain.last.spent))
    return None if loss == NOTHING else "charges for an owner's act"


def _charge_problem(chain: Chain, row: Row, _loss: Loss) -> str | None:
    if not row.receipt or row.receipt in chain.charged:
        return "charges a receipt twice"
    if row.key is not None and (row.by, row.key) in chain.keys:
        return "charges a key twice"
    follows = json.loads(row.body).get("follows", ())
    if any(chain.newest.get(topic) != receipt for topic, receipt in follows):
        return "follows a charge that is not the newest of its topic"
    return None


def _settle_problem(chain: Chain, row: Row, loss: Loss) -> str | None:
    if row.receipt is None or chain.charged.get(row.receipt, (0, ""))[1] != row.by or loss != NOTHING:
        return "settles what was not charged"
    return "settles a receipt twice" if row.receipt in chain.settled else None


def _acknowledge_problem(_chain: Chain, _row: Row, _loss: Loss) -> str | None:
    return None  # it may charge anything: what was lost was spent already


def _move_problem(_chain: Chain, row: Row, loss: Loss) -> str | None:
    said = json.loads(row.body)
    if not isinstance(said["to"], str) or not isinstance(said["token"], str):
        return "does not say where the ledger went"
    return None if loss == NOTHING else "charges for an owner's act"


def _arrive_problem(chain: Chain, row: Row, loss: Loss) -> str | None:
    if row.body != arrival(chain.end).body:
        return "arrives with another token than the ledger left with"
    return None if loss == NOTHING else "charges for an owner's act"


_PROBLEMS = {
    Kind.CREATE: _terms_problem,
    Kind.BUDGET: _terms_problem,
    Kind.CHARGE: _charge_problem,
    Kind.SETTLE: _settle_problem,
    Kind.ACKNOWLEDGE: _acknowledge_problem,
    Kind.MOVE: _move_problem,
    Kind.ARRIVE: _arrive_problem,
}
