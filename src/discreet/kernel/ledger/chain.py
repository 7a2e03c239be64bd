"""The rows of a ledger: each carries the running totals and the hash of the one before."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from typing import NamedTuple

from discreet.kernel.errors import DiscreetError, LedgerError
from discreet.kernel.event import OWNER, Event, State, canonical
from discreet.kernel.ledger.terms import Terms, check_price, check_split, loss_text, read_loss, read_terms, recorded
from discreet.kernel.loss import NOTHING, Loss

START = "0" * 64
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
class _Replay:
    """What the rows read so far amount to."""

    last: Row | None = None
    terms: Terms | None = None
    spent: Loss = NOTHING
    spent_by: dict[str, Loss] = field(default_factory=dict)
    charged: dict[str, str] = field(default_factory=dict)
    settled: dict[str, tuple[int, str]] = field(default_factory=dict)
    keys: set[tuple[str, str]] = field(default_factory=set)
    topics: set[tuple[str, int]] = field(default_factory=set)
    newest: dict[str, str] = field(default_factory=dict)


class Checked(NamedTuple):
    """What a whole chain says: the row and the answer's hash of every settled receipt; topics and their rows."""

    settled: dict[str, tuple[int, str]]
    topics: set[tuple[str, int]]


def check_rows(rows: Iterable[Row]) -> Checked:
    """Recompute a whole chain; return what the other tables must agree with.

    Claim: if nothing is raised, the rows are what row_after wrote, in order, none missing before the last;
        the totals are the sums of the losses, every charge fitted in the terms then in force, no key and no
        receipt was charged twice, no answer was stored without a charge or twice, whatever follows an earlier
        charge was the first to do so, with no acknowledgement in between, and nothing follows a move but its arrival.
    Proof: row by row, each of these is checked against what the rows before it amount to; a row that was
        changed and hashed anew has another hash than the next row names (SHA-256 has no known collisions).
    Needs: check_price, recorded; that each row's own hash was checked when it was read (Table); the last row
        is vouched for by the head only.
    Checked by: test_any_changed_field_of_any_row_is_found, test_a_removed_row_is_found,
        test_nothing_follows_a_move_but_its_arrival
    Seal: c7a92e96ca3a
    """
    replay = _Replay()
    for row in rows:
        try:
            problem = _step(replay, row)
        except (DiscreetError, ValueError, TypeError, KeyError, AttributeError) as error:
            problem = f"cannot be read ({error})"
        if problem:
            raise LedgerError(f"row {row.seq} {problem}")
    if replay.last is None:
        raise LedgerError("there is no row 1: the ledger was not completely created")
    return Checked(replay.settled, replay.topics)


def _step(replay: _Replay, row: Row) -> str | None:
    """Check one row against those before it, then count it in; say what is wrong, if anything is."""
    problem = _link(replay.last, row)
    if problem:
        return problem
    loss = read_loss(row.loss)
    problem = _STEPS[Kind(row.kind)](replay, row, loss)
    if problem:
        return problem
    replay.spent = recorded(replay.spent + loss)
    replay.spent_by[row.by] = recorded(replay.spent_by.get(row.by, NOTHING) + loss)
    if row.spent != loss_text(replay.spent) or row.spent_by != loss_text(replay.spent_by[row.by]):
        return "has a wrong total"
    replay.last = row
    return None


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


def _step_terms(replay: _Replay, row: Row, loss: Loss) -> str | None:
    terms = read_terms(row.body)
    if replay.terms:
        check_split(replay.terms.budget, terms.budget, replay.spent)
    replay.terms = terms
    return None if loss == NOTHING else "charges for an owner's act"


def _step_charge(replay: _Replay, row: Row, loss: Loss) -> str | None:
    if not row.receipt or row.receipt in replay.charged:
        return "charges a receipt twice"
    if row.key is not None and (row.by, row.key) in replay.keys:
        return "charges a key twice"
    assert replay.terms is not None  # the first row created the ledger
    check_price(replay.terms, row.by, loss, replay.spent, replay.spent_by.get(row.by, NOTHING))
    for topic, receipt in json.loads(row.body).get("follows", ()):
        if replay.newest.get(topic) != receipt:
            return "follows a charge that is not the newest of its topic"
    for topic in topics_in(row.body):
        replay.newest[topic] = row.receipt
        replay.topics.add((topic, row.seq))
    replay.charged[row.receipt] = row.by
    if row.key is not None:
        replay.keys.add((row.by, row.key))
    return None


def _step_settle(replay: _Replay, row: Row, loss: Loss) -> str | None:
    if row.receipt is None or replay.charged.get(row.receipt) != row.by or loss != NOTHING:
        return "settles what was not charged"
    if row.receipt in replay.settled:
        return "settles a receipt twice"
    replay.settled[row.receipt] = row.seq, json.loads(row.body)["sha256"]
    return None


def _step_acknowledge(replay: _Replay, _row: Row, _loss: Loss) -> str | None:
    replay.newest.clear()  # what was lost may have followed any of them
    return None  # it may charge anything: what was lost was spent already


def _step_move(_replay: _Replay, row: Row, loss: Loss) -> str | None:
    said = json.loads(row.body)
    if not isinstance(said["to"], str) or not isinstance(said["token"], str):
        return "does not say where the ledger went"
    return None if loss == NOTHING else "charges for an owner's act"


def _step_arrive(replay: _Replay, row: Row, loss: Loss) -> str | None:
    assert replay.last is not None  # it is a move
    if row.body != arrival(replay.last).body:
        return "arrives with another token than the ledger left with"
    return None if loss == NOTHING else "charges for an owner's act"


_STEPS = {
    Kind.CREATE: _step_terms,
    Kind.BUDGET: _step_terms,
    Kind.CHARGE: _step_charge,
    Kind.SETTLE: _step_settle,
    Kind.ACKNOWLEDGE: _step_acknowledge,
    Kind.MOVE: _step_move,
    Kind.ARRIVE: _step_arrive,
}
