"""Cost requests: an epsilon, a rho or margins; their accuracy target, and their record in the ledger."""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from discreet.estimate.planned_release import PlannedRelease, QueryPlan
from discreet.kernel.errors import Failed, Refused
from discreet.kernel.event import EventState, canonical_json
from discreet.kernel.ledger import UNKNOWN_OUTCOME, Ledger
from discreet.kernel.loss import ZERO_LOSS, Loss
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.numbers import Number
from discreet.policy import Policy
from discreet.policy.declarations import AUTO, Bound
from discreet.pricing.accuracy import Margins, allocation_for_margins, margins_within, read_margins, round_up_digits
from discreet.pricing.allocation import (
    Allocation,
    CostMissing,
    NoiseType,
    allocate_cost,
    largest_epsilon,
    requested_cost,
    selection_count,
    selection_delta,
)
from discreet.pricing.error_forecast import ColumnForecast, forecast_column
from discreet.pricing.release_history import ReleaseHistory
from discreet.pricing.release_plan import ReleasePlan, reusable_cost

HistoryLookup = Callable[[tuple[PlannedRelease, ...]], tuple[ReleaseHistory, ...]]


@dataclass(frozen=True)
class CostRequest:
    """The requested cost: an epsilon, a rho, or margins that determine it."""

    epsilon: Number | None = None
    rho: Number | None = None
    margin: Margins | None = None


@dataclass(frozen=True, eq=False)
class AccuracyTarget:
    """The total amount for each total, and the delta of each partition selection.

    `histories` are the earlier releases; `forecasts` are the columns whose margins were requested.
    """

    allocation: Allocation
    delta: Fraction
    histories: tuple[ReleaseHistory, ...]
    forecasts: tuple[ColumnForecast, ...] = ()


def noise_type_for(policy: Policy) -> NoiseType:
    """Return the noise type of a policy's budget."""
    return Laplace if policy.budget.rho is None else Gaussian


def data_version(policy: Policy) -> str:
    """Return the data version, with the time zone, which determines the meaning of stored times.

    In a population it also names the data set, so that no fingerprint is that of another data set.
    """
    version, timezone = policy.data.version_label, policy.data.timezone
    return canonical_json([version, timezone, policy.dataset]) if policy.dataset else f"{version} {timezone}"


def read_cost_request(
    plan: QueryPlan, request: CostRequest, by: str, policy: Policy, free: str = ""
) -> Loss | dict[str, Fraction]:
    """Return the cost given with the query or in its text, or the margins that determine it.

    `free` is what the refusal says besides if there is no cost: which queries need none.
    """
    sources = [name for name in ("epsilon", "rho", "margin") if getattr(request, name) is not None]
    sources += ["OPTIONS"] if plan.options.epsilon is not None else []
    sources += ["WITHIN"] if plan.within is not None else []
    if len(sources) > 1:
        raise Refused(f"{sources[-1]}: the cost is already given by {sources[0]}. Leave out one of them.")
    margin = request.margin if plan.within is None else plan.within
    if margin is not None:
        return read_margins(plan, margin)
    analyst = policy.budget_entry.analysts.get(by)
    written = plan.options.epsilon or (analyst.each if analyst and not sources else None)
    epsilon = request.epsilon if written is None else written
    if epsilon is None and request.rho is None:
        raise CostMissing(free)
    return requested_cost(policy.budget, plan.releases, epsilon=epsilon, rho=request.rho, delta=plan.options.delta)


def recorded_request(request: Loss | dict[str, Fraction]) -> object:
    """Return a cost request as recorded in the ledger."""
    if isinstance(request, dict):
        return {name: str(margin) for name, margin in request.items()}
    return str(request.rho if request.epsilon is None else request.epsilon)


def accuracy_target(
    plan: QueryPlan, request: Loss | dict[str, Fraction], policy: Policy, look_up: HistoryLookup
) -> AccuracyTarget:
    """Return the accuracy target of a request, given earlier releases."""
    histories, releases = _histories_of(plan, look_up), plan.releases
    delta = selection_delta(policy.budget, releases, plan.options.delta) / max(1, selection_count(releases))
    if isinstance(request, Loss):
        return AccuracyTarget(allocate_cost(releases, request), delta, histories)
    forecasts = tuple(forecast_column(plan, histories, name, look_up) for name in request)
    return AccuracyTarget(allocation_for_margins(plan, histories, forecasts, request), delta, histories, forecasts)


def _histories_of(plan: QueryPlan, look_up: HistoryLookup) -> tuple[ReleaseHistory, ...]:
    """Return the earlier releases; none of a question whose bounds are placeholders, because it is not asked."""
    return tuple(
        replace(history, draws=()) if history.release in plan.pending else history for history in look_up(plan.releases)
    )


def over_budget_note(target: AccuracyTarget, remaining: Loss | None, policy: Policy) -> str:
    """Return a note that the budget is insufficient, with what is affordable; empty if `remaining` is None."""
    if remaining is None:
        return ""
    pure = remaining.epsilon if policy.budget.rho is None else None
    fits = affordable_note(target, ZERO_LOSS, remaining, policy) if pure is None and not target.forecasts else ""
    return "Not enough budget left." + (f" The largest affordable epsilon is {float(pure):g}." if pure else fits)


def affordable_note(target: AccuracyTarget, cost: Loss, remaining: Loss, policy: Policy) -> str:
    """Return a note on what the remaining budget allows."""
    histories = target.histories
    if target.forecasts:
        amount = cost.rho if cost.epsilon is None else cost.epsilon
        left = (remaining.rho if cost.epsilon is None else remaining.epsilon) or Fraction(0)
        name = "rho" if cost.epsilon is None else "epsilon"
        note = f" This margin costs {name} {float(amount):.4g}."
        return note + " ".join(_smallest_margins(target, histories, left))
    if policy.budget.rho is None:
        return ""
    reusable = sum(
        (reusable_cost(history, index) for history in histories for index in range(len(history.fingerprints))),
        Fraction(0),
    )
    most = largest_epsilon(policy.budget, Loss(None, remaining.rho + reusable, remaining.delta))
    return f" The largest affordable epsilon is {float(most):g}."


def _smallest_margins(target: AccuracyTarget, histories: Sequence[ReleaseHistory], left: Fraction) -> Iterator[str]:
    margins = margins_within(histories, target.forecasts, target.allocation, left)
    fits = {name: margin for name, margin in margins.items() if math.isfinite(margin)}
    if len(fits) == len(margins):
        named = ", ".join(f"{name} ±{_format_margin(margin)}" for name, margin in fits.items())
        yield f" The smallest affordable margin is {named}."


def _format_margin(margin: float) -> str:
    return f"{float(round_up_digits(Fraction(margin), 4)) if margin else 0:.10g}"


def request_record(plan: QueryPlan, version: str, request: object) -> dict[str, object]:
    """Return the record of a request."""
    limits = [_requested_limits(release) for release in plan.answering]
    return {"sql": plan.sql, "version": version, "limits": limits, "price": request}


def _requested_limits(release: PlannedRelease) -> list[Bound]:
    bounds, automatic = release.question.bounds, release.automatic
    return [
        AUTO if automatic and automatic.groups else bounds.groups,
        AUTO if automatic and automatic.rows else bounds.rows,
    ]


def record_text(record: dict[str, object], plan: ReleasePlan) -> str:
    """Return the record of a request and of its release plan as JSON."""
    return canonical_json(record | plan.record)


def receipt_for_key(ledger: Ledger, by: str, key: str, record: dict[str, object]) -> str | None:
    """Return the receipt of an earlier request with this idempotency key; None if the key is new."""
    recorded = ledger.answers(keys=[(by, key)])
    if not recorded:
        return None
    ((event, _),) = recorded
    try:
        stored = json.loads(event.question)
        same = canonical_json({name: stored[name] for name in record}) == canonical_json(record)
    except (ValueError, KeyError, TypeError):
        same = False  # not written by this program
    if not same:
        raise Refused("key: this key was used for a different query. Use another key.")
    if event.state is not EventState.RELEASED:
        raise Failed(UNKNOWN_OUTCOME)
    return event.id
