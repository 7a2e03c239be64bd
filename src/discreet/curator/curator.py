"""The curator: reserves budget, reads the data and releases differentially private answers."""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Self

from discreet import pricing
from discreet.answer.model import Answer, Explanation
from discreet.curator import answer_builder
from discreet.curator.circuit_breaker import GRACE_SECONDS
from discreet.curator.fit import E, fit_on_query
from discreet.curator.in_flight_locks import InFlightLocks
from discreet.curator.query_releases import QueryReleases, check_texts
from discreet.engines.interface import Engine
from discreet.estimate.planned_release import QueryPlan
from discreet.kernel.errors import FAILED, Failed, PolicyError, Refused
from discreet.kernel.event import OWNER
from discreet.kernel.ledger import Ledger
from discreet.kernel.ledger.terms import OverBudget
from discreet.kernel.loss import ZERO_LOSS, Loss
from discreet.kernel.numbers import Number
from discreet.policy import Policy
from discreet.policy.declarations import AUTO, Bound
from discreet.pricing import AccuracyTarget, CostRequest, Margins, ReleasePlan
from discreet.pricing.automatic_bounds import Replan
from discreet.pricing.remaining_budget import (
    BudgetStatus,
    remaining_text,
)
from discreet.query.free_query import read_public_rows
from discreet.query.passes import run_reader

if TYPE_CHECKING:
    from discreet.advise.advice import Advice
    from discreet.advise.advice_plan import AdvicePlan
    from discreet.publish.plan import PublicationPlan
    from discreet.publish.publication import Release

_LOG = logging.getLogger("discreet")


@dataclass(frozen=True)
class _Asked:
    """A planned query whose answer costs something: its cost or margins, its record in the ledger, and who asks."""

    plan: QueryPlan
    request: Loss | dict[str, Fraction]
    record: dict[str, object]
    by: str
    key: str | None
    replan: Replan
    purpose: str | None = None

    @property
    def charge_record(self) -> dict[str, object]:
        """What is recorded with a charge: the request, and what it is for."""
        return self.record if self.purpose is None else self.record | {"stated_purpose": self.purpose}


class Curator:
    """Answers queries on the data of a policy and charges its ledger. Created by `discreet.open`.

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
    ...     answer.to_arrow().column_names, curator.budget().remaining.epsilon
    (['ward', 'n'], Fraction(1, 2))
    """

    def __init__(self, policy: Policy, engine: Engine, ledger: Ledger) -> None:
        self.policy, self.ledger, self._engine = policy, ledger, engine
        self.releases = QueryReleases(policy, engine, ledger)
        self._in_flight_locks = InFlightLocks(ledger, engine.seconds + GRACE_SECONDS)

    def ask(  # noqa: PLR0913 - keyword-only, most with a default
        self,
        sql: str,
        *,
        by: str = OWNER,
        epsilon: Number | None = None,
        rho: Number | None = None,
        margin: Margins | None = None,
        key: str | None = None,
        groups: Bound | None = None,
        rows: Bound | None = None,
        purpose: str | None = None,
    ) -> Answer:
        """Answer a query at a given cost or within a given margin of error; cached answers are not charged again.

        Requests with the same `key` get the same answer and are charged once. While a query is being answered, equal
        ones and those with its key wait for it, up to the time limit. Contribution bounds that are "auto" are chosen
        privately from a histogram, which is released first for a part of the cost if it is not in the ledger.

        A query that reads no private table (SHOW TABLES, DESCRIBE, information_schema, public tables, constants) needs
        no cost, and leaves no trace in the ledger. Without a cost, a query that is a roll-up of published tables is
        answered from them. A stated `purpose` is recorded with the charge.
        """
        asked = self._read_request(sql, by, CostRequest(epsilon, rho, margin), key, (groups, rows))
        if isinstance(asked, Answer):
            return asked
        if purpose is not None:
            check_texts(purpose=purpose)
            asked = replace(asked, purpose=purpose)
        if key is None:
            return self._answer_plan(asked)
        with self._in_flight_locks.exclusive_key(by, key):
            return self._answer_of_key(asked, key) or self._answer_plan(asked)

    def stored_answer(  # noqa: PLR0913 - as ask
        self,
        sql: str,
        *,
        by: str = OWNER,
        epsilon: Number | None = None,
        rho: Number | None = None,
        margin: Margins | None = None,
        key: str | None = None,
        groups: Bound | None = None,
        rows: Bound | None = None,
    ) -> Answer | None:
        """Return what `ask` would answer without a charge, from the ledger or public tables; otherwise None.

        No private data is read, and nothing waits for a query that is being answered.

        >>> import discreet as dc, pyarrow as pa
        >>> visits, sql = pa.table({"patient": [1, 2, 3]}), "SELECT COUNT(*) AS n FROM data"
        >>> with dc.open(visits, unit="patient", budget=1, columns={}, groups=1, rows=1, ledger=":memory:") as curator:
        ...     before, answer = curator.stored_answer(sql, epsilon="1/2"), curator.ask(sql, epsilon="1/2")
        ...     before, curator.stored_answer(sql, epsilon="1/2").value == answer.value
        (None, True)
        """
        asked = self._read_request(sql, by, CostRequest(epsilon, rho, margin), key, (groups, rows))
        if isinstance(asked, Answer):
            return asked
        if key is not None:
            with suppress(Failed):  # it may still be running, which only the holder of its lock knows
                return self._answer_of_key(asked, key)
            return None
        return self._answer_from_ledger(asked)

    def _read_request(
        self, sql: str, by: str, cost: CostRequest, key: str | None, bounds: tuple[Bound | None, Bound | None]
    ) -> "Answer | _Asked":
        """Plan a query and read its cost; return its answer if that follows from public or published tables."""
        replan = partial(self.releases.plan_query, sql, by, *bounds)
        plan = replan()
        if plan.explain:
            raise Refused("EXPLAIN: ask() does not run EXPLAIN. Use explain(), which is free.")
        if plan.is_free:
            return self._answer_without_charge(plan)
        published = ""
        if key is None and cost == CostRequest() and (plan.options.epsilon, plan.within) == (None, None):
            derived = self._derived_answer(plan, by)
            if isinstance(derived, Answer):
                return derived
            published = derived
        request = pricing.read_cost_request(plan, cost, by, self.policy, published)
        record = pricing.request_record(plan, self.policy.data.version_label, pricing.recorded_request(request))
        if key is not None:
            check_texts(key=key)
        return _Asked(plan, request, record, by, key, replan)

    def _answer_of_key(self, asked: "_Asked", key: str) -> Answer | None:
        """Return the stored answer of an idempotency key; None if the key is new."""
        receipt = pricing.receipt_for_key(self.ledger, asked.by, key, asked.record)
        if receipt is None:
            return None
        plan = self.releases.with_chosen_bounds(asked.plan, asked.request, asked.replan) or asked.plan
        history = self.releases.release_history(plan.releases, until=receipt)
        return self.releases.build_answer(plan, ReleasePlan(), history, asked.by)

    def _answer_from_ledger(self, asked: "_Asked") -> Answer | None:
        """Return the answer if nothing is missing in the ledger."""
        bounded = self.releases.with_chosen_bounds(asked.plan, asked.request, asked.replan)
        if bounded is None:
            return None
        target, release_plan = self.releases.plan_release(bounded, asked.request)
        if release_plan.asks:
            return None
        return self.releases.build_answer(bounded, release_plan, target.histories, asked.by)

    def explain(  # noqa: PLR0913 - as ask
        self,
        sql: str,
        *,
        by: str = OWNER,
        epsilon: Number | None = None,
        rho: Number | None = None,
        margin: Margins | None = None,
        groups: Bound | None = None,
        rows: Bound | None = None,
    ) -> Explanation:
        """Return the cost and the expected margins of error of a query. This is free and reads no private data."""
        replan = partial(self.releases.plan_query, sql, by, groups, rows)
        plan = replan()
        if plan.is_free:
            return answer_builder.free_explanation()
        request = pricing.read_cost_request(plan, CostRequest(epsilon, rho, margin), by, self.policy)
        plan = self.releases.with_chosen_bounds(plan, request, replan) or plan
        target, release_plan = self.releases.plan_release(plan, request)
        over_budget_note = pricing.over_budget_note(
            target, self.releases.remaining_if_exceeded(release_plan.marginal_cost, by), self.policy
        )
        return answer_builder.build_explanation(
            plan, release_plan, self.releases.budget_of(by), self._engine.dialect, over_budget_note
        )

    def contribution_histograms(
        self, sql: str, *, by: str = OWNER, epsilon: Number | None = None, rho: Number | None = None
    ) -> pricing.ContributionEvidence:
        """Release the contribution histograms of a query without the query itself; stored ones are reused.

        Automatic contribution bounds of the query are then chosen from them, at no further charge.
        """
        plan = self.releases.plan_query(sql, by, AUTO, AUTO)
        if len(plan.pending) != 1:
            raise Refused("sql: contribution histograms need one SELECT whose contributions can be clipped.")
        histograms = replace(plan, releases=pricing.query_histograms(plan))
        request = pricing.read_cost_request(histograms, CostRequest(epsilon, rho), by, self.policy)
        if isinstance(request, dict):
            raise Refused("WITHIN: contribution histograms have no margin that can be requested. Give epsilon.")
        version = pricing.data_version(self.policy)
        fingerprints = {
            name for part in histograms.releases for name in pricing.known_fingerprints(part.question, version)
        }
        with self._in_flight_locks.exclusive_query(fingerprints):
            histories = self.releases.release_history(histograms.releases)
            target, release_plan = pricing.plan_evenly(histories, request)
            if release_plan.asks:
                record = pricing.request_record(plan, self.policy.data.version_label, pricing.recorded_request(request))
                text = pricing.record_text(record | {"purpose": "contribution histogram"}, release_plan)
                with self.releases.circuit_breaker.guard():
                    histories = self.releases.charge_and_release(histograms, target, release_plan, text, by, None)
        return pricing.contribution_evidence(plan.pending[0], histories, release_plan.marginal_cost)

    def advise(  # noqa: PLR0913 - keyword-only, most with a default
        self,
        table: str | None = None,
        *,
        epsilon: Number,
        by_columns: Sequence[str] = (),
        columns: Sequence[str] | None = None,
        query_epsilon: Number | None = None,
        progress: Callable[[str], None] = _LOG.info,
    ) -> "Advice":
        """Choose contribution bounds and ranges of columns from noisy histograms, charged to this ledger.

        Each of `by_columns` is a typical GROUP BY, such as "ward, month". By default ranges are chosen for all columns
        of numbers and times that have none. Bounds are chosen for queries at `query_epsilon`, by default `epsilon`.

        >>> import discreet as dc, pyarrow as pa
        >>> people = pa.table({"person": list(range(3000)), "age": [18 + number % 70 for number in range(3000)]})
        >>> columns = {"age": {"type": "integer"}}
        >>> with dc.open(people, unit="person", budget=4, columns=columns, ledger=":memory:") as curator:
        ...     advice = curator.advise(epsilon=2)
        ...     print(advice.ranges[0].column.domain.high >= 87, curator.budget().spent.epsilon)
        True 2
        """
        from discreet.advise.advice import give_advice  # noqa: PLC0415
        from discreet.advise.advice_plan import plan_advice  # noqa: PLC0415 - queries start faster without

        return give_advice(self, plan_advice(self.policy, table, by_columns, columns, epsilon, query_epsilon), progress)

    def plan_advice(
        self,
        table: str | None = None,
        *,
        epsilon: Number,
        by_columns: Sequence[str] = (),
        columns: Sequence[str] | None = None,
        query_epsilon: Number | None = None,
    ) -> "AdvicePlan":
        """Return what `advise` would release and charge. This is free and reads no private data."""
        from discreet.advise.advice import check_plan  # noqa: PLC0415
        from discreet.advise.advice_plan import plan_advice  # noqa: PLC0415 - queries start faster without

        plan = plan_advice(self.policy, table, by_columns, columns, epsilon, query_epsilon)
        check_plan(self, plan)
        return plan

    def exclusive(self, key: str) -> AbstractContextManager[None]:
        """Wait until no other publication with this key is running, here or elsewhere; refuse after the time limit."""
        return self._in_flight_locks.exclusive_key(OWNER, key)

    def publish(
        self, plan: "PublicationPlan | str | PathLike[str]", out: "str | PathLike[str]", *, key: str | None = None
    ) -> "Release":
        """Publish the tables and synthetic rows of a plan in a folder, and charge all of it before reading data."""
        publication = import_module("discreet.publish.publication")  # a layer above; few curators publish
        release: Release = publication.publish(self, plan, out, key=key)
        return release

    def fit(self, estimator: E, sql: str, *, by: str = OWNER) -> E:
        """Fit one of `discreet.learn`'s estimators on the rows of a query, charged to this ledger."""
        self.releases.check_request(sql, by)
        try:
            with self.releases.circuit_breaker.guard():
                return fit_on_query(estimator, sql, by=by, policy=self.policy, engine=self._engine, ledger=self.ledger)
        except OverBudget as refusal:
            raise Refused(f"{refusal} {remaining_text(self.releases.limits(by))}") from None

    def budget(self, by: str | None = None, *, dataset: str | None = None) -> BudgetStatus:
        """Return the total budget, or that of an analyst, what is spent, and what remains for one more query.

        All limits must cover a query, so what remains is the smallest. In a population, the total and the limits of
        analysts hold for all its data sets together; `dataset` names one of `curator.datasets` and returns its limit.

        >>> import discreet as dc, pyarrow as pa
        >>> visits = pa.table({"patient": [1, 2, 3]})
        >>> with dc.open(
        ...     visits, unit="patient", budget=(1, "1e-6"), columns={}, groups=1, rows=1, ledger=":memory:"
        ... ) as curator:
        ...     before = curator.budget().remaining.epsilon
        ...     answer = curator.ask("SELECT COUNT(*) AS n FROM data", epsilon="1/2")
        ...     float(before), float(curator.budget().remaining.epsilon)
        (1.0, 0.844)
        """
        self.releases.check_analyst(by or OWNER)
        if dataset is not None and dataset not in self.datasets:
            raise PolicyError(f"dataset: {dataset!r} is not a data set of {self.policy.account!r}.")
        remaining = self.releases.remaining(by or OWNER, dataset)
        if dataset is not None:
            limit = self.ledger.terms.datasets[dataset].limit or self.ledger.terms.budget  # type: ignore[index]
            return BudgetStatus(limit, self.ledger.spent(dataset=dataset), remaining)
        own = self.releases.limits(by or OWNER)[0 if by in (None, OWNER) else -1]
        return BudgetStatus(own.budget, own.spent, remaining)

    @property
    def datasets(self) -> tuple[str, ...]:
        """The names of the data sets of the population, sorted; empty without a population."""
        return tuple(self.ledger.terms.datasets or ())

    def close(self) -> None:
        """Close the engine and the ledger."""
        self._in_flight_locks.close()
        self._engine.close()
        self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer_plan(self, asked: "_Asked") -> Answer:
        """Answer a planned query from the ledger if possible, and charge for what is missing.

        A charge waits until equal queries are answered, so that only the first of them pays.
        """
        if (answer := self._answer_from_ledger(asked)) is not None:
            return answer
        version = pricing.data_version(self.policy)
        fingerprints = {
            name for part in asked.plan.releases for name in pricing.known_fingerprints(part.question, version)
        }
        with self._in_flight_locks.exclusive_query(fingerprints):
            return self._charge_and_answer(asked)

    def _charge_and_answer(self, asked: "_Asked") -> Answer:
        """Charge for what is not in the ledger by now, and answer."""
        plan, request, by = asked.plan, asked.request, asked.by
        bounded, paid_before = self.releases.with_chosen_bounds(plan, request, asked.replan), ZERO_LOSS
        if bounded is None:
            paid_before = self._release_histograms(plan, request, asked.charge_record, by)
            bounded = self.releases.with_chosen_bounds(plan, request, asked.replan)
        if bounded is None:
            raise Failed(FAILED)  # the histogram is charged, but the ledger does not return it
        plan = bounded
        target, release_plan = self.releases.plan_release(plan, request)
        if not release_plan.asks:
            release_plan = replace(release_plan, marginal_cost=paid_before)
            return self.releases.build_answer(plan, release_plan, target.histories, by)
        with self.releases.circuit_breaker.guard():
            text = pricing.record_text(asked.charge_record, release_plan)
            history = self.releases.charge_and_release(plan, target, release_plan, text, by, asked.key)
        release_plan = replace(release_plan, marginal_cost=paid_before + release_plan.marginal_cost)
        return self.releases.build_answer(plan, release_plan, history, by)

    def _derived_answer(self, plan: QueryPlan, by: str) -> Answer | str:
        """Return an answer that follows from published tables, or what was published of these rows."""
        derived = import_module("discreet.publish.derived")  # a layer above
        answer: Answer | None = derived.derived_answer(self, plan, by)
        if answer is None:
            return str(derived.published_tables(self, plan))
        return replace(answer, frame_kind=self.releases.frame_kind)

    def _answer_without_charge(self, plan: QueryPlan) -> Answer:
        """Answer a query on public tables and the policy; whatever fails is a refusal, because nothing is charged."""
        assert plan.catalog is not None
        tables = dict(plan.catalog)
        for name, columns in plan.postprocess.tables:
            if name not in tables:
                types = self.releases.catalog.public[name]  # an error for a private table, whatever the plan says
                read = partial(read_public_rows, self._engine, name, {column: types[column] for column in columns})
                tables[name] = run_reader(read)
        return replace(answer_builder.build_free_answer(plan, tables), frame_kind=self.releases.frame_kind)

    def _release_histograms(
        self, plan: QueryPlan, request: Loss | dict[str, Fraction], request_record: dict[str, object], by: str
    ) -> Loss:
        """Release the missing histograms of automatic bounds, if the budget covers the whole query; return the cost."""
        target, whole = self.releases.plan_release(plan, request)
        self.releases.check_budget(target, whole, by)  # so that only a concurrent charge can refuse what follows
        missing = pricing.missing_histograms(plan, self.releases.release_history)
        places = [plan.releases.index(release) for release in missing]
        histories = tuple(target.histories[place] for place in places)
        target = AccuracyTarget(tuple(target.allocation[place] for place in places), Fraction(0), histories)
        histogram_plan = pricing.plan_release(histories, target.allocation, target.delta)
        record = pricing.record_text(request_record | {"purpose": "contribution histogram"}, histogram_plan)
        with self.releases.circuit_breaker.guard():
            self.releases.charge_and_release(replace(plan, releases=missing), target, histogram_plan, record, by, None)
        return histogram_plan.marginal_cost
