"""Forecast the margin of a column before it is released, from its noise and from earlier noisy counts."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np

from discreet import postprocess, privacy
from discreet.estimate.estimators import CONFIDENCE, VarianceStatistic
from discreet.estimate.intervals import ReleaseNoise, additive
from discreet.estimate.planned_release import (
    Mean,
    Measure,
    NoisyCount,
    NoisySum,
    PlannedRelease,
    QueryPlan,
    Variance,
    centre_of,
    column_origins,
    estimate_measure,
    is_whole,
    noisy_sources,
    noisy_total,
    total_indices,
)
from discreet.kernel.errors import Refused
from discreet.kernel.mechanism import Laplace
from discreet.kernel.question import Question, SelectedGroups
from discreet.kernel.relation import MAX_SUM
from discreet.kernel.totals import SelectionWeight, Sum, max_abs_contribution
from discreet.pricing.allocation import NoiseType
from discreet.pricing.combined_release import total_columns
from discreet.pricing.release_history import ReleaseHistory
from discreet.privacy.tail_enclosures import tail_bounds
from discreet.query.column_pruning import prune_columns

HistoryLookup = Callable[[tuple[PlannedRelease, ...]], tuple[ReleaseHistory, ...]]
_TAIL_BITS = 200
_ANY_NOISE = Laplace(1)  # a placeholder where the noise does not matter


@dataclass(frozen=True, eq=False)
class ColumnForecast:
    """A column of an answer with plausible rows of totals; its margin is the widest over these rows."""

    name: str
    release_index: int
    release: PlannedRelease
    measure: Measure
    noise_type: NoiseType
    possible_totals: np.ndarray

    @property
    def total_indices(self) -> tuple[int, ...]:
        """The indices of the totals that it uses."""
        return total_indices(self.measure.estimator)

    def margin(self, noises: Mapping[int, ReleaseNoise]) -> float:
        """Return the 95 % margin with this noise; infinite if there would be no estimate."""
        all_noises = tuple(
            noises.get(index, next(iter(noises.values()))) for index in range(self.possible_totals.shape[1])
        )
        estimate = estimate_measure(self.release, self.measure.estimator, self.possible_totals, all_noises)
        widest = float(np.max(estimate.margins, initial=0.0))
        return math.inf if math.isnan(widest) else widest

    def meets(self, noises: Mapping[int, ReleaseNoise], target: Fraction) -> bool:
        """Return whether the margin is at most `target`; for a single total, by the exact tail of its noise."""
        if len(self.total_indices) > 1:
            return self.margin(noises) <= float(target)
        steps, noise = self.margin_in_steps(target), additive(noises[self.total_indices[0]])
        return steps >= 0 and 2 * tail_bounds(noise, steps + 1, _TAIL_BITS)[1] <= (1 - CONFIDENCE) * (1 << _TAIL_BITS)

    def margin_in_steps(self, target: Fraction) -> int:
        """Return a margin in steps of the single total, after rounding; negative if rounding alone exceeds it."""
        (index,) = self.total_indices
        step = _step_of(self.release, index)
        estimator = self.measure.estimator
        rounding = Fraction(step.denominator // 2, step.denominator) if is_whole(estimator) else Fraction(0)
        return math.floor((target - rounding) / step)


def forecast_column(
    plan: QueryPlan, histories: tuple[ReleaseHistory, ...], name: str, look_up: HistoryLookup
) -> ColumnForecast:
    """Return the forecast of a column; Refused if its margin cannot be known in advance."""
    origin = column_origins(plan)[name]
    if not isinstance(origin, postprocess.ColumnOrigin):
        raise Refused(
            f"margin: {name!r} is computed from noisy values, so its margin is not known in advance. Give margins for "
            "its aggregates as separate columns, or give epsilon."
        )
    ((release, measure),) = noisy_sources(plan, origin)
    if release.grouping_sets:
        raise Refused(
            f"margin: {name!r} has wider margins in subtotals than in groups. Give epsilon; explain() shows the margin "
            "of a group."
        )
    release_index = plan.releases.index(release)
    match measure.estimator:
        case NoisyCount() | NoisySum():
            rows = np.zeros((1, len(release.question.totals)), np.int64)
        case Mean() | Variance():
            rows = _plausible_totals(name, release, measure, histories[release_index], look_up)
        case _:
            raise Refused(
                f"margin: the margin of {name!r} depends on the distribution of the values and is not known in "
                "advance. Give epsilon; explain() shows what is known about it."
            )
    return ColumnForecast(name, release_index, release, measure, histories[release_index].noise_type, rows)


def _plausible_totals(
    name: str, release: PlannedRelease, measure: Measure, history: ReleaseHistory, look_up: HistoryLookup
) -> np.ndarray:
    """Return plausible totals of groups, conservative given public information."""
    estimator, indices = measure.estimator, total_indices(measure.estimator)
    assert isinstance(estimator, Mean | Variance)
    # Over several groups, a mean has another count than COUNT: one with a limit on the rows of each group.
    own_count = release.question.bounds.cap_rows and release.possible.groups != 1
    counting = measure.label if own_count else f"COUNT{measure.label[measure.label.find('(') :]}"
    if history.shareable and all(history.draws_of(index) for index in indices):
        return _totals_from_history(name, history, estimator)
    count = _smallest_count(release, estimator.count, history, look_up)
    if count is None:
        raise Refused(
            f"margin: the margin of {name!r} depends on the number of values per group, which is not known. Query "
            f"{counting} for the same groups first; even a rough answer allows the cost to be computed."
        )
    _check_count(name, count)
    return np.array(
        [_totals_of_group(release, estimator, count, *case) for case in _extreme_cases(release, estimator)], np.int64
    )


def margin_times_count(
    release: PlannedRelease, measure: Measure, noises: Sequence[ReleaseNoise]
) -> tuple[float, float]:
    """Return the margin of a mean or variance times the number of values in a large group, as smallest and largest.

    It is smallest for values in the middle of their range, and largest for values at its ends.
    """
    estimator, question = measure.estimator, release.question
    assert isinstance(estimator, Mean | Variance)
    largest = max(
        max_abs_contribution(question.totals[index]) << question.fraction_bits(question.totals[index])
        for index in total_indices(estimator)
    )
    count = float(max(1, min(question.relation.shape.max_rows, MAX_SUM // (8 * largest))))  # limited by 64 bits
    if isinstance(estimator, Variance):  # standard deviations follow from their variances
        measure = replace(measure, estimator=replace(estimator, statistic=VarianceStatistic.VAR_POP))
    rows = np.array(
        [_totals_of_group(release, estimator, count, *case) for case in _extreme_cases(release, estimator)], np.int64
    )
    margins = [
        ColumnForecast(
            "", 0, release, measure, type(additive(noises[estimator.count])), rows[place : place + 1]
        ).margin(dict(enumerate(noises)))
        for place in range(len(rows))
    ]
    return count * min(margins), count * max(margins)


def _extreme_cases(release: PlannedRelease, estimator: Mean | Variance) -> list[tuple[float, float]]:
    """Return the extreme cases of a group's values: (mean relative to the centre, variance)."""
    low, high = (float(end - _centre_of_total(release, estimator.total)) for end in (estimator.low, estimator.high))
    return list(product((low, 0.0, high), (0.0, (high - low) ** 2 / 4)))


def _totals_from_history(name: str, history: ReleaseHistory, estimator: Mean | Variance) -> np.ndarray:
    """Return the totals released earlier, scaled down to the lower end of the count's interval."""
    columns = {index: total_columns(history, index)[0] for index in total_indices(estimator)}
    values, noise = columns[estimator.count]
    _check_count(name, float(values.min() - privacy.margin(additive(noise), CONFIDENCE)))
    shrink = (values - privacy.margin(additive(noise), CONFIDENCE)) / values
    rows = np.zeros((len(values), len(history.fingerprints)), np.int64)
    for place, (column, _) in columns.items():
        rows[:, place] = np.rint(column * shrink)
    return rows


def _check_count(name: str, count: float) -> None:
    if not count > 0:
        raise Refused(
            f"margin: a group appears to have too few values for this margin of {name!r} at any epsilon. Count "
            "them more accurately, group more coarsely, or give epsilon."
        )


def _totals_of_group(
    release: PlannedRelease, estimator: Mean | Variance, count: float, offset: float, variance: float
) -> list[int]:
    """Return the totals of a group with this count, mean relative to the centre, and variance."""
    values = {estimator.count: count, estimator.total: count * offset}
    if isinstance(estimator, Variance):
        squares = release.question.totals[estimator.squares]
        assert isinstance(squares, Sum)
        values[estimator.squares] = count * (variance + offset**2 - float(squares.shift * squares.grid.step**2))
    return [
        round(values.get(index, 0.0) / float(_step_of(release, index))) for index in range(len(release.question.totals))
    ]


def _smallest_count(
    release: PlannedRelease, index: int, history: ReleaseHistory, look_up: HistoryLookup
) -> float | None:
    """Return a 95 % lower bound on the number of values in the smallest group, if counts were released."""
    if not (history.combinable and history.draws_of(index)):
        release, index = _count_only_release(release, index)
        (history,) = look_up((release,))
    if not history.draws_of(index):
        return None
    counts = [
        (values, privacy.margin(additive(noise), CONFIDENCE))
        for values, noise in total_columns(history, index)
        if len(values)
    ]
    least = min((int(values.min()) - margin for values, margin in counts), default=0)
    return float(least * _step_of(release, index))


def _count_only_release(release: PlannedRelease, index: int) -> tuple[PlannedRelease, int]:
    """Return a release of one count alone, as a query for it would be planned, and the index of the count."""
    question = release.question
    first = (SelectionWeight(),) if isinstance(question.groups, SelectedGroups) else ()
    totals = (*first, question.totals[index])
    count_question = prune_columns(Question(question.relation, question.by, question.groups, question.bounds, totals))
    return replace(release, question=count_question, measures=(), weights=()), len(first)


def _step_of(release: PlannedRelease, index: int) -> Fraction:
    zeros = np.zeros((1, len(release.question.totals)), np.int64)
    return noisy_total(release, index, zeros, (_ANY_NOISE,) * len(release.question.totals)).step


def _centre_of_total(release: PlannedRelease, index: int) -> Fraction:
    total = release.question.totals[index]
    return centre_of(total) if isinstance(total, Sum) else Fraction(0)
