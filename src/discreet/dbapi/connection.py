"""Connections, with the statements SET, RESET, SHOW and EXPLAIN."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from os import PathLike
from typing import Any, Protocol, Self, cast

import pyarrow as pa

from discreet.answer.model import Answer, Explanation
from discreet.curator.curator import Curator
from discreet.curator.open import open_curator
from discreet.dbapi.cursor import Cursor, Result
from discreet.dbapi.errors import InterfaceError, QuestionRefused, translate_errors
from discreet.dbapi.parameters import bind, refuse_bound_names
from discreet.dbapi.settings import (
    QuerySettings,
    SettingStatement,
    own_setting,
    parse_setting,
    read_cost,
    shown_value,
    split_command,
    unknown_setting,
    with_setting,
)
from discreet.kernel.event import OWNER
from discreet.kernel.loss import Budget
from discreet.kernel.numbers import Number
from discreet.policy import Policy
from discreet.pricing import Margins
from discreet.pricing.allocation import CostMissing
from discreet.pricing.remaining_budget import BudgetStatus
from discreet.query.syntax.parse import parse_query

_NO_COST = (
    "epsilon: there is no default. State the cost of an answer: SET epsilon = 0.1, or SET margin = 50, or "
    "connect(…, epsilon=0.1)."
)


@contextmanager
def _stating_missing_cost() -> Iterator[None]:
    """Say in SQL how a missing cost is given."""
    try:
        yield
    except CostMissing as missing:
        raise QuestionRefused(f"{_NO_COST} {missing.free}".rstrip()) from None


class QuerySource(Protocol):
    """A curator on a server (`discreet.remote`), which knows by its token who asks."""

    def ask(
        self, sql: str, *, epsilon: Number | None, rho: Number | None, margin: Margins | None, purpose: str | None
    ) -> Answer:
        """Answer a query."""

    def explain(self, sql: str, *, epsilon: Number | None, rho: Number | None, margin: Margins | None) -> Explanation:
        """Return what a query would cost."""

    def budget(self) -> BudgetStatus:
        """Return the budget of the person who asks."""


@dataclass(frozen=True)
class _Asker:
    """How queries are asked and explained for somebody, their budget, and the policy's cost of their queries."""

    ask: Callable[..., Answer]
    explain: Callable[..., Explanation]
    budget: Budget
    each: Fraction | None

    @classmethod
    def of(cls, source: Curator | QuerySource, by: str) -> Self:
        if not isinstance(source, Curator):
            return cls(source.ask, source.explain, source.budget().total, None)
        source.budget(by)  # refuses analysts without access
        analyst = source.policy.budget_entry.analysts.get(by)
        ask, explain = partial(source.ask, by=by), partial(source.explain, by=by)
        return cls(ask, explain, source.policy.budget, analyst.each if analyst else None)


def connect(
    policy: str | PathLike[str] | Policy | Curator | QuerySource, by: str = OWNER, epsilon: Number | None = None
) -> "Connection":
    """Connect to the data of a policy, to an open curator, which stays open, or to a server (PEP 249).

    On a server (`discreet.remote`), the token decides who asks, and not `by`.

    `epsilon` is the cost of a query that does not state one. Margins of error and the clipping bias are columns: n is
    followed by n_margin and, if clipping may make it too low, by n_bias and n_bias_low.

    >>> import discreet as dc, pyarrow as pa
    >>> visits = pa.table({"patient": [1, 1, 2], "ward": ["A", "B", "A"]})
    >>> declared = {"unit": "patient", "columns": {"ward": ["A", "B"]}, "groups": 2, "rows": 2}
    >>> with dc.open(visits, budget=1, ledger=":memory:", **declared) as curator:
    ...     with dc.connect(curator, epsilon="1/4") as connection:
    ...         cursor = connection.cursor()
    ...         _ = cursor.execute("SELECT COUNT(*) AS n FROM data WHERE ward = ?", ["A"])
    ...         [column[0] for column in cursor.description], len(cursor.fetchall()), cursor.answer.loss.epsilon
    (['n', 'n_margin', 'n_bias', 'n_bias_low'], 1, Fraction(1, 4))
    """
    with translate_errors():
        opened = open_curator(policy) if isinstance(policy, str | PathLike | Policy) else None
        try:
            source = cast("Curator | QuerySource", opened or policy)
            asker = _Asker.of(source, by)
            cost = None if epsilon is None else read_cost("epsilon", epsilon, asker.budget)
        except BaseException:
            if opened:
                opened.close()
            raise
    return Connection(source, asker, QuerySettings(epsilon=cost), opened)


class Connection:
    """A connection, created by `connect`. Threads may share it, with a cursor each; SET applies to all of them."""

    def __init__(
        self, curator: Curator | QuerySource, asker: _Asker, settings: QuerySettings, owned_curator: Curator | None
    ) -> None:
        self.curator: Any = curator
        self._asker, self.closed = asker, False
        self._initial, self._settings, self._owned_curator = settings, settings, owned_curator

    def cursor(self) -> Cursor:
        """Return a new cursor."""
        self._check_open()
        return Cursor(self)

    def commit(self) -> None:
        """Do nothing: queries change only the ledger, which is durable before an answer is returned."""
        self._check_open()

    def rollback(self) -> None:
        """Do nothing: charges are never refunded."""
        self._check_open()

    def close(self) -> None:
        """Close the connection, and the curator if the connection opened it."""
        self.closed = True
        if self._owned_curator is not None:
            self._owned_curator.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def execute_statement(self, operation: str, parameters: Sequence[Any] | Mapping[str, Any]) -> Result | None:
        """Run a statement for a cursor; return its result, or None if it has none."""
        self._check_open()
        if not isinstance(operation, str):
            raise QuestionRefused(f"operation: expected SQL as a string, not {type(operation).__name__}.")
        with translate_errors(), _stating_missing_cost():
            command, rest = split_command(operation)
            text = bind(rest, parameters)
            if command in ("SET", "RESET", "SHOW"):
                return self._run_setting(command, parse_setting(command, text))
            parsed = parse_query(text)
            refuse_bound_names(text, parsed.query, parameters)
            settings = self._settings.without_cost() if parsed.options.epsilon or parsed.within else self._settings
            epsilon, rho, margin = settings.epsilon, settings.rho, settings.margin
            if command == "EXPLAIN":
                explanation = self._asker.explain(text, epsilon=epsilon, rho=rho, margin=margin)
                return Result(pa.table({"explanation": explanation.details().splitlines()}))
            answer = self._asker.ask(text, epsilon=epsilon, rho=rho, margin=margin, purpose=settings.purpose)
            return Result(answer.with_margins(), answer, (answer.details(),) if settings.details else ())

    def _run_setting(self, command: str, statement: SettingStatement) -> Result | None:
        name = own_setting(statement.name)
        if name is None:
            raise unknown_setting(command, statement.name)
        if command == "SHOW":
            value = shown_value(self._settings, name, self._asker.each)
            return Result(pa.table({name: pa.array([value], pa.string())}))
        self._settings = with_setting(self._settings, self._initial, name, statement.value, self._asker.budget)
        return None

    def _check_open(self) -> None:
        if self.closed:
            raise InterfaceError("the connection is closed. Open a new one.")
