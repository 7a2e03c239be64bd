"""Everything in a ledger, read at one moment: its terms, what is spent, every charge, and the owner's acts."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from discreet.kernel.event import Event
from discreet.kernel.ledger.chain import Chain, LedgerRow, RowKind
from discreet.kernel.ledger.ledger import Ledger
from discreet.kernel.ledger.terms import Terms, read_loss, read_terms
from discreet.kernel.loss import Loss

_WITH_TERMS = (RowKind.CREATE, RowKind.BUDGET, RowKind.JOIN)


@dataclass(frozen=True)
class OwnerAct:
    """A change of the account by its owner; `terms` are those from then on, and `lost` is what a rollback had lost."""

    time: str
    kind: RowKind
    dataset: str
    terms: Terms | None
    lost: Loss


@dataclass(frozen=True)
class RecordedAct:
    """An act of the owner that concerns people rather than the account, such as issuing a token."""

    time: str
    details: Mapping[str, Any]

    def __str__(self) -> str:
        """Describe the act in words.

        >>> str(RecordedAct("2026-11-19T12:00:00Z", {"act": "token issued", "name": "ana", "role": "analyst"}))
        'token issued: name ana, role analyst'
        """
        rest = ", ".join(f"{name} {value}" for name, value in self.details.items() if name != "act")
        return f"{self.details.get('act', 'act')}: {rest}"


@dataclass(frozen=True)
class LedgerHistory:
    """The terms in force, the total spent, all charges and the owner's acts, oldest first, and the last row."""

    terms: Terms
    spent: Loss
    events: tuple[Event, ...]
    acts: tuple[OwnerAct, ...]
    recorded_acts: tuple[RecordedAct, ...]
    last_row: int
    last_hash: str


def read_history(ledger: Ledger, *, until: Callable[[LedgerRow], bool] = lambda _: False) -> LedgerHistory:
    """Read a ledger up to a row, or to its end, in one transaction; LedgerError if a row was changed.

    >>> from discreet.ledger_sqlite import memory_ledger
    >>> from discreet.kernel.loss import Budget
    >>> history = read_history(memory_ledger(name="demo", budget=Budget(1)))
    >>> [act.kind.value for act in history.acts], history.last_row
    (['create'], 1)
    """
    _ = ledger.terms  # which compares the rows with the checkpoint
    with ledger.session.read_transaction() as table:
        rows = list(takewhile(lambda row: not until(row), table.rows()))
    chain = Chain().extend(rows)
    charges = (row for row in rows if row.receipt and row.kind != RowKind.SETTLE)
    return LedgerHistory(
        terms=read_terms(chain.terms),
        spent=chain.spent(),
        events=tuple(chain.event_of(row.seq, row) for row in charges),
        acts=tuple(_act(row) for row in rows if row.kind not in (RowKind.CHARGE, RowKind.SETTLE, RowKind.ACT)),
        recorded_acts=tuple(RecordedAct(row.time, json.loads(row.body)) for row in rows if row.kind == RowKind.ACT),
        last_row=chain.last.seq,
        last_hash=chain.last.hash,
    )


def has_row(ledger: Ledger, row: int, digest: str) -> bool:
    """Whether a ledger still has a row with this number and hash.

    >>> from discreet.ledger_sqlite import memory_ledger
    >>> from discreet.kernel.loss import Budget
    >>> has_row(memory_ledger(name="demo", budget=Budget(1)), 1, "00" * 32)
    False
    """
    with ledger.session.read_transaction() as table:
        return Chain().extend(table.rows()).hash_at(row) == digest


def _act(row: LedgerRow) -> OwnerAct:
    terms = read_terms(row.body) if row.kind in _WITH_TERMS else None
    return OwnerAct(row.time, RowKind(row.kind), row.dataset, terms, read_loss(row.loss))
