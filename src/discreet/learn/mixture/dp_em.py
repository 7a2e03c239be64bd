"""DP-EM: expectation-maximisation of a Gaussian mixture whose every sum is released with noise.

After Park, Foulds, Chaudhuri and Welling (2017): in each of a fixed number of iterations 2·K+1 mechanisms release the
weights, K means and K covariances, of points that the declared bounds map into the unit ball. Noise that is scaled
by a component's exact size would tell that size, so here the *sums* are released, which one unit moves by at most 1
(or 2, if it is replaced), and are divided afterwards by the noisy sizes. A lower confidence bound of a size, whose
failure is charged as delta, would also do and is not used: it makes small components noisier still.
"""

import math
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, NamedTuple

import numpy as np

from discreet.kernel.loss import ZERO_LOSS, Loss
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.numbers import Number, as_integer, as_positive, as_probability
from discreet.kernel.reservation import CLIP_RADIUS, Noise, clipped_sum_sensitivity
from discreet.learn.fit_cost import REMOVAL, is_substitution
from discreet.learn.fit_session import FitSession
from discreet.learn.mixture.composition import CompositionKind, MechanismType, mechanism_for, split_budget

PublicValues = tuple[Any, ...]
_MIN_COUNT = 1.0  # units in a component: a noisy size may be below 0


class GaussianMixtureParameters(NamedTuple):
    """A mixture: (K,) weights, (K, d) means, (K, d, d) covariances."""

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray


class MixturePrior(NamedTuple):
    """Of the MAP form: Dirichlet on the weights, normal and inverse Wishart on each mean and covariance."""

    concentration: float  # of each weight; 1 is flat
    precision: float  # how many units the prior's mean is worth
    mean: np.ndarray
    degrees: float  # of freedom of the covariance
    scatter: np.ndarray  # what its sum of squares begins with


class UnitBall(NamedTuple):
    """Where the unit ball lies in the data: its centre, and how long a radius is in each column."""

    centre: np.ndarray
    radius: np.ndarray

    def to_ball(self, mixture: GaussianMixtureParameters) -> GaussianMixtureParameters:
        """Return a mixture in the ball's units."""
        weights, means, covariances = mixture
        squares = np.outer(self.radius, self.radius)
        return GaussianMixtureParameters(weights, (means - self.centre) / self.radius, covariances / squares)

    def to_data(self, mixture: GaussianMixtureParameters) -> GaussianMixtureParameters:
        """Return a mixture of the ball in the data's units."""
        weights, means, covariances = mixture
        squares = np.outer(self.radius, self.radius)
        return GaussianMixtureParameters(weights, means * self.radius + self.centre, covariances * squares)


def unit_ball_around(low: np.ndarray, high: np.ndarray) -> UnitBall:
    """Return the ball on whose surface the corners of the declared bounds lie.

    >>> unit_ball_around(np.array([0.0, 0.0]), np.array([4.0, 2.0])).centre
    array([2., 1.])
    """
    return UnitBall(low / 2 + high / 2, (high / 2 - low / 2) * math.sqrt(len(low)))


@dataclass(frozen=True)
class DPEMPlan:
    """All that is fixed before any data: which noises on which sums, and what is made of them.

    `loss` is what the noises cost, as the ledger counts it; epsilon and delta are what the composition says of them.
    """

    n_components: int
    unit_ball: UnitBall
    n_iterations: int
    n_units: int | None  # how many there are, where that is public
    prior: MixturePrior | None
    start: GaussianMixtureParameters | None
    variance_floor: float
    noises: tuple[Noise, ...]
    loss: Loss
    neighbours: str


def plan(  # noqa: PLR0913 - every choice is made here, by its name
    n_components: int,
    low: np.ndarray,
    high: np.ndarray,
    *,
    epsilon: Number,
    delta: Number,
    noise: Literal["gaussian", "laplace"] = "gaussian",
    composition: CompositionKind = "zcdp",
    n_iterations: int = 10,
    neighbours: str = REMOVAL,
    n_units: int | None = None,
    prior: MixturePrior | None = None,
    start: GaussianMixtureParameters | None = None,
    variance_floor: float = 1e-3,
) -> DPEMPlan:
    """Return the plan of a fit that is (epsilon, delta)-DP for these neighbours.

    Gaussian noise is on everything ("GGG"), or Laplace noise on weights and means and Gaussian noise on covariances
    ("LLG"). Units can be replaced only where their number is public. The floor of a component's variances is relative
    to the uniform law within the bounds; a prior makes the fit a MAP estimate; both it and a start are in data units.

    Claim: the noises, each on a sum over units of vectors in a ball, are together (epsilon, delta)-DP.
    Proof: `split_budget` divides epsilon and delta among them; `mechanism_for` calibrates each for what one unit moves: a vector
        of the ball comes or goes, or is replaced by another, at most two radii away.
    Checked by: test_noises_cost_what_was_asked, test_one_unit_moves_each_sum_by_no_more_than_claimed
    """
    components, rounds = (
        as_integer(n_components, "n_components", minimum=1),
        as_integer(n_iterations, "iterations", minimum=1),
    )
    substitution = is_substitution(neighbours)
    if substitution != (n_units is not None):
        raise ValueError("units: their number must be public, and given, just where one of them may be replaced")
    if noise not in ("gaussian", "laplace"):
        raise ValueError(f"noise must be 'gaussian' or 'laplace', not {noise!r}")
    if not 0 < variance_floor < 1:
        raise ValueError("floor must lie strictly between 0 and 1")
    if prior is not None and (prior.concentration < 1 or prior.precision < 0 or prior.degrees < len(low) - 1):
        raise ValueError("prior: concentration must be at least 1, precision at least 0, degrees at least d - 1")
    if start is not None and (start.means.shape != (components, len(low)) or not (start.weights > 0).all()):
        raise ValueError("start: give every component a weight above 0 and a mean with a number for each column")
    first_type: MechanismType = Gaussian if noise == "gaussian" else Laplace
    mechanism_types = [first_type] * (1 + components) + [Gaussian] * components
    losses = split_budget(
        as_positive(epsilon, "epsilon"), as_probability(delta, "delta"), mechanism_types * rounds, composition
    )
    noise_by_type = {
        mechanism_type: mechanism_for(
            mechanism_type,
            release_loss,
            clipped_sum_sensitivity(mechanism_type(CLIP_RADIUS), substitution=substitution),
        )
        for mechanism_type, release_loss in zip(
            mechanism_types, losses, strict=False
        )  # every iteration is like the first
    }
    noises = tuple(noise_by_type[law] for law in mechanism_types) * rounds
    loss = sum(
        (
            noise_mechanism.loss(clipped_sum_sensitivity(noise_mechanism, substitution=substitution))
            for noise_mechanism in noises
        ),
        ZERO_LOSS,
    )
    public_count = None if n_units is None else as_integer(n_units, "units", minimum=1)
    unit_ball = unit_ball_around(low, high)
    return DPEMPlan(components, unit_ball, rounds, public_count, prior, start, variance_floor, noises, loss, neighbours)


def fit(session: FitSession, plan: DPEMPlan) -> GaussianMixtureParameters:
    """Return a mixture in data units, made of nothing but what the session released."""
    d = len(plan.unit_ball.centre)
    min_variances = np.full(
        plan.n_components, plan.variance_floor / (3 * d)
    )  # the variance of the uniform law is 1/(3·d) in the ball
    # A variance that is smaller than the noise in it was not seen.
    noise_scale = float(plan.noises[-1].scale / CLIP_RADIUS)
    current = (
        random_start(plan.n_components, d)
        if plan.start is None
        else _clip_eigenvalues(plan.unit_ball.to_ball(plan.start), min_variances)
    )
    prior = _prior_in_ball(plan)
    for _ in range(plan.n_iterations):
        sizes, firsts, seconds = _noisy_sums(session, plan, current)
        counts = _component_counts(sizes, plan.n_units)
        current = _clip_eigenvalues(
            _map_estimate(prior, counts, firsts, seconds), np.maximum(min_variances, noise_scale / counts)
        )
    return plan.unit_ball.to_data(current)


def _component_counts(sizes: np.ndarray, n_units: int | None) -> np.ndarray:
    """Return how many units each component has: a noisy size or, with a public number of units, its share of that."""
    counts = np.maximum(sizes, _MIN_COUNT)
    return counts if n_units is None else np.asarray(counts * (n_units / counts.sum()))


def random_start(components: int, d: int) -> GaussianMixtureParameters:
    """Return equal weights, means anywhere in the box, and round covariances that could share the box."""
    side = 1 / math.sqrt(d)
    means = np.random.default_rng().uniform(-side, side, (components, d))
    variance = side * side / 3 * components ** (-2 / d)
    return GaussianMixtureParameters(
        np.full(components, 1 / components), means, np.tile(variance * np.eye(d), (components, 1, 1))
    )


def _noisy_sums(
    session: FitSession, plan: DPEMPlan, current: GaussianMixtureParameters
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return noisy sums over units of each component's shares, share·x and share·xxᵀ: (K,), (K, d), (K, d, d)."""
    components, d = range(plan.n_components), len(plan.unit_ball.centre)
    factors = np.linalg.inv(np.linalg.cholesky(current.covariances))
    log_peaks = np.log(current.weights) + np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    public = (*plan.unit_ball, log_peaks, current.means, factors)
    # The distance in l1 from the ball's centre is up to the root of d.
    radius = math.sqrt(d) if isinstance(plan.noises[1], Laplace) else 1
    sizes = session.sum(responsibilities, public, size=plan.n_components, radius=1)
    firsts = np.array([session.sum(first_moments, (*public, k), size=d, radius=radius) for k in components])
    seconds = [session.sum(second_moments, (*public, k), size=d * (d + 1) // 2, radius=1) for k in components]
    return sizes, firsts, np.array([_symmetric_from_upper(second, d) for second in seconds])


def _symmetric_from_upper(values: np.ndarray, d: int) -> np.ndarray:
    """Return the matrix whose upper triangle was released, off the diagonal times sqrt(2)."""
    matrix = np.zeros((d, d))
    matrix[np.triu_indices(d)] = values
    return np.asarray(np.where(np.eye(d, dtype=bool), matrix, (matrix + matrix.T) / math.sqrt(2)))


def responsibilities(rows: np.ndarray, public: PublicValues) -> np.ndarray:
    """Return how much of each row every component explains: (n, K), each at least 0, together 1."""
    return _responsibilities(_columns_in_ball(rows, public), public).T


def first_moments(rows: np.ndarray, public: PublicValues) -> np.ndarray:
    """Return share·x of the component public[-1]: (n, d), of norm at most 1 for x in the ball."""
    columns = _columns_in_ball(rows, public)
    return np.asarray(columns * _responsibilities(columns, public)[public[-1]]).T


def second_moments(rows: np.ndarray, public: PublicValues) -> np.ndarray:
    """Return share·xxᵀ as its upper triangle, off the diagonal times sqrt(2), which keeps Frobenius' norm."""
    columns = _columns_in_ball(rows, public)
    weighted = columns * _responsibilities(columns, public)[public[-1]]
    pairs = [(i, j) for i in range(len(columns)) for j in range(i, len(columns))]
    out = np.empty((len(pairs), len(rows)))
    for at, (i, j) in enumerate(pairs):
        np.multiply(weighted[i], columns[j] if i == j else columns[j] * math.sqrt(2), out=out[at])
    return out.T


def _columns_in_ball(rows: np.ndarray, public: PublicValues) -> np.ndarray:
    """Return the rows in the ball's units, (d, n)."""
    return np.ascontiguousarray(((rows - public[0]) / public[1]).T)


def _responsibilities(columns: np.ndarray, public: PublicValues) -> np.ndarray:
    """Return every component's share of each point, (K, n): elementwise, so that no row's value depends on others."""
    _, _, log_peaks, means, factors = public[:5]
    logs = np.empty((len(log_peaks), columns.shape[1]))
    for k, log_peak in enumerate(log_peaks):
        logs[k] = log_peak
        deviations = [column - mean for column, mean in zip(columns, means[k], strict=True)]
        for i in range(len(deviations)):
            whitened = deviations[0] * factors[k, i, 0]
            for j in range(1, i + 1):
                whitened += deviations[j] * factors[k, i, j]
            logs[k] -= whitened * whitened / 2
    logs -= logs.max(axis=0)
    np.exp(logs, out=logs)
    return np.asarray(logs / reduce(np.add, logs))  # in the components' order, which .sum() may change for one row


def _prior_in_ball(plan: DPEMPlan) -> MixturePrior:
    """Return the prior in the ball's units; without one, that for which MAP is maximum likelihood."""
    d = len(plan.unit_ball.centre)
    if plan.prior is None:
        return MixturePrior(1.0, 0.0, np.zeros(d), -d - 2.0, np.zeros((d, d)))
    _, mean, scatter = plan.unit_ball.to_ball(
        GaussianMixtureParameters(np.ones(1), plan.prior.mean, plan.prior.scatter)
    )
    return plan.prior._replace(mean=mean, scatter=scatter)


def _map_estimate(
    prior: MixturePrior, counts: np.ndarray, firsts: np.ndarray, seconds: np.ndarray
) -> GaussianMixtureParameters:
    """Return the MAP estimate from released sums, a function of these alone: the means are within the bounds."""
    weights, size = counts + prior.concentration - 1, counts[:, None]
    d = firsts.shape[1]
    averages = np.clip(firsts / size, -1 / math.sqrt(d), 1 / math.sqrt(d))
    means = (prior.precision * prior.mean + size * averages) / (prior.precision + size)
    deviations = averages - prior.mean
    prior_weight = prior.precision * size / (prior.precision + size)
    prior_term, mean_term = (
        np.einsum("ki,kj->kij", prior_weight * deviations, deviations),
        np.einsum("ki,kj->kij", size * averages, averages),
    )
    divisor = prior.degrees + counts + d + 2
    covariances = (prior.scatter + seconds + prior_term - mean_term) / divisor[:, None, None]
    return GaussianMixtureParameters(weights / weights.sum(), means, covariances)


def _clip_eigenvalues(mixture: GaussianMixtureParameters, min_variances: np.ndarray) -> GaussianMixtureParameters:
    """Return the mixture with the covariances' eigenvalues between the least and 1, the most that a ball allows."""
    values, vectors = np.linalg.eigh(mixture.covariances)
    clipped = np.clip(values, np.minimum(min_variances, 1.0)[:, None], 1.0)
    return mixture._replace(covariances=(vectors * clipped[:, None, :]) @ vectors.transpose(0, 2, 1))
