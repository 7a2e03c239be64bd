"""The curator: a policy, the engine that holds the data, and the ledger. It pays, reads and releases."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Self

from discreet import composing
from discreet.answer import Answer, Explanation
from discreet.engines.duckdb import DuckDB
from discreet.kernel import release
from discreet.kernel.errors import Failed, Refused
from discreet.kernel.event import OWNER, bounded_text, canonical
from discreet.kernel.exact import Number
from discreet.kernel.ledger import Ledger, left
from discreet.kernel.loss import Budget, Loss
from discreet.policy import Policy
from discreet.sql import Plan, largest_epsilon, price_of, read, scan_of, split


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
        if key is not None:
            _check_words(key=key)
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
        whose = None if by == OWNER else by
        if whose is not None:
            self._check_listed(whose)
        total, spent = (self.ledger.analysts or {}).get(whose or "", self.ledger.budget), self.ledger.spent(whose)
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
        _check_words(sql=sql, by=by)
        for name, limit in (("groups", groups), ("rows", rows)):
            if limit is not None and (type(limit) is not int or not 1 <= limit <= 1 << 42):
                raise Refused(f"{name}: a whole number from 1 to 2^42 says how many a unit may weigh.")
        if by != OWNER:
            self._check_listed(by)
        plan = read(sql, self.policy, self._engine, by=by, groups=groups, rows=rows)
        if plan.within is not None:
            raise Refused("WITHIN: a price by accuracy is not there yet. Give epsilon; explain() tells the margins.")
        return plan

    def _check_listed(self, by: str) -> None:
        if by not in self.policy.spending.analysts:
            raise Refused(f"by: {by!r} may not ask about {self.policy.data.name!r}. The owner can list the name.")

    def _price(self, plan: Plan, by: str, epsilon: Number | None, rho: Number | None) -> Loss:
        written, analyst = plan.options.epsilon, self.policy.spending.analysts.get(by)
        if written is not None and (epsilon is not None or rho is not None):
            raise Refused("OPTIONS: the price is given twice, in the query and beside it. Leave out one of them.")
        if epsilon is None and rho is None:
            epsilon = written or (analyst.each if analyst else None)
        return price_of(self.policy.budget, plan.parts, epsilon=epsilon, rho=rho, delta=plan.options.delta)

    def _text(self, plan: Plan, price: Loss, asks: tuple[release.Ask, ...]) -> str:
        """Write the question as the ledger keeps it: what was asked, of which state of the data, in which limits."""
        limits = [[ask.question.limit.groups, ask.question.limit.rows] for ask in asks]
        paid = str(price.rho) if price.epsilon is None else str(price.epsilon)
        return canonical({"sql": plan.text, "version": self.policy.data.version, "limits": limits, "price": paid})

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
        except Refused as refusal:
            raise Refused(f"{refusal}{self._room(price, by)}") from None
        except Failed:
            self._failed |= {event.id for event in self.ledger.unsettled()}
            raise

    def _room(self, price: Loss, by: str) -> str:
        """Say in epsilon what still fits, where the ledger counts in rho; nothing if the price is not the reason."""
        limits = [self.budget()] if by == OWNER else [self.budget(), self.budget(by)]
        if self.policy.budget.rho is None or all(limit.total.covers(limit.spent + price) for limit in limits):
            return ""
        most = min(largest_epsilon(self.policy.budget, limit.left) for limit in limits)
        return f" The largest epsilon that fits is {float(most):g}."

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


def _check_words(**words: str) -> None:
    """Refuse what is no text; the ledger could not keep it."""
    for name, text in words.items():
        try:
            bounded_text(text, name, longest=1_000_000 if name == "sql" else 200)
        except (TypeError, ValueError) as error:
            raise Refused(f"{error}.") from None
