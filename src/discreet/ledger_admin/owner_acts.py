"""What the owner did to a ledger: creation, changes of the terms, joins, moves and acknowledgements."""

from dataclasses import dataclass

from discreet.kernel.ledger.chain import Chain, LedgerRow, RowKind
from discreet.kernel.ledger.ledger import Ledger
from discreet.kernel.ledger.terms import Terms, read_loss, read_terms
from discreet.kernel.loss import Loss

_ACTS = tuple(kind for kind in RowKind if kind not in (RowKind.CHARGE, RowKind.SETTLE))
_WITH_TERMS = (RowKind.CREATE, RowKind.BUDGET, RowKind.JOIN)


@dataclass(frozen=True)
class OwnerAct:
    """A row that no query wrote; `terms` are those from then on, and `lost` is what a rollback had lost."""

    time: str
    kind: RowKind
    dataset: str
    terms: Terms | None
    lost: Loss


@dataclass(frozen=True)
class LedgerHistory:
    """The owner's acts, oldest first, and the number and hash of the last row."""

    acts: tuple[OwnerAct, ...]
    last_row: int
    last_hash: str


def read_history(ledger: Ledger) -> LedgerHistory:
    """Return the owner's acts in a ledger; LedgerError if a row was changed.

    >>> from discreet.ledger_sqlite import memory_ledger
    >>> from discreet.kernel.loss import Budget
    >>> history = read_history(memory_ledger(name="demo", budget=Budget(1)))
    >>> [act.kind.value for act in history.acts], history.last_row
    (['create'], 1)
    """
    with ledger.session.read_transaction() as table:
        rows = list(table.rows())
    last = Chain().extend(rows).last
    return LedgerHistory(tuple(_act(row) for row in rows if row.kind in _ACTS), last.seq, last.hash)


def has_row(ledger: Ledger, row: int, digest: str) -> bool:
    """Whether the ledger still has a row with this number and hash.

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
