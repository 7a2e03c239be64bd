"""Releases of queries: plans, charges, noisy totals and answers, for asking, publishing and advising alike."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType

from discreet import pricing
from discreet.answer.model import Answer
from discreet.curator import answer_builder
from discreet.curator.circuit_breaker import CircuitBreaker
from discreet.curator.plan_cache import PlanCache
from discreet.engines.column_usage import usage_of_questions
from discreet.engines.interface import Engine
from discreet.engines.unsupported import check_supported, unsupported_reason
from discreet.estimate.contribution_histogram import ChosenBounds
from discreet.estimate.planned_release import PlannedRelease, QueryPlan
from discreet.estimate.quantiles import numbers_per_group
from discreet.kernel import release
from discreet.kernel.errors import FAILED, Failed, LedgerError, Refused
from discreet.kernel.event import OWNER, Receipt, bounded_text
from discreet.kernel.expr import Value
from discreet.kernel.ledger import Ledger
from discreet.kernel.ledger.ledger import MAX_ANSWER_BYTES
from discreet.kernel.ledger.terms import OverBudget
from discreet.kernel.loss import Budget, Loss
from discreet.kernel.question import PublicGroups
from discreet.policy import Policy
from discreet.policy.catalog import catalog_of
from discreet.policy.declarations import AUTO, Bound
from discreet.pricing import AccuracyTarget, ReleaseHistory, ReleasePlan
from discreet.pricing.allocation import largest_epsilon
from discreet.pricing.automatic_bounds import Replan
from discreet.pricing.remaining_budget import BudgetLimit, RemainingBudget, shortage_text
from discreet.query.passes import plan_query
from discreet.query.relations.bound_sources import PublicTables

_LOG = logging.getLogger("discreet")
_NUMBER_BYTES = 22  # of a stored number: at most 20 characters, and what separates it from the next


class QueryReleases:
    """Plans queries on the data of a policy, charges and releases their totals, and builds the answers.

    A curator decides when; here is how. Nothing but `charge_and_release` reads private data.
    """

    def __init__(
        self,
        policy: Policy,
        engine: Engine,
        ledger: Ledger,
        adjust_plan: Callable[[QueryPlan], QueryPlan] = lambda plan: plan,
    ) -> None:
        self.policy, self.engine, self.ledger, self.frame_kind = policy, engine, ledger, Answer.frame_kind
        self._adjust_plan = adjust_plan
        self.catalog = catalog_of(policy, engine.columns, engine.location)
        self.circuit_breaker = CircuitBreaker(policy, ledger, engine.seconds)
        self._plans = PlanCache(engine)

    def plan_query(
        self,
        sql: str,
        by: str,
        groups: Bound | None,
        rows: Bound | None,
        chosen_bounds: Mapping[str, ChosenBounds] = MappingProxyType({}),
    ) -> QueryPlan:
        """Plan an analyst's query, without reading private data; repeated queries are planned once."""
        self.check_request(sql, by)
        for name, bound in (("groups", groups), ("rows", rows)):
            if bound not in (None, AUTO) and (type(bound) is not int or not 1 <= bound <= 1 << 42):
                raise Refused(f'{name}: the contribution bound must be an integer from 1 to 2^42, or "auto".')

        def make_plan(public_tables: PublicTables) -> QueryPlan:
            plan = plan_query(
                sql, self.policy, public_tables, by=by, groups=groups, rows=rows, chosen_bounds=chosen_bounds
            )
            _check_answer_size(plan)
            return self._adjust_plan(self._without_unsupported_reports(plan))

        return self._plans.plan((sql, by, groups, rows, *chosen_bounds.items()), make_plan)

    def _without_unsupported_reports(self, plan: QueryPlan) -> QueryPlan:
        """Refuse what the engine does not support; leave out histograms that would only report on clipping."""
        automatic = {release.name for release in plan.releases if release.automatic}
        releases = []
        for part in plan.releases:
            targets = {target.release for target in part.histogram.targets} if part.histogram else automatic
            if part.histogram is None or targets & automatic:
                check_supported(part.question, self.engine.dialect)
            elif unsupported_reason(part.question, self.engine.dialect):
                continue
            releases.append(part)
        return replace(plan, releases=tuple(releases))

    def with_chosen_bounds(
        self, plan: QueryPlan, request: Loss | dict[str, Fraction], replan: Replan
    ) -> QueryPlan | None:
        """Return a plan with its automatic bounds, chosen from the ledger; None if a histogram is missing there."""
        if not plan.pending:
            return plan
        chosen = pricing.choose_bounds(plan, request, self.release_history)
        return None if chosen is None else pricing.plan_with_bounds(replan, chosen)

    def remaining(self, by: str, dataset: str | None = None) -> RemainingBudget:
        """Return what remains for one more query of an analyst: all limits must cover it, so the smallest counts."""
        remainders = [limit.remaining for limit in self.limits(by, dataset)]
        rho, delta = min(remainder.rho for remainder in remainders), min(rest.delta for rest in remainders)
        pure_epsilon = min((rest.epsilon for rest in remainders if rest.epsilon is not None), default=None)
        epsilon = largest_epsilon(self.policy.budget, Loss.of_bounds(pure_epsilon, rho, delta))
        return RemainingBudget(epsilon, rho, delta)

    def check_request(self, sql: str, by: str) -> None:
        """Refuse texts that the ledger cannot store, and analysts without access."""
        check_texts(sql=sql, by=by)
        self.check_analyst(by)

    def check_analyst(self, by: str) -> None:
        """Refuse analysts without access."""
        if by != OWNER and by not in self.policy.budget_entry.analysts:
            raise Refused(
                f"by: {by!r} has no access to {self.policy.data.name!r}. "
                "The owner must add them under [budget.analysts]."
            )

    def plan_release(self, plan: QueryPlan, request: Loss | dict[str, Fraction]) -> tuple[AccuracyTarget, ReleasePlan]:
        """Plan what has to be drawn for a request, given the ledger."""
        target = pricing.accuracy_target(plan, request, self.policy, self.release_history)
        return target, pricing.plan_release(target.histories, target.allocation, target.delta)

    def release_history(
        self,
        parts: tuple[PlannedRelease, ...],
        until: str | None = None,
        fresh: release.ReleaseResult | None = None,
    ) -> tuple[ReleaseHistory, ...]:
        """Return what is in the ledger of some releases, up to a receipt, with what was just released."""
        state, kind = pricing.data_version(self.policy), pricing.noise_type_for(self.policy)
        return pricing.look_up_histories(
            parts,
            self.ledger,
            state,
            kind,
            source=self.catalog.source,
            until=until,
            just_released=fresh,
        )

    def build_answer(
        self, plan: QueryPlan, release_plan: ReleasePlan, history: tuple[ReleaseHistory, ...], by: str
    ) -> Answer:
        """Build the answer from the noisy totals in the ledger, whether they are new or cached."""
        plan, history = pricing.without_missing_histograms(plan, history)
        releases = list(map(pricing.combine_draws, history))
        answer = answer_builder.build_answer(plan, releases, release_plan, self.policy, self.budget_of(by))
        try:
            remaining = self.remaining(by).epsilon
        except LedgerError:  # the answer is charged and complete without it
            remaining = None
        return replace(answer, frame_kind=self.frame_kind, remaining=remaining)

    def budget_of(self, by: str) -> Budget:
        """Return the budget that an analyst's costs are a share of: their own, or that of the data set."""
        own = None if by == OWNER else (self.ledger.terms.analysts or {}).get(by)
        return self.policy.budget if own is None else own

    def charge_and_release(  # noqa: PLR0913, PLR0917 - the request and its plan
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
            self.check_budget(target, release_plan, by)
        with self.engine.prepare(usage_of_questions(request.question for request in release_plan.asks)) as reader:
            try:
                released = release.release_totals(
                    release_plan.asks,
                    cost=release_plan.marginal_cost,
                    catalog=self.catalog,
                    engine=reader,
                    ledger=self.ledger,
                    question=question,
                    version=pricing.data_version(self.policy),
                    by=by,
                    key=key,
                    prepaid=prepaid,
                )
            except OverBudget:
                self.check_budget(target, release_plan, by)  # another request may have spent the budget meanwhile
                raise
        try:
            return self.release_history(plan.releases, fresh=released)
        except LedgerError:  # after the charge there is only one failure message
            _LOG.exception("query %s: the answer is stored, but the ledger cannot be read", released.receipt.id)
        raise Failed(FAILED)

    def limits(self, by: str, dataset: str | None = None) -> list[BudgetLimit]:
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

    def check_budget(self, target: AccuracyTarget, release_plan: ReleasePlan, by: str) -> None:
        """Refuse a cost that exceeds the remaining budget, with the affordable cost as a hint."""
        cost = release_plan.marginal_cost
        remaining = self.remaining_if_exceeded(cost, by)
        if remaining is not None:
            affordable = pricing.affordable_note(target, cost, remaining, self.policy)
            raise Refused(f"{shortage_text(self.limits(by), cost)}{affordable}")

    def remaining_if_exceeded(self, cost: Loss, by: str) -> Loss | None:
        """Return the remaining budget if it does not cover a cost, else None."""
        limits = self.limits(by)
        if all(limit.covers(cost) for limit in limits):
            return None
        return min((limit.remaining for limit in limits), key=lambda rest: rest.rho)


def check_texts(**texts: str) -> None:
    """Refuse texts that the ledger cannot store."""
    for name, text in texts.items():
        try:
            bounded_text(text, name, max_length=1_000_000 if name == "sql" else 200)
        except (TypeError, ValueError) as error:
            raise Refused(f"{error}.") from None


def _check_answer_size(plan: QueryPlan) -> None:
    """Refuse a query with declared groups whose answer the ledger might not store, before it is charged."""
    size = 0.0
    for part in plan.releases:
        groups = part.question.groups
        if isinstance(groups, PublicGroups):
            texts = sum(_mean_text_length(domain) for domain in groups.domains)
            size += groups.key_count * (_NUMBER_BYTES * numbers_per_group(part) + texts)
    if size > MAX_ANSWER_BYTES:
        raise Refused(
            f"the answer could need {size / 1e6:,.0f} MB in the ledger, which stores at most "
            f"{MAX_ANSWER_BYTES / 1e6:,.0f} MB. Group by fewer or coarser keys, or ask for fewer aggregates."
        )


def _mean_text_length(domain: Sequence[Value]) -> float:
    return sum(len(json.dumps(value)) for value in domain if isinstance(value, str)) / len(domain)
