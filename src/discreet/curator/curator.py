"""The curator: reserves budget, reads the data and releases differentially private answers."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from importlib import import_module
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from discreet import pricing
from discreet.answer.model import Answer, Explanation
from discreet.curator import answer_builder
from discreet.curator.circuit_breaker import GRACE_SECONDS, CircuitBreaker
from discreet.curator.fit import ColumnBounds, E, PrivateRows, check_summable, fit_on_query, open_rows
from discreet.curator.in_flight_locks import InFlightLocks
from discreet.engines.column_usage import usage_of_questions
from discreet.engines.interface import Engine
from discreet.engines.unsupported import check_supported, unsupported_reason
from discreet.estimate.contribution_histogram import ChosenBounds
from discreet.estimate.planned_release import PlannedRelease, QueryPlan
from discreet.kernel import release
from discreet.kernel.errors import FAILED, Failed, LedgerError, PolicyError, Refused
from discreet.kernel.event import OWNER, Event, Receipt, bounded_text
from discreet.kernel.ledger import Ledger
from discreet.kernel.ledger.terms import OverBudget
from discreet.kernel.loss import ZERO_LOSS, Budget, Loss
from discreet.kernel.numbers import Number
from discreet.kernel.relation import Relation
from discreet.policy import Policy
from discreet.policy.catalog import catalog_of
from discreet.policy.declarations import AUTO, Bound
from discreet.pricing import AccuracyTarget, CostRequest, Margins, ReleaseHistory, ReleasePlan
from discreet.pricing.allocation import largest_epsilon
from discreet.pricing.automatic_bounds import Replan
from discreet.pricing.remaining_budget import (
    BudgetLimit,
    BudgetStatus,
    RemainingBudget,
    remaining_text,
    shortage_text,
)
from discreet.query.free_query import read_public_rows
from discreet.query.passes import plan_query, run_reader

if TYPE_CHECKING:
    from discreet.advise.advice import Advice
    from discreet.advise.advice_plan import AdvicePlan
    from discreet.publish.plan import PublicationPlan
    from discreet.publish.publication import Release

_LOG = logging.getLogger("discreet")
Charge = tuple[Loss, Event, str | None]  # as Ledger.charge_together takes it
_MAX_PLANS = 64  # that are kept for repeated queries


@dataclass(frozen=True, eq=False)
class PreparedQuery:
    """A query of a publication: its plan, and the noise that it needs."""

    plan: QueryPlan
    target: AccuracyTarget
    release_plan: ReleasePlan


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
        self.policy, self.ledger, self._engine, self.frame_kind = policy, ledger, engine, Answer.frame_kind
        self._catalog = catalog_of(policy, engine.columns, engine.location)
        self._circuit_breaker = CircuitBreaker(policy, ledger, engine.seconds)
        self._in_flight_locks = InFlightLocks(ledger, engine.seconds + GRACE_SECONDS)
        self._plans: dict[tuple[object, ...], QueryPlan] = {}

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
    ) -> Answer:
        """Answer a query at a given cost or within a given margin of error; cached answers are not charged again.

        Requests with the same `key` get the same answer and are charged once. While a query is being answered, equal
        ones and those with its key wait for it, up to the time limit. Contribution bounds that are "auto" are chosen
        privately from a histogram, which is released first for a part of the cost if it is not in the ledger.

        A query that reads no private table (SHOW TABLES, DESCRIBE, information_schema, public tables, constants) needs
        no cost, and leaves no trace in the ledger. Without a cost, a query that is a roll-up of published tables is
        answered from them.
        """
        replan = partial(self._plan_query, sql, by, groups, rows)
        plan = replan()
        if plan.explain:
            raise Refused("EXPLAIN: ask() does not run EXPLAIN. Use explain(), which is free.")
        if plan.is_free:
            return self._answer_without_charge(plan)
        if (epsilon, rho, margin, plan.options.epsilon, plan.within) == (None,) * 5:
            derived = self._derived_answer(plan, by)
            if derived is not None:
                return derived
        request = pricing.read_cost_request(plan, CostRequest(epsilon, rho, margin), by, self.policy)
        request_record = pricing.request_record(plan, self.policy.data.version_label, pricing.recorded_request(request))
        if key is None:
            return self._answer_plan(plan, request, request_record, by, None, replan)
        _check_texts(key=key)
        with self._in_flight_locks.exclusive_key(by, key):
            if (receipt := pricing.receipt_for_key(self.ledger, by, key, request_record)) is not None:
                plan = self._with_chosen_bounds(plan, request, replan) or plan
                return self._build_answer(plan, ReleasePlan(), self._release_history(plan.releases, until=receipt), by)
            return self._answer_plan(plan, request, request_record, by, key, replan)

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
        replan = partial(self._plan_query, sql, by, groups, rows)
        plan = replan()
        if plan.is_free:
            return answer_builder.free_explanation()
        request = pricing.read_cost_request(plan, CostRequest(epsilon, rho, margin), by, self.policy)
        plan = self._with_chosen_bounds(plan, request, replan) or plan
        target, release_plan = self._plan_release(plan, request)
        over_budget_note = pricing.over_budget_note(
            target, self._remaining_if_exceeded(release_plan.marginal_cost, by), self.policy
        )
        return answer_builder.build_explanation(
            plan, release_plan, self._budget_of(by), self._engine.dialect, over_budget_note
        )

    def contribution_histograms(
        self, sql: str, *, by: str = OWNER, epsilon: Number | None = None, rho: Number | None = None
    ) -> pricing.ContributionEvidence:
        """Release the contribution histograms of a query without the query itself; stored ones are reused.

        Automatic contribution bounds of the query are then chosen from them, at no further charge.
        """
        plan = self._plan_query(sql, by, AUTO, AUTO)
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
            histories = self._release_history(histograms.releases)
            target, release_plan = pricing.plan_evenly(histories, request)
            if release_plan.asks:
                record = pricing.request_record(plan, self.policy.data.version_label, pricing.recorded_request(request))
                text = pricing.record_text(record | {"purpose": "contribution histogram"}, release_plan)
                with self._circuit_breaker.guard():
                    histories = self._charge_and_release(histograms, target, release_plan, text, by, None)
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
        from discreet.advise.advice_plan import plan_advice  # noqa: PLC0415 - queries start faster without
        from discreet.advise.give_advice import give_advice  # noqa: PLC0415

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
        from discreet.advise.advice_plan import plan_advice  # noqa: PLC0415 - queries start faster without
        from discreet.advise.give_advice import check_plan  # noqa: PLC0415

        plan = plan_advice(self.policy, table, by_columns, columns, epsilon, query_epsilon)
        check_plan(self, plan)
        return plan

    def plan(self, sql: str) -> QueryPlan:
        """Return the plan of a query of the owner's, without a cost; no private data is read."""
        return self._plan_query(sql, OWNER, None, None)

    def prepare(self, sql: str, request: CostRequest) -> PreparedQuery:
        """Plan a query of a publication, which charges its parts together before any data is read."""
        plan = self.plan(sql)
        if plan.pending:
            raise Refused(
                'groups, rows: a publication needs declared contribution bounds, and those of this query are "auto". '
                "Declare them in the policy or in OPTIONS; discreet advise proposes values."
            )
        cost = pricing.read_cost_request(plan, request, OWNER, self.policy)
        target, release_plan = self._plan_release(plan, cost)
        return PreparedQuery(plan, target, release_plan)

    def explain_prepared(self, query: PreparedQuery) -> Explanation:
        """Return the cost and the expected margins of a prepared query. This is free."""
        return answer_builder.build_explanation(
            query.plan, query.release_plan, self._budget_of(OWNER), self._engine.dialect, ""
        )

    def charge_of(self, query: PreparedQuery, record: str, key: str | None) -> Charge | None:
        """Return the charge of a prepared query; None if its answer is in the ledger already."""
        asks, version = query.release_plan.asks, pricing.data_version(self.policy)
        if not asks:
            return None
        with self._engine.prepare(usage_of_questions(request.question for request in asks)):
            pass  # refuses unreadable tables before anything is charged
        fingerprints = tuple(release.request_fingerprints(each, version) for each in asks)
        event = release.release_event(asks, fingerprints, record, OWNER)
        return query.release_plan.marginal_cost, event, key

    def answer_prepared(self, query: PreparedQuery, record: str, receipt: Receipt | None) -> Answer:
        """Answer a prepared query, which was charged under this receipt, or is answered from the ledger without one."""
        plan, release_plan = query.plan, query.release_plan
        if receipt is None:
            return self._build_answer(plan, release_plan, query.target.histories, OWNER)
        with self._circuit_breaker.guard():
            history = self._charge_and_release(plan, query.target, release_plan, record, OWNER, None, receipt)
        return self._build_answer(plan, release_plan, history, OWNER)

    def answer_released(self, query: PreparedQuery, receipt: str) -> Answer:
        """Return the stored answer of a prepared query."""
        history = self._release_history(query.plan.releases, until=receipt)
        return self._build_answer(query.plan, ReleasePlan(), history, OWNER)

    def limits(self) -> list[BudgetLimit]:
        """Return the limits of the owner's queries."""
        return self._limits(OWNER)

    @contextmanager
    def private_rows(
        self, relation: Relation, columns: tuple[str, ...], bounds: ColumnBounds, question: str
    ) -> Iterator[PrivateRows]:
        """Open the rows of a relation for the kernel's sums, within the circuit breaker; nothing else may read them."""
        self._catalog.check(relation)
        check_supported(relation, self._engine.dialect)
        check_summable(relation)
        request = (columns, bounds, self.ledger, OWNER, question, self.policy.data.protects)
        with self._circuit_breaker.guard(), open_rows(request, relation, columns, self._engine) as rows:
            yield rows

    def publish(
        self, plan: "PublicationPlan | str | PathLike[str]", out: "str | PathLike[str]", *, key: str | None = None
    ) -> "Release":
        """Publish the tables and synthetic rows of a plan in a folder, and charge all of it before reading data."""
        publication = import_module("discreet.publish.publication")  # a layer above; few curators publish
        release: Release = publication.publish(self, plan, out, key=key)
        return release

    def fit(self, estimator: E, sql: str, *, by: str = OWNER) -> E:
        """Fit one of `discreet.learn`'s estimators on the rows of a query, charged to this ledger."""
        self._check_request(sql, by)
        try:
            with self._circuit_breaker.guard():
                return fit_on_query(estimator, sql, by=by, policy=self.policy, engine=self._engine, ledger=self.ledger)
        except OverBudget as refusal:
            raise Refused(f"{refusal} {remaining_text(self._limits(by))}") from None

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
        self._check_analyst(by or OWNER)
        if dataset is not None and dataset not in self.datasets:
            raise PolicyError(f"dataset: {dataset!r} is not a data set of {self.policy.account!r}.")
        limits = self._limits(by or OWNER, dataset)
        remainders = [limit.remaining for limit in limits]
        rho, delta = min(remainder.rho for remainder in remainders), min(rest.delta for rest in remainders)
        pure_epsilon = min((rest.epsilon for rest in remainders if rest.epsilon is not None), default=None)
        epsilon = largest_epsilon(self.policy.budget, Loss.of_bounds(pure_epsilon, rho, delta))
        if dataset is not None:
            limit = self.ledger.terms.datasets[dataset].limit or self.ledger.terms.budget  # type: ignore[index]
            return BudgetStatus(limit, self.ledger.spent(dataset=dataset), RemainingBudget(epsilon, rho, delta))
        own = limits[0 if by in (None, OWNER) else -1]
        return BudgetStatus(own.budget, own.spent, RemainingBudget(epsilon, rho, delta))

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

    def _plan_query(
        self,
        sql: str,
        by: str,
        groups: Bound | None,
        rows: Bound | None,
        chosen_bounds: Mapping[str, ChosenBounds] = MappingProxyType({}),
    ) -> QueryPlan:
        self._check_request(sql, by)
        for name, bound in (("groups", groups), ("rows", rows)):
            if bound not in (None, AUTO) and (type(bound) is not int or not 1 <= bound <= 1 << 42):
                raise Refused(f'{name}: the contribution bound must be an integer from 1 to 2^42, or "auto".')
        request = (sql, by, groups, rows)
        if not chosen_bounds and (cached := self._plans.get(request)) is not None:
            return cached
        plan = plan_query(sql, self.policy, self._engine, by=by, groups=groups, rows=rows, chosen_bounds=chosen_bounds)
        plan = self._without_unsupported_reports(plan)
        # The rows of a public table may change; all else that a plan depends on stays the same.
        if not chosen_bounds and not self._catalog.public:
            if len(self._plans) >= _MAX_PLANS:
                self._plans.clear()
            self._plans[request] = plan
        return plan

    def _without_unsupported_reports(self, plan: QueryPlan) -> QueryPlan:
        """Refuse what the engine does not support; leave out histograms that would only report on clipping."""
        automatic = {release.name for release in plan.releases if release.automatic}
        releases = []
        for part in plan.releases:
            targets = {target.release for target in part.histogram.targets} if part.histogram else automatic
            if part.histogram is None or targets & automatic:
                check_supported(part.question, self._engine.dialect)
            elif unsupported_reason(part.question, self._engine.dialect):
                continue
            releases.append(part)
        return replace(plan, releases=tuple(releases))

    def _with_chosen_bounds(
        self, plan: QueryPlan, request: Loss | dict[str, Fraction], replan: Replan
    ) -> QueryPlan | None:
        """Return a plan with its automatic bounds, chosen from the ledger; None if a histogram is missing there."""
        if not plan.pending:
            return plan
        chosen = pricing.choose_bounds(plan, request, self._release_history)
        return None if chosen is None else pricing.plan_with_bounds(replan, chosen)

    def _check_request(self, sql: str, by: str) -> None:
        _check_texts(sql=sql, by=by)
        self._check_analyst(by)

    def _check_analyst(self, by: str) -> None:
        if by != OWNER and by not in self.policy.budget_entry.analysts:
            raise Refused(
                f"by: {by!r} has no access to {self.policy.data.name!r}. "
                "The owner must add them under [budget.analysts]."
            )

    def _answer_plan(  # noqa: PLR0913, PLR0917 - the request and its plan
        self,
        plan: QueryPlan,
        request: Loss | dict[str, Fraction],
        request_record: dict[str, object],
        by: str,
        key: str | None,
        replan: Replan,
    ) -> Answer:
        """Answer a planned query from the ledger if possible, and charge for what is missing.

        A charge waits until equal queries are answered, so that only the first of them pays.
        """
        bounded = self._with_chosen_bounds(plan, request, replan)
        if bounded is not None:
            target, release_plan = self._plan_release(bounded, request)
            if not release_plan.asks:
                return self._build_answer(bounded, release_plan, target.histories, by)
        version = pricing.data_version(self.policy)
        fingerprints = {name for part in plan.releases for name in pricing.known_fingerprints(part.question, version)}
        with self._in_flight_locks.exclusive_query(fingerprints):
            return self._charge_and_answer(plan, request, request_record, by, key, replan)

    def _plan_release(self, plan: QueryPlan, request: Loss | dict[str, Fraction]) -> tuple[AccuracyTarget, ReleasePlan]:
        """Plan what has to be drawn for a request, given the ledger."""
        target = pricing.accuracy_target(plan, request, self.policy, self._release_history)
        return target, pricing.plan_release(target.histories, target.allocation, target.delta)

    def _charge_and_answer(  # noqa: PLR0913, PLR0917 - the request and its plan
        self,
        plan: QueryPlan,
        request: Loss | dict[str, Fraction],
        request_record: dict[str, object],
        by: str,
        key: str | None,
        replan: Replan,
    ) -> Answer:
        """Charge for what is not in the ledger by now, and answer."""
        bounded, paid_before = self._with_chosen_bounds(plan, request, replan), ZERO_LOSS
        if bounded is None:
            paid_before = self._release_histograms(plan, request, request_record, by)
            bounded = self._with_chosen_bounds(plan, request, replan)
        if bounded is None:
            raise Failed(FAILED)  # the histogram is charged, but the ledger does not return it
        plan = bounded
        target, release_plan = self._plan_release(plan, request)
        if not release_plan.asks:
            release_plan = replace(release_plan, marginal_cost=paid_before)
            return self._build_answer(plan, release_plan, target.histories, by)
        with self._circuit_breaker.guard():
            history = self._charge_and_release(
                plan, target, release_plan, pricing.record_text(request_record, release_plan), by, key
            )
        release_plan = replace(release_plan, marginal_cost=paid_before + release_plan.marginal_cost)
        return self._build_answer(plan, release_plan, history, by)

    def _derived_answer(self, plan: QueryPlan, by: str) -> Answer | None:
        """Return an answer that follows from published tables, or None."""
        derived = import_module("discreet.publish.derived")  # a layer above
        answer: Answer | None = derived.derived_answer(self, plan, by)
        return answer and replace(answer, frame_kind=self.frame_kind)

    def _answer_without_charge(self, plan: QueryPlan) -> Answer:
        """Answer a query on public tables and the policy; whatever fails is a refusal, because nothing is charged."""
        assert plan.catalog is not None
        tables = dict(plan.catalog)
        for name, columns in plan.postprocess.tables:
            if name not in tables:
                types = self._catalog.public[name]  # an error for a private table, whatever the plan says
                read = partial(read_public_rows, self._engine, name, {column: types[column] for column in columns})
                tables[name] = run_reader(read)
        return replace(answer_builder.build_free_answer(plan, tables), frame_kind=self.frame_kind)

    def _release_histograms(
        self, plan: QueryPlan, request: Loss | dict[str, Fraction], request_record: dict[str, object], by: str
    ) -> Loss:
        """Release the missing histograms of automatic bounds, if the budget covers the whole query; return the cost."""
        target, whole = self._plan_release(plan, request)
        self._check_budget(target, whole, by)  # so that only a concurrent charge can refuse what follows
        missing = pricing.missing_histograms(plan, self._release_history)
        places = [plan.releases.index(release) for release in missing]
        histories = tuple(target.histories[place] for place in places)
        target = AccuracyTarget(tuple(target.allocation[place] for place in places), Fraction(0), histories)
        histogram_plan = pricing.plan_release(histories, target.allocation, target.delta)
        record = pricing.record_text(request_record | {"purpose": "contribution histogram"}, histogram_plan)
        with self._circuit_breaker.guard():
            self._charge_and_release(replace(plan, releases=missing), target, histogram_plan, record, by, None)
        return histogram_plan.marginal_cost

    def _release_history(
        self,
        parts: tuple[PlannedRelease, ...],
        until: str | None = None,
        fresh: release.ReleaseResult | None = None,
    ) -> tuple[ReleaseHistory, ...]:
        state, kind = pricing.data_version(self.policy), pricing.noise_type_for(self.policy)
        return pricing.look_up_histories(
            parts,
            self.ledger,
            state,
            kind,
            source=self._catalog.source,
            until=until,
            just_released=fresh,
        )

    def _build_answer(
        self, plan: QueryPlan, release_plan: ReleasePlan, history: tuple[ReleaseHistory, ...], by: str
    ) -> Answer:
        """Build the answer from the noisy totals in the ledger, whether they are new or cached."""
        plan, history = pricing.without_missing_histograms(plan, history)
        releases = list(map(pricing.combine_draws, history))
        answer = answer_builder.build_answer(plan, releases, release_plan, self.policy, self._budget_of(by))
        try:
            remaining = self.budget(by).remaining.epsilon
        except LedgerError:  # the answer is charged and complete without it
            remaining = None
        return replace(answer, frame_kind=self.frame_kind, remaining=remaining)

    def _budget_of(self, by: str) -> Budget:
        """Return the budget that an analyst's costs are a share of: their own, or that of the data set."""
        own = None if by == OWNER else (self.ledger.terms.analysts or {}).get(by)
        return self.policy.budget if own is None else own

    def _charge_and_release(  # noqa: PLR0913, PLR0917 - the request and its plan
        self,
        plan: QueryPlan,
        target: AccuracyTarget,
        release_plan: ReleasePlan,
        question: str,
        by: str,
        key: str | None,
        prepaid: Receipt | None = None,
    ) -> tuple[ReleaseHistory, ...]:
        """Prepare the engine, charge, read and store; return the query's release history, the new release included."""
        # First of all: without budget, nobody learns whether the data can be reached.
        if prepaid is None:
            self._check_budget(target, release_plan, by)
        with self._engine.prepare(usage_of_questions(request.question for request in release_plan.asks)) as reader:
            try:
                released = release.release_totals(
                    release_plan.asks,
                    cost=release_plan.marginal_cost,
                    catalog=self._catalog,
                    engine=reader,
                    ledger=self.ledger,
                    question=question,
                    version=pricing.data_version(self.policy),
                    by=by,
                    key=key,
                    prepaid=prepaid,
                )
            except OverBudget:
                self._check_budget(target, release_plan, by)  # another request may have spent the budget meanwhile
                raise
        try:
            return self._release_history(plan.releases, fresh=released)
        except LedgerError:  # after the charge there is only one failure message
            _LOG.exception("query %s: the answer is stored, but the ledger cannot be read", released.receipt.id)
        raise Failed(FAILED)

    def _limits(self, by: str, dataset: str | None = None) -> list[BudgetLimit]:
        """Return the limits of an analyst's queries: the total, that of a data set of a population, then their own."""
        terms, name = self.ledger.terms, self.policy.dataset if dataset is None else dataset
        limits = [BudgetLimit("in total", terms.budget, self.ledger.spent())]
        if terms.datasets and (limit := terms.datasets[name].limit):
            spent = self.ledger.spent(dataset=name) + self.ledger.spent(dataset="")
            limits.append(BudgetLimit(f"in {name}", limit, spent))
        analyst_budget = None if by == OWNER else (terms.analysts or {}).get(by)
        if analyst_budget is not None:
            limits.append(BudgetLimit(f"for {by}", analyst_budget, self.ledger.spent(by)))
        return limits

    def _check_budget(self, target: AccuracyTarget, release_plan: ReleasePlan, by: str) -> None:
        """Refuse a cost that exceeds the remaining budget, with the affordable cost as a hint."""
        cost = release_plan.marginal_cost
        remaining = self._remaining_if_exceeded(cost, by)
        if remaining is not None:
            affordable = pricing.affordable_note(target, cost, remaining, self.policy)
            raise Refused(f"{shortage_text(self._limits(by), cost)}{affordable}")

    def _remaining_if_exceeded(self, cost: Loss, by: str) -> Loss | None:
        """Return the remaining budget if it does not cover a cost, else None."""
        limits = self._limits(by)
        if all(limit.covers(cost) for limit in limits):
            return None
        return min((limit.remaining for limit in limits), key=lambda rest: rest.rho)


def _check_texts(**texts: str) -> None:
    """Refuse texts that the ledger cannot store."""
    for name, text in texts.items():
        try:
            bounded_text(text, name, max_length=1_000_000 if name == "sql" else 200)
        except (TypeError, ValueError) as error:
            raise Refused(f"{error}.") from None
