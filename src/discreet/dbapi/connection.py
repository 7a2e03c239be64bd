"""Connections, with the statements SET, RESET, SHOW and EXPLAIN."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from os import PathLike
from typing import Any, Protocol, Self, cast

import pyarrow as pa
from sqlglot import TokenType

from discreet.answer.model import Answer, Explanation
from discreet.curator.curator import Curator
from discreet.curator.open import open_curator
from discreet.dbapi.cursor import Cursor, Result
from discreet.dbapi.errors import InterfaceError, QuestionRefused, translate_errors
from discreet.dbapi.parameters import bind, refuse_bound_names
from discreet.kernel.event import OWNER
from discreet.kernel.loss import Budget
from discreet.kernel.numbers import Number, as_positive
from discreet.policy import Policy
from discreet.policy.problems import shorten
from discreet.pricing.allocation import CostMissing
from discreet.pricing.remaining_budget import BudgetStatus
from discreet.query.syntax.parse import check_text, parse_query, tokenise

_COMMANDS = ("EXPLAIN", "SET", "RESET", "SHOW")
_SETTINGS = ("epsilon", "rho")
_VALUES = (TokenType.NUMBER, TokenType.STRING, TokenType.SLASH)
_CATALOG_WORDS = ("TABLES", "COLUMNS")  # after SHOW: statements that the curator answers
_EXAMPLES = {"SET": "SET epsilon = 0.1", "RESET": "RESET epsilon", "SHOW": "SHOW epsilon"}


@dataclass(frozen=True)
class CostSetting:
    """The cost of a query that does not state its own; if neither is set, the policy's default applies."""

    epsilon: Fraction | None = None
    rho: Fraction | None = None


def split_command(text: str) -> tuple[str, str]:
    """Split off a leading command, replacing it by spaces so that positions in the rest stay the same.

    >>> split_command("explain SELECT 1"), split_command("SELECT 1")
    (('EXPLAIN', '        SELECT 1'), ('', 'SELECT 1'))
    """
    check_text(text)
    text = (
        text.replace("\ufeff", " ", 1) if text.startswith("\ufeff") else text
    )  # a byte order mark, as some editors write it
    first = next(iter(tokenise(text)), None)
    if first is None or text[first.start : first.end + 1].upper() not in _COMMANDS:
        return "", text
    command, rest = first.text.upper(), text[: first.start] + " " * len(first.text) + text[first.end + 1 :]
    if command == "SHOW" and any(token.text.upper() in _CATALOG_WORDS for token in tokenise(rest)[:1]):
        return "", text
    return command, rest


def parse_setting(command: str, rest: str) -> tuple[str, str | None]:
    """Return the setting after SET, RESET or SHOW, and its new value as text; None for DEFAULT or without a value."""
    tokens = [token for token in tokenise(rest) if token.token_type is not TokenType.SEMICOLON]
    name = tokens[0].text.lower() if tokens else ""
    if name not in _SETTINGS:
        raise QuestionRefused(
            f'{command}: unrecognized configuration parameter "{shorten(name)}". The parameters are epsilon and rho.'
        )
    values = tokens[2:] if command == "SET" and len(tokens) > 2 and tokens[1].text.upper() in ("=", "TO") else []
    if [token.token_type for token in values] == [TokenType.DEFAULT]:
        return name, None
    if bool(values) != (command == "SET") or len(tokens) != 1 + bool(values) + len(values):
        raise QuestionRefused(f"{command}: syntax error. Write {_EXAMPLES[command]}.")
    if any(token.token_type not in _VALUES for token in values):
        raise QuestionRefused(f"SET {name}: the value must be a number above 0. Write SET {name} = 0.1.")
    return name, "".join(token.text for token in values) if values else None


def cost_setting(name: str, value: object, budget: Budget) -> CostSetting:
    """Return the cost after SET; rho needs a budget with a delta."""
    if name == "rho" and budget.rho is None:
        raise QuestionRefused(
            "rho: the budget is pure (it has no delta), so the cost is in epsilon. Set epsilon instead."
        )
    try:
        cost = as_positive(value, name)
    except (TypeError, ValueError) as error:
        raise QuestionRefused(f"{error}.") from None
    return CostSetting(rho=cost) if name == "rho" else CostSetting(epsilon=cost)


_NO_COST = "epsilon: there is no default. State the cost of an answer: SET epsilon = 0.1, or connect(…, epsilon=0.1)."


@contextmanager
def _stating_missing_cost() -> Iterator[None]:
    """Say in SQL how a missing cost is given."""
    try:
        yield
    except CostMissing as missing:
        raise QuestionRefused(f"{_NO_COST} {missing.free}".rstrip()) from None


class QuerySource(Protocol):
    """A curator on a server (`discreet.remote`), which knows by its token who asks."""

    def ask(self, sql: str, *, epsilon: Number | None, rho: Number | None) -> Answer:
        """Answer a query."""

    def explain(self, sql: str, *, epsilon: Number | None, rho: Number | None) -> Explanation:
        """Return what a query would cost."""

    def budget(self) -> BudgetStatus:
        """Return the budget of the person who asks."""


@dataclass(frozen=True)
class _Asker:
    """How queries are asked and explained, for whom, with which budget, and their cost by default."""

    ask: Callable[..., Answer]
    explain: Callable[..., Explanation]
    by: str
    budget: Budget
    each: Fraction | None

    @classmethod
    def of(cls, source: Curator | QuerySource, by: str) -> Self:
        if not isinstance(source, Curator):
            return cls(source.ask, source.explain, by, source.budget().total, None)
        source.budget(by)  # refuses analysts without access
        analyst = source.policy.budget_entry.analysts.get(by)
        ask, explain = partial(source.ask, by=by), partial(source.explain, by=by)
        return cls(ask, explain, by, source.policy.budget, analyst.each if analyst else None)


def connect(
    policy: str | PathLike[str] | Policy | Curator | QuerySource, by: str = OWNER, epsilon: Number | None = None
) -> "Connection":
    """Connect to the data of a policy, to an open curator, which stays open, or to a server (PEP 249).

    `by` does not matter for a server, where `discreet.remote` asks in the name of its token's person.

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
            cost = CostSetting() if epsilon is None else cost_setting("epsilon", epsilon, asker.budget)
        except BaseException:
            if opened:
                opened.close()
            raise
    return Connection(source, asker, cost, opened)


class Connection:
    """A connection, created by `connect`. Threads may share it, with a cursor each; SET applies to all of them."""

    def __init__(
        self, curator: Curator | QuerySource, asker: _Asker, cost: CostSetting, owned_curator: Curator | None = None
    ) -> None:
        self.curator: Any = curator
        self.by, self.closed, self._asker = asker.by, False, asker
        self._initial_cost, self._cost, self._owned_curator = cost, cost, owned_curator

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
            match command:
                case "SET" | "RESET":
                    name, value = parse_setting(command, text)
                    is_reset = value is None
                    self._cost = self._initial_cost if is_reset else cost_setting(name, value, self._asker.budget)
                    return None
                case "SHOW":
                    return self._show(parse_setting(command, text)[0])
            parsed = parse_query(text)
            refuse_bound_names(text, parsed.query, parameters)
            cost = CostSetting() if parsed.options.epsilon or parsed.within else self._cost
            if command == "EXPLAIN":
                explanation = self._asker.explain(text, epsilon=cost.epsilon, rho=cost.rho)
                return Result(pa.table({"explanation": explanation.details().splitlines()}))
            answer = self._asker.ask(text, epsilon=cost.epsilon, rho=cost.rho)
            return Result(answer.with_margins(), answer)

    def _show(self, name: str) -> Result:
        """Return the cost that is set, or else the policy's default."""
        cost = self._cost if self._cost != CostSetting() else CostSetting(epsilon=self._asker.each)
        value = getattr(cost, name)
        return Result(pa.table({name: pa.array([None if value is None else str(value)], pa.string())}))

    def _check_open(self) -> None:
        if self.closed:
            raise InterfaceError("the connection is closed. Open a new one.")
