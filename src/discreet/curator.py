"""The curator: a policy, the engine that holds the data, and the ledger. It pays, reads and releases."""

import logging
from fractions import Fraction
from typing import NamedTuple, Self

from discreet import composing, pricing
from discreet.answer import Answer, Explanation
from discreet.engines.gaps import check_gaps
from discreet.engines.interface import Engine
from discreet.engines.usage import usage_of
from discreet.failures import GRACE, Failures
from discreet.fitting import E, fitted
from discreet.in_flight import InFlight
from discreet.kernel import release
from discreet.kernel.errors import FAILED, Failed, LedgerError, Refused
from discreet.kernel.event import OWNER, bounded_text
from discreet.kernel.exact import Number
from discreet.kernel.ledger import Ledger, left
from discreet.kernel.ledger.terms import Terms, check_price
from discreet.kernel.loss import Budget, Loss
from discreet.policy import Policy
from discreet.pricing import Due, Known, Margins, Offer, Wanted
from discreet.sql import Part, Plan, largest_epsilon, read, scan_of

_LOG = logging.getLogger("discreet")


class Remaining(NamedTuple):
    """What one more question may cost: an epsilon, or the rho that it buys; and the delta left for discovering groups.

    In a budget with a delta, epsilon is the largest for which the rho still fits, rounded down to three digits.
    """

    epsilon: Fraction
    rho: Fraction
    delta: Fraction


class Spending(NamedTuple):
    """A limit, how much of it is spent, and what remains for one more question under all limits that apply."""

    total: Budget
    spent: Loss
    left: Remaining


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

    def __init__(self, policy: Policy, engine: Engine, ledger: Ledger) -> None:
        self.policy, self.ledger, self._engine, self.kind = policy, ledger, engine, Answer.kind
        self._catalog = release.Catalog(
            {name: scan_of(policy, name) for name, table in policy.tables.items() if not table.public},
            {name: engine.columns(name) for name, table in policy.tables.items() if table.public},
        )
        self._failures = Failures(policy, ledger, engine.seconds)
        self._in_flight = InFlight(ledger, engine.seconds + GRACE)

    def ask(  # noqa: PLR0913 - each has a name, and most a default
        self,
        sql: str,
        *,
        by: str = OWNER,
        epsilon: Number | None = None,
        rho: Number | None = None,
        margin: Margins | None = None,
        key: str | None = None,
        groups: int | None = None,
        rows: int | None = None,
    ) -> Answer:
        """Answer a question, for a price or within a margin; what was answered before is not paid for again.

        The same `key` returns the same answer and is charged once. While the first question with it is being answered,
        others wait for its answer, up to the time limit.
        """
        plan = self._plan(sql, by, groups, rows)
        offer = pricing.offered(plan, Offer(epsilon, rho, margin), by, self.policy)
        if plan.explain:
            raise Refused("EXPLAIN: it costs nothing and is no answer. Use explain() for it.")
        said = pricing.said_of(plan, self.policy.data.version, pricing.in_words(offer))
        if key is None:
            return self._ask(plan, offer, said, by, None)
        _check_words(key=key)
        with self._in_flight.alone(by, key):
            if (receipt := pricing.with_key(self.ledger, by, key, said)) is not None:
                return self._answer(plan, Due(), self._recall(plan.parts, until=receipt))
            return self._ask(plan, offer, said, by, key)

    def explain(  # noqa: PLR0913 - as ask
        self,
        sql: str,
        *,
        by: str = OWNER,
        epsilon: Number | None = None,
        rho: Number | None = None,
        margin: Margins | None = None,
        groups: int | None = None,
        rows: int | None = None,
    ) -> Explanation:
        """Tell what a question would cost and how exact its answer would be. It is free and reads no private data."""
        plan = self._plan(sql, by, groups, rows)
        offer = pricing.offered(plan, Offer(epsilon, rho, margin), by, self.policy)
        want = pricing.wanted(plan, offer, self.policy, self._recall)
        owed = pricing.due(want.known, want.amounts, want.delta)
        too_dear = pricing.too_dear(want, self._room(owed.loss, by), self.policy)
        return composing.explanation(plan, owed, self.policy, self._engine.dialect, too_dear)

    def fit(self, estimator: E, sql: str, *, by: str = OWNER) -> E:
        """Fit a private estimator on the rows of a query, paid from this ledger; only Discreet's own see rows."""
        self._check_asker(sql, by)
        with self._failures.noted():
            return fitted(estimator, sql, by=by, policy=self.policy, engine=self._engine, ledger=self.ledger)

    def budget(self, by: str | None = None) -> Spending:
        """Return a limit, of all or of one analyst, what is spent of it, and what remains for one more question.

        An analyst's question must fit in both, so what remains is the smaller of the two.

        >>> import discreet as dc, pyarrow as pa
        >>> visits = pa.table({"patient": [1, 2, 3]})
        >>> with dc.open(
        ...     visits, unit="patient", budget=(1, "1e-6"), columns={}, groups=1, rows=1, ledger=":memory:"
        ... ) as curator:
        ...     before = curator.budget().left.epsilon
        ...     answer = curator.ask("SELECT COUNT(*) AS n FROM data", epsilon="1/2")
        ...     float(before), float(curator.budget().left.epsilon)
        (1.0, 0.844)
        """
        self._check_listed(by or OWNER)
        limits = self._limits(by or OWNER)
        rests = [left(total, spent) for total, spent in limits]
        rho, delta = min(rest.rho for rest in rests), min(rest.delta for rest in rests)
        pure = min((rest.epsilon for rest in rests if rest.epsilon is not None), default=None)
        epsilon = largest_epsilon(self.policy.budget, Loss.exactly(pure, rho, delta))
        return Spending(*limits[-1], Remaining(epsilon, rho, delta))

    def close(self) -> None:
        """Let go of the data and the ledger."""
        self._in_flight.close()
        self._engine.close()
        self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _plan(self, sql: str, by: str, groups: int | None, rows: int | None) -> Plan:
        self._check_asker(sql, by)
        for name, limit in (("groups", groups), ("rows", rows)):
            if limit is not None and (type(limit) is not int or not 1 <= limit <= 1 << 42):
                raise Refused(f"{name}: a whole number from 1 to 2^42 says how many a unit may weigh.")
        plan = read(sql, self.policy, self._engine, by=by, groups=groups, rows=rows)
        for part in plan.parts:
            check_gaps(part.question, self._engine.dialect)
        return plan

    def _check_asker(self, sql: str, by: str) -> None:
        _check_words(sql=sql, by=by)
        self._check_listed(by)

    def _check_listed(self, by: str) -> None:
        if by != OWNER and by not in self.policy.spending.analysts:
            raise Refused(f"by: {by!r} may not ask about {self.policy.data.name!r}. The owner can list the name.")

    def _ask(
        self, plan: Plan, offer: Loss | dict[str, Fraction], said: dict[str, object], by: str, key: str | None
    ) -> Answer:
        """Answer a question that was read: from the ledger, or for a charge."""
        want = pricing.wanted(plan, offer, self.policy, self._recall)
        owed = pricing.due(want.known, want.amounts, want.delta)
        if not owed.asks:
            return self._answer(plan, owed, want.known)
        with self._failures.noted():
            known = self._release(plan, want, owed, pricing.text_of(said, owed), by, key)
        return self._answer(plan, owed, known)

    def _recall(
        self, parts: tuple[Part, ...], until: str | None = None, fresh: release.Released | None = None
    ) -> tuple[Known, ...]:
        state, kind = pricing.state_of(self.policy), pricing.kind_for(self.policy)
        return pricing.recall(parts, self.ledger, state, kind, until=until, fresh=fresh)

    def _answer(self, plan: Plan, owed: Due, known: tuple[Known, ...]) -> Answer:
        """Return the answer that is in the ledger, whether it was paid for now or before."""
        return composing.answer(plan, list(map(pricing.table_of, known)), owed, self.policy).of_kind(self.kind)

    def _release(  # noqa: PLR0913, PLR0917 - who asks what, at which cost
        self, plan: Plan, want: Wanted, owed: Due, question: str, by: str, key: str | None
    ) -> tuple[Known, ...]:
        """Prepare the engine, charge, read and store; return all that is known of the question then."""
        self._check_room(want, owed, by)  # first: without a budget nobody learns whether the data can be reached
        with self._engine.prepare(usage_of(each.question for each in owed.asks)) as reader:
            try:
                released = release.ask(
                    owed.asks,
                    price=owed.loss,
                    catalog=self._catalog,
                    engine=reader,
                    ledger=self.ledger,
                    question=question,
                    version=pricing.state_of(self.policy),
                    by=by,
                    key=key,
                )
            except Refused:
                self._check_room(want, owed, by)  # others may have spent meanwhile
                raise
        try:
            return self._recall(plan.parts, fresh=released)
        except LedgerError:  # after the charge there is one text
            _LOG.exception("the answer to question %s is stored, and the ledger cannot be read", released.receipt.id)
        raise Failed(FAILED)

    def _limits(self, by: str) -> list[tuple[Budget, Loss]]:
        """Return the limits that apply to somebody, each with what is spent of it: of all, and the analyst's own."""
        limits = [(self.ledger.budget, self.ledger.spent())]
        own = None if by == OWNER else (self.ledger.analysts or {}).get(by)
        return limits if own is None else [*limits, (own, self.ledger.spent(by))]

    def _check_room(self, want: Wanted, owed: Due, by: str) -> None:
        """Refuse a price that does not fit, and say what does."""
        room = self._room(owed.loss, by)
        if room is not None:
            (total, spent), *own = self._limits(by)
            terms = Terms(self.policy.data.name, total, self.ledger.analysts)
            try:
                check_price(terms, by, owed.loss, spent, own[0][1] if own else spent)
            except Refused as refusal:
                raise Refused(f"{refusal}{pricing.what_fits(want, owed.loss, room, self.policy)}") from None

    def _room(self, price: Loss, by: str) -> Loss | None:
        """Return what still fits, if a price does not."""
        limits = self._limits(by)
        if all(total.covers(spent + price) for total, spent in limits):
            return None
        return min((left(total, spent) for total, spent in limits), key=lambda rest: rest.rho)


def _check_words(**words: str) -> None:
    """Refuse what is no text; the ledger could not keep it."""
    for name, text in words.items():
        try:
            bounded_text(text, name, longest=1_000_000 if name == "sql" else 200)
        except (TypeError, ValueError) as error:
            raise Refused(f"{error}.") from None
