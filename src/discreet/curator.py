"""The curator: a policy, the engine that holds the data, and the ledger. It pays, reads and releases."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self

from discreet import composing
from discreet.answer import Answer, Explanation
from discreet.engines.duckdb import DuckDB, Tuning
from discreet.engines.sources import Source
from discreet.kernel import release
from discreet.kernel.errors import Failed, PolicyError, Refused
from discreet.kernel.event import OWNER, canonical
from discreet.kernel.exact import Number
from discreet.kernel.ledger import Ledger, create_ledger, left, memory_ledger, open_ledger
from discreet.kernel.loss import Budget, Loss
from discreet.policy import Policy, check_same_promise
from discreet.sql import Plan, kernel_type, price_of, read, scan_of, split


class Spending(NamedTuple):
    """How much there is in all, how much is spent, and the largest loss that still fits."""

    total: Budget
    spent: Loss
    left: Loss


class Curator:
    """Stands between the data and those who ask. Made by `discreet.open`.

    >>> import discreet as dc, pyarrow as pa
    >>> visits = pa.table({"patient": [1, 1, 2, 3], "ward": ["A", "B", "A", "A"]})
    >>> policy = dc.policy.Policy.parse('''
    ...     [data]
    ...     name = "visits"
    ...     ledger = ":memory:"
    ...     [budget]
    ...     epsilon = 1.0
    ...     [tables.visits]
    ...     source = "visits"
    ...     unit = "patient"
    ...     groups = 1
    ...     rows = 2
    ...     [tables.visits.columns]
    ...     patient = { type = "integer" }
    ...     ward = { type = "text", in = ["A", "B"] }
    ... ''')
    >>> with dc.open(policy, data={"visits": visits}) as curator:
    ...     answer = curator.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon="1/2")
    ...     answer.to_arrow().column_names, curator.budget().left.epsilon
    (['ward', 'n'], Fraction(1, 2))
    """

    def __init__(self, policy: Policy, engine: DuckDB, ledger: Ledger) -> None:
        self.policy, self.ledger, self._engine = policy, ledger, engine
        self._catalog = release.Catalog(
            {name: scan_of(policy, name) for name, table in policy.tables.items() if not table.public},
            {name: engine.columns(name) for name, table in policy.tables.items() if table.public},
        )
        self._failed: set[str] = set()

    def ask(  # noqa: PLR0913 - each has a name, and most a default
        self,
        sql: str,
        *,
        by: str = OWNER,
        epsilon: Number | None = None,
        rho: Number | None = None,
        key: str | None = None,
        groups: int | None = None,
        rows: int | None = None,
    ) -> Answer:
        """Answer a question, for a price. The same `key` returns the same answer and is charged once."""
        plan = self._plan(sql, by, groups, rows)
        if plan.explain:
            raise Refused("EXPLAIN: it costs nothing and is no answer. Use explain() for it.")
        price = self._price(plan, by, epsilon, rho)
        asks = split(plan.parts, price)
        self._check_failures()
        released = self._release(asks, price, self._text(plan, price, asks), by, key)
        return composing.answer(plan, asks, released, price, self.policy)

    def explain(  # noqa: PLR0913 - as ask
        self,
        sql: str,
        *,
        by: str = OWNER,
        epsilon: Number | None = None,
        rho: Number | None = None,
        groups: int | None = None,
        rows: int | None = None,
    ) -> Explanation:
        """Tell what a question would cost and how exact its answer would be. It is free and reads no private data."""
        plan = self._plan(sql, by, groups, rows)
        price = self._price(plan, by, epsilon, rho)
        return composing.explanation(plan, split(plan.parts, price), price, self.policy)

    def budget(self, by: str | None = None) -> Spending:
        """Return how much there is, is spent and is left: of all, or of one analyst's own limit."""
        limits = self.ledger.analysts or {}
        if by is not None and by != OWNER and by not in limits:
            raise Refused(f"by: {by!r} may not ask about {self.policy.data.name!r}. The owner can list the name.")
        total = self.ledger.budget if by is None or by == OWNER else limits[by]
        spent = self.ledger.spent(None if by == OWNER else by)
        return Spending(total, spent, left(total, spent))

    def close(self) -> None:
        """Let go of the data and the ledger."""
        self._engine.close()
        self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _plan(self, sql: str, by: str, groups: int | None, rows: int | None) -> Plan:
        if by != OWNER and by not in self.policy.spending.analysts:
            raise Refused(f"by: {by!r} may not ask about {self.policy.data.name!r}. The owner can list the name.")
        return read(sql, self.policy, self._engine, by=by, groups=groups, rows=rows)

    def _price(self, plan: Plan, by: str, epsilon: Number | None, rho: Number | None) -> Loss:
        if epsilon is None and rho is None:
            analyst = self.policy.spending.analysts.get(by)
            epsilon = plan.options.epsilon or (analyst.each if analyst else None)
        return price_of(self.policy.budget, plan.parts, epsilon=epsilon, rho=rho)

    def _text(self, plan: Plan, price: Loss, asks: tuple[release.Ask, ...]) -> str:
        """Write the question as the ledger keeps it: what was asked, of which state of the data, in which limits."""
        limits = [[ask.question.limit.groups, ask.question.limit.rows] for ask in asks]
        paid = str(price.rho) if price.epsilon is None else str(price.epsilon)
        data = {"sql": plan.text, "version": self.policy.data.version, "limits": limits, "price": paid}
        return canonical(data)

    def _release(
        self, asks: tuple[release.Ask, ...], price: Loss, question: str, by: str, key: str | None
    ) -> release.Released:
        try:
            return release.ask(
                asks,
                price=price,
                catalog=self._catalog,
                engine=self._engine,
                ledger=self.ledger,
                question=question,
                by=by,
                key=key,
            )
        except Failed:
            self._failed |= {event.id for event in self.ledger.unsettled()}
            raise

    def _check_failures(self) -> None:
        """Refuse once so many questions failed that failing itself might tell something.

        What has no answer yet may still be under way in another process, but not for longer than the time limit.
        """
        late = datetime.now(UTC) - timedelta(seconds=self._engine.tuning.seconds + 60)
        failed = [
            event
            for event in self.ledger.unsettled()
            if event.id in self._failed or datetime.fromisoformat(event.time) < late
        ]
        if len(failed) >= self.policy.spending.failures:
            raise Refused(
                f"the data set {self.policy.data.name!r} has stopped after {len(failed)} failed questions. The owner "
                "can read the log, mend the cause, and acknowledge it."
            )


def open_curator(
    policy: str | PathLike[str] | Policy, *, data: Mapping[str, Any] | None = None, tuning: Tuning | None = None
) -> Curator:
    """Open the data of a policy: a file, or a Policy. `data` gives tables as frames instead of their sources.

    Tables may be pandas, polars or Arrow. The ledger is made if it is not there yet; `ledger = ":memory:"` ends
    with the process.

    >>> open_curator("nowhere.toml")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    discreet.kernel.errors.PolicyError: nowhere.toml: ...
    """
    declared = policy if isinstance(policy, Policy) else Policy.load(policy)
    if declared.data.engine != "duckdb":
        raise PolicyError(f"engine: {declared.data.engine!r} is not available yet. Use duckdb.")
    unknown = set(data or {}) - set(declared.tables)
    if unknown:
        raise PolicyError(f"data: the policy has no table {min(unknown)!r}. It has {', '.join(declared.tables)}.")
    places: dict[str, Any] = {**declared.sources(), **(data or {})}
    sources = {
        name: Source(places[name], {column.name: kernel_type(column.type) for column in table.columns.values()})
        for name, table in declared.tables.items()
    }
    engine = DuckDB(sources, timezone=declared.data.timezone, tuning=tuning or Tuning())
    try:
        ledger = _ledger(declared)
        return Curator(declared, engine, ledger)
    except BaseException:
        engine.close()
        raise


def _ledger(policy: Policy) -> Ledger:
    """Open the policy's ledger, or make it; what the owner changed in the policy is recorded there."""
    terms: dict[str, Any] = {"budget": policy.budget, "analysts": policy.analyst_budgets()}
    if policy.data.ledger == ":memory:":
        return memory_ledger(name=policy.data.name, promise=policy.fingerprint(), **terms)
    if not isinstance(policy.ledger, Path):
        raise PolicyError("ledger: PostgreSQL is not available yet. Use a file.")
    if not policy.ledger.exists():
        return create_ledger(policy.ledger, name=policy.data.name, promise=policy.fingerprint(), **terms)
    ledger = open_ledger(policy.ledger, name=policy.data.name)
    try:
        if ledger.promise:
            check_same_promise(ledger.promise, policy)
        known = (_limits(ledger.budget), {who: _limits(limit) for who, limit in (ledger.analysts or {}).items()})
        wanted = (_limits(policy.budget), {who: _limits(limit) for who, limit in policy.analyst_budgets().items()})
        if known != wanted or ledger.promise != policy.fingerprint():
            ledger.set_budget(policy.budget, analysts=policy.analyst_budgets(), promise=policy.fingerprint())
    except BaseException:
        ledger.close()
        raise
    return ledger


def _limits(budget: Budget) -> tuple[Any, ...]:
    return budget.epsilon, budget.delta, budget.discover
