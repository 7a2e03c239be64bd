"""A curator on dummy data that follows from the policy alone: the columns of an answer, and practice for nothing."""

from dataclasses import replace
from fractions import Fraction
from threading import Lock

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

from discreet.answer.model import Answer
from discreet.curator.curator import Curator
from discreet.curator.open import open_curator
from discreet.policy import Policy
from discreet.policy.dummy_data.dummy_tables import dummy
from discreet.pricing.allocation import CostMissing
from discreet.server.requests import QueryRequest

_ROWS = 1000  # of each table of dummy data
_EPSILON = Fraction(10**5)  # the budget of a rehearsal, which protects nobody
_COST = Fraction(1)  # of a query that states none
_MAX_SHAPES = 512


class Rehearsal:
    """Answers queries on dummy data with a budget that does not matter; nothing is read but the policy.

    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "row", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> rehearsal = Rehearsal(policy)
    >>> rehearsal.shape("SELECT COUNT(*) AS n FROM visits", "owner").names
    ['n', 'n_margin']
    >>> rehearsal.close()
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._curator: Curator | None = None
        self._lock = Lock()
        self._shapes: dict[tuple[str, str], pa.Schema] = {}

    def ask(self, request: QueryRequest, by: str) -> Answer:
        """Answer a query on dummy data, whatever it costs; the numbers mean nothing."""
        with self._lock:
            curator = self._open()
            if curator.budget(by).remaining.epsilon < 1000:
                curator = self._open_again()
            try:
                return curator.ask(request.sql, **request.arguments(by))
            except CostMissing:
                return curator.ask(request.sql, **replace(request, epsilon=_COST).arguments(by))

    def shape(self, sql: str, by: str) -> pa.Schema:
        """Return the columns of the answer to a query, with those of its margins."""
        if (sql, by) not in self._shapes:
            schema = self.ask(QueryRequest(sql), by).with_margins().schema.remove_metadata()
            if len(self._shapes) >= _MAX_SHAPES:
                self._shapes.clear()
            self._shapes[sql, by] = schema
        return self._shapes[sql, by]

    def close(self) -> None:
        """Close the curator on dummy data."""
        with self._lock:
            if self._curator:
                self._curator.close()
                self._curator = None

    def _open(self) -> Curator:
        self._curator = self._curator or self._open_again()
        return self._curator

    def _open_again(self) -> Curator:
        if self._curator:
            self._curator.close()
        policy = rehearsal_policy(self._policy)
        self._curator = open_curator(policy, data=dummy(policy, _ROWS))
        return self._curator


def rehearsal_policy(policy: Policy) -> Policy:
    """Return the policy for dummy data: in memory, with a large budget of the same kind for everybody."""
    memory = {"ledger": ":memory:", "engine": "duckdb", "connection": None, "population": None}
    budget = policy.budget_entry
    analysts = {
        name: entry.model_copy(update={"epsilon": _EPSILON, "delta": None}) for name, entry in budget.analysts.items()
    }
    large = budget.model_copy(update={"epsilon": _EPSILON, "analysts": analysts, "dataset": None, "failures": 10**9})
    return replace(policy, data=policy.data.model_copy(update=memory), budget_entry=large)
