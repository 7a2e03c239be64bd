"""Allocate a cost among the totals of a query, so that the weighted squared margins are smallest."""

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType

from discreet import privacy
from discreet.estimate.intervals import ReleaseNoise, additive
from discreet.estimate.planned_release import PlannedRelease
from discreet.estimate.quantiles import quantile_selection, selected_levels, tree_walks
from discreet.kernel.errors import Refused
from discreet.kernel.fingerprint import digest
from discreet.kernel.loss import Budget, Loss
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.numbers import Number, as_positive, round_down
from discreet.kernel.partition_selection import PartitionSelection, partition_threshold
from discreet.kernel.question import Question, SelectedGroups
from discreet.kernel.refinement import Refinement
from discreet.kernel.release import ReleaseRequest
from discreet.kernel.totals import HistogramTree
from discreet.privacy.calibration import gaussian_for, laplace_for, threshold_for
from discreet.privacy.conversion import conversion_delta

Allocation = tuple[tuple[Fraction, ...], ...]  # an epsilon or a rho for each total of each release
NoiseType = type[Laplace] | type[Gaussian]

SELECTION_DELTA_SHARE = Fraction(1, 100)  # of the delta reserved for partition selection, per query
# The first round of partition selection shows popular keys, for which little is enough; the second has the rest.
FIRST_ROUND_SHARE = Fraction(1, 16)
_NO_SUCH_NOISE = (
    "epsilon: the cost is too small or too large to compute noise for it. Choose an epsilon between 1e-9 and 1000."
)
_SHARE_UNITS = 1 << 30  # shares are multiples of 1 / this


class CostMissing(Refused):
    """Neither the query nor the call nor the policy states a cost."""

    def __init__(self, free: str = "") -> None:
        """`free` says which queries need none."""
        self.free = free
        text = "epsilon: the cost of the answer is missing; there is no default. Give one, such as 0.1, or margin=50."
        super().__init__(f"{text} {free}".rstrip())


def requested_cost(
    budget: Budget,
    releases: tuple[PlannedRelease, ...],
    *,
    epsilon: Number | None,
    rho: Number | None = None,
    delta: Fraction | None = None,
) -> Loss:
    """Return the cost of a query for an epsilon or a rho, with the delta of partition selection."""
    if epsilon is not None and rho is not None:
        raise Refused("epsilon: epsilon and rho are both given. Give one of them.")
    if rho is not None and budget.rho is None:
        raise Refused("rho: the budget is pure epsilon-DP. Give epsilon instead.")
    try:
        cost = Loss(None, as_positive(rho, "rho")) if rho is not None else privacy.cost_of(budget, epsilon)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise Refused(f"{error}.") from None
    return Loss(cost.epsilon, cost.rho, selection_delta(budget, releases, delta))


def selection_delta(budget: Budget, releases: tuple[PlannedRelease, ...], delta: Fraction | None = None) -> Fraction:
    """Return the delta of partition selection: 1 % of the delta reserved for it, unless the query gives one."""
    if not selection_count(releases):
        return Fraction(0)
    return budget.discover * SELECTION_DELTA_SHARE if delta is None else delta


def noise_type_of(cost: Loss) -> NoiseType:
    """Return the noise for a cost: Laplace for an epsilon, Gaussian for a rho."""
    return Gaussian if cost.epsilon is None else Laplace


def selection_count(releases: Iterable[PlannedRelease]) -> int:
    """Return the number of releases that use partition selection."""
    return sum(isinstance(release.question.groups, SelectedGroups) for release in releases)


def allocate_cost(releases: tuple[PlannedRelease, ...], cost: Loss) -> Allocation:
    """Return the epsilon or rho of each total of each release."""
    total = cost.rho if cost.epsilon is None else cost.epsilon
    return tuple(tuple(total * share for share in shares) for shares in cost_shares(releases, noise_type_of(cost)))


def cost_shares(releases: tuple[PlannedRelease, ...], noise_type: NoiseType) -> Allocation:
    """Return each total's share of the cost; contribution histograms have a fixed share.

    For weights w of the squared margins, Σ w·margin² is smallest if the shares of a rho are proportional to the square
    root of w, and the shares of an epsilon to its cube root.
    """
    histograms = [release.histogram for release in releases if release.histogram]
    fixed_shares = [histogram.share / len(histograms) for histogram in histograms]
    power = 1 / 3 if noise_type is Laplace else 1 / 2
    answering = tuple(release for release in releases if not release.histogram)
    rest = iter(
        _normalised_shares(
            [float(weight) ** power for release in answering for weight in release.weights],
            _total_fingerprints(answering),
        )
    )
    fixed = iter(fixed_shares)
    return tuple(
        (next(fixed),) if release.histogram else tuple((1 - sum(fixed_shares)) * next(rest) for _ in release.weights)
        for release in releases
    )


def noise_for(release: PlannedRelease, index: int, amount: Fraction, noise_type: NoiseType) -> ReleaseNoise:
    """Return the mechanism of a total for an epsilon (Laplace noise) or a rho (Gaussian noise).

    A selection of k quantiles costs 4·k times the epsilon, or 2·k times the rho, of noise of its scale.
    """
    total, levels = release.question.totals[index], selected_levels(release, index)
    sensitivity = release.question.sensitivity_of(total)
    shares = (4 if noise_type is Laplace else 2) * len(levels) or 1
    try:
        noise = (
            laplace_for(sensitivity, amount / shares)
            if noise_type is Laplace
            else gaussian_for(sensitivity, rho=amount / shares)
        )
    except ValueError:  # raised by the mechanism if there is no such scale
        raise Refused(_NO_SUCH_NOISE) from None
    if not levels:
        return noise
    assert isinstance(total, HistogramTree)
    return quantile_selection(levels, total.cell_count, noise.scale)


def ask_for(
    release: PlannedRelease,
    noises: Sequence[ReleaseNoise],
    delta: Fraction,
    instead: Mapping[int, Refinement | None] = MappingProxyType({}),
) -> ReleaseRequest:
    """Return a question with its noise, and the lowest thresholds for this delta if it uses partition selection.

    `instead` has the totals that are refined, or not released (None), by index.
    """
    question, all_noises = release.question, tuple(noises)
    mechanisms = [instead.get(index, noise) for index, noise in enumerate(all_noises)]
    if isinstance(question.groups, SelectedGroups):
        try:
            selection = _partition_selection(question, additive(all_noises[0]), delta)
        except ValueError:  # there is no threshold for this delta
            raise Refused(_NO_SUCH_NOISE) from None
        return ReleaseRequest(question, (selection, *mechanisms[1:]), tree_walks(release, all_noises))
    return ReleaseRequest(question, tuple(mechanisms), tree_walks(release, all_noises))


def round_shares(question: Question) -> tuple[Fraction, ...]:
    """Return the share of each round of partition selection in rho (or epsilon) and delta.

    A second round helps units with several keys, which weigh more in those that are left.
    """
    several_keys = question.needs_clipping and question.bounds.groups > 1 and question.max_selection_keys > 1
    return (FIRST_ROUND_SHARE, 1 - FIRST_ROUND_SHARE) if several_keys else (Fraction(1),)


def _partition_selection(question: Question, noise: Laplace | Gaussian, delta: Fraction) -> PartitionSelection:
    """Return the rounds of partition selection for the cost of this noise."""
    sensitivity = question.sensitivity_of(question.totals[0])
    cost = noise.loss(sensitivity)
    rounds = []
    for share in round_shares(question):
        of_round = noise
        if share < 1:
            of_round = (
                laplace_for(sensitivity, cost.epsilon * share)
                if cost.epsilon is not None
                else gaussian_for(sensitivity, rho=cost.rho * share)
            )
        form = partition_threshold(question, of_round, cut=1)
        rounds.append(threshold_for(of_round, groups=form.groups, delta=delta * share, size=form.size, most=form.most))
    return PartitionSelection(tuple(rounds))


def _total_fingerprints(releases: tuple[PlannedRelease, ...]) -> list[str]:
    """Return a fingerprint for each weighted total, independent of their order."""
    about = [digest((release.question.relation, release.question.by)) for release in releases]
    return [
        digest((name, release.question.totals[index]))
        for name, release in zip(about, releases, strict=True)
        for index in range(len(release.weights))
    ]


def _normalised_shares(sizes: list[float], names: Sequence[str]) -> list[Fraction]:
    """Return shares proportional to the sizes, as fractions that sum to exactly 1.

    The rounding remainder goes to the largest share (the first by name among equals), independent of the order.
    """
    whole = [max(1, int(size / math.fsum(sizes) * _SHARE_UNITS)) for size in sizes]
    largest = min(range(len(whole)), key=lambda place: (-whole[place], names[place]))
    whole[largest] += _SHARE_UNITS - sum(whole)
    return [Fraction(units, _SHARE_UNITS) for units in whole]


def largest_epsilon(budget: Budget, remaining: Loss) -> Fraction:
    """Return the largest epsilon, to three digits, that the remaining budget allows."""
    if budget.rho is None:
        return remaining.epsilon or Fraction(0)
    if not remaining.rho:
        return Fraction(0)
    estimate = privacy.to_epsilon(Loss(None, remaining.rho), conversion_delta(budget))
    if not float(estimate):
        return Fraction(0)  # too little is left to convert
    for index in range(40):  # start near the epsilon that rho converts to, and decrease until it is affordable
        epsilon = round_down(estimate * (1 - Fraction(index, 200)), max(0, 2 - math.floor(math.log10(float(estimate)))))
        if epsilon > 0 and privacy.cost_of(budget, epsilon).rho <= remaining.rho:
            return epsilon
    return Fraction(0)
