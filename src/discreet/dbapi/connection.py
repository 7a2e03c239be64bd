"""Connections with the statements SET, RESET, SHOW and EXPLAIN, and their cursors."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import islice
from os import PathLike
from typing import Any, Protocol, Self, cast

import pyarrow as pa

from discreet.answer.model import Answer, Explanation
from discreet.curator.curator import Curator
from discreet.curator.open import open_curator
from discreet.dbapi.errors import InterfaceError, NotSupportedError, QuestionRefused, Warning, translate_errors  # noqa: A004 - PEP 249's name
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
from discreet.dbapi.types import type_code
from discreet.kernel.event import OWNER
from discreet.kernel.loss import Budget
from discreet.kernel.numbers import Number
from discreet.policy import Policy
from discreet.pricing import Margins
from discreet.pricing.allocation import CostMissing
from discreet.pricing.remaining_budget import BudgetStatus
from discreet.query.syntax.parse import parse_query

Description = tuple[str, str, None, None, None, None, None]
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Result:
    """A table to fetch, the answer that it belongs to, if any, and what else the user asked to be told."""

    table: pa.Table
    answer: Answer | None = None
    messages: tuple[str, ...] = ()


class Cursor:
    """A cursor, created by `Connection.cursor`; `answer` is the last answer, with margins, noise, cost and receipt."""

    def __init__(self, connection: "Connection") -> None:
        self.connection = connection
        self.arraysize = 1
        self._closed = False
        self._result: Result | None = None
        self._rows: Iterator[Row] = iter(())

    @property
    def description(self) -> tuple[Description, ...] | None:
        """The name and type of each column; None if there is nothing to fetch."""
        if self._result is None:
            return None
        schema = self._result.table.schema
        return tuple((field.name, type_code(field.type), None, None, None, None, None) for field in schema)

    @property
    def rowcount(self) -> int:
        """The number of rows of the result; -1 if there is none."""
        return -1 if self._result is None else int(self._result.table.num_rows)

    @property
    def answer(self) -> Answer | None:
        """The last answer; None after SET, RESET, SHOW or EXPLAIN."""
        return None if self._result is None else self._result.answer

    @property
    def messages(self) -> list[tuple[type[Warning], str]]:
        """The details of the last answer, after SET details = on; an extension of PEP 249."""
        return [(Warning, text) for text in (self._result.messages if self._result else ())]

    def execute(self, operation: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> Self:
        """Run a query, which is charged; or SET, RESET or SHOW the cost; or EXPLAIN, which is free."""
        self._check_open()
        self._result, self._rows = None, iter(())
        self._result = self.connection.execute_statement(operation, parameters)
        if self._result is not None:
            columns = [column.to_pylist() for column in self._result.table.columns]
            self._rows = zip(*columns, strict=True)
        return self

    def executemany(self, operation: str, parameters: Sequence[Any]) -> None:
        """Raise NotSupportedError: each query has its own cost and answer."""
        del operation, parameters
        raise NotSupportedError("executemany is not supported: each query has its own cost. Call execute for each.")

    def fetchone(self) -> Row | None:
        """Return the next row; None after the last."""
        return next(self, None)

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """Return the next `size` rows, by default `arraysize`."""
        self._check_result()
        wanted = self.arraysize if size is None else size
        return list(islice(self._rows, max(0, wanted)))

    def fetchall(self) -> list[Row]:
        """Return all remaining rows."""
        self._check_result()
        return list(self._rows)

    def close(self) -> None:
        """Close the cursor and release its result."""
        self._closed, self._result, self._rows = True, None, iter(())

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Do nothing, as PEP 249 allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing, as PEP 249 allows."""

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        self._check_result()
        return next(self._rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed or self.connection.closed:
            raise InterfaceError("the cursor or its connection is closed. Open a new one.")

    def _check_result(self) -> None:
        self._check_open()
        if self._result is None:
            raise InterfaceError("there is no result to fetch. Run a query with execute first.")


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
