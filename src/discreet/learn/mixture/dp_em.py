"""DP-EM: expectation-maximisation of a Gaussian mixture in which every sum is released with noise.

After Park, Foulds, Chaudhuri and Welling (2017): in each of a fixed number of iterations, 2·K+1 mechanisms release the
weights, K means and K covariances of points that the declared bounds map into the unit ball. Noise scaled by a
component's exact size would disclose that size. So the *sums* are released, which one unit changes by at most 1 (or 2,
if it is replaced), and are divided afterwards by the noisy sizes. A lower confidence bound on the size, with its
failure probability charged as delta, would also work but makes small components noisier.
"""

import math
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, NamedTuple

import numpy as np

from discreet.kernel.loss import ZERO_LOSS, Loss
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.numbers import Number, as_integer, as_positive
from discreet.kernel.reservation import CLIP_RADIUS, Noise, clipped_sum_sensitivity
from discreet.learn.fit_cost import REMOVAL, is_substitution
from discreet.learn.fit_session import FitSession
from discreet.learn.mixture.composition import CompositionKind, MechanismType, mechanism_for, split_budget
from discreet.privacy.probability import as_probability

PublicValues = tuple[Any, ...]
_MIN_COUNT = 1.0  # minimum units in a component: a noisy size may be negative


class GaussianMixtureParameters(NamedTuple):
    """A mixture: (K,) weights, (K, d) means, (K, d, d) covariances."""

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray


class MixturePrior(NamedTuple):
    """The prior of a MAP estimate: Dirichlet for the weights, normal-inverse-Wishart for each mean and covariance."""

    concentration: float  # of each weight; 1 is flat
    precision: float  # weight of the prior mean, in units
    mean: np.ndarray
    degrees: float  # degrees of freedom of the covariance
    scatter: np.ndarray  # scale matrix of the covariance


class UnitBall(NamedTuple):
    """The affine map from the unit ball to the data: its centre and its radius in each column."""

    centre: np.ndarray
    radius: np.ndarray

    def to_ball(self, mixture: GaussianMixtureParameters) -> GaussianMixtureParameters:
        """Return a mixture in ball units."""
        weights, means, covariances = mixture
        squares = np.outer(self.radius, self.radius)
        return GaussianMixtureParameters(weights, (means - self.centre) / self.radius, covariances / squares)

    def to_data(self, mixture: GaussianMixtureParameters) -> GaussianMixtureParameters:
        """Return a mixture in data units."""
        weights, means, covariances = mixture
        squares = np.outer(self.radius, self.radius)
        return GaussianMixtureParameters(weights, means * self.radius + self.centre, covariances * squares)


def unit_ball_around(low: np.ndarray, high: np.ndarray) -> UnitBall:
    """Return the ball through the corners of the declared bounds.

    >>> unit_ball_around(np.array([0.0, 0.0]), np.array([4.0, 2.0])).centre
    array([2., 1.])
    """
    return UnitBall(low / 2 + high / 2, (high / 2 - low / 2) * math.sqrt(len(low)))


@dataclass(frozen=True)
class DPEMPlan:
    """Everything that is fixed before data is read; `loss` is the cost of the noises as the ledger accounts for it."""

    n_components: int
    unit_ball: UnitBall
    n_iterations: int
    n_units: int | None  # only where their number is public
    prior: MixturePrior | None
    start: GaussianMixtureParameters | None
    variance_floor: float
    noises: tuple[Noise, ...]
    loss: Loss
    neighbours: str


def plan(  # noqa: PLR0913 - all choices are keyword arguments
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

    All noise is Gaussian ("GGG"), or Laplace for weights and means and Gaussian for covariances ("LLG"). Neighbours can
    differ by replacement only where the number of units is public. `variance_floor` is relative to the uniform
    distribution within the bounds. A prior makes the fit a MAP estimate; prior and start are in data units.

    Claim: the noises, each on a sum over units of vectors in a ball, are together (epsilon, delta)-DP.
    Proof: `split_budget` divides epsilon and delta among them; `mechanism_for` calibrates each for the change that one
        unit causes: a vector of the ball is added or removed, or replaced by another, at most two radii away.
    Checked by: test_noise_scales_cost_what_was_requested, test_one_unit_moves_each_sum_by_no_more_than_claimed
    """
    components, rounds = (
        as_integer(n_components, "n_components", minimum=1),
        as_integer(n_iterations, "n_iterations", minimum=1),
    )
    substitution = is_substitution(neighbours)
    if substitution != (n_units is not None):
        raise ValueError("n_units: pass the public number of units with neighbours='replacement', and only then")
    if noise not in ("gaussian", "laplace"):
        raise ValueError(f"noise must be 'gaussian' or 'laplace', not {noise!r}")
    if not 0 < variance_floor < 1:
        raise ValueError("variance_floor must be strictly between 0 and 1")
    if prior is not None and (prior.concentration < 1 or prior.precision < 0 or prior.degrees < len(low) - 1):
        raise ValueError("prior: concentration must be at least 1, precision at least 0, degrees at least d - 1")
    if start is not None and (start.means.shape != (components, len(low)) or not (start.weights > 0).all()):
        raise ValueError("start must have a positive weight and a mean with one number per column for each component")
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
        # Every iteration repeats the first.
        for mechanism_type, release_loss in zip(mechanism_types, losses, strict=False)
    }
    noises = tuple(noise_by_type[mechanism_type] for mechanism_type in mechanism_types) * rounds
    loss = sum(
        (
            noise_mechanism.loss(clipped_sum_sensitivity(noise_mechanism, substitution=substitution))
            for noise_mechanism in noises
        ),
        ZERO_LOSS,
    )
    public_count = None if n_units is None else as_integer(n_units, "n_units", minimum=1)
    unit_ball = unit_ball_around(low, high)
    return DPEMPlan(components, unit_ball, rounds, public_count, prior, start, variance_floor, noises, loss, neighbours)


def fit(session: FitSession, plan: DPEMPlan) -> GaussianMixtureParameters:
    """Return a mixture in data units, computed from the session's releases only."""
    d = len(plan.unit_ball.centre)
    # The uniform distribution within the bounds has variance 1/(3·d) in ball units.
    min_variances = np.full(plan.n_components, plan.variance_floor / (3 * d))
    # A variance below its noise is not resolved.
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
    """Return the units per component: the noisy sizes, normalised if the number of units is public."""
    counts = np.maximum(sizes, _MIN_COUNT)
    return counts if n_units is None else np.asarray(counts * (n_units / counts.sum()))


def random_start(components: int, d: int) -> GaussianMixtureParameters:
    """Return equal weights, uniformly random means in the box, and spherical covariances that would tile it."""
    side = 1 / math.sqrt(d)
    means = np.random.default_rng().uniform(-side, side, (components, d))
    variance = side * side / 3 * components ** (-2 / d)
    return GaussianMixtureParameters(
        np.full(components, 1 / components), means, np.tile(variance * np.eye(d), (components, 1, 1))
    )


def _noisy_sums(
    session: FitSession, plan: DPEMPlan, current: GaussianMixtureParameters
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return noisy sums over units of r, r·x and r·xxᵀ, with responsibilities r: (K,), (K, d), (K, d, d)."""
    components, d = range(plan.n_components), len(plan.unit_ball.centre)
    factors = np.linalg.inv(np.linalg.cholesky(current.covariances))
    log_peaks = np.log(current.weights) + np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    public = (*plan.unit_ball, log_peaks, current.means, factors)
    # The l1 norm in the l2 unit ball is at most sqrt(d).
    radius = math.sqrt(d) if isinstance(plan.noises[1], Laplace) else 1
    sizes = session.sum(responsibilities, public, size=plan.n_components, radius=1)
    firsts = np.array([session.sum(first_moments, (*public, k), size=d, radius=radius) for k in components])
    seconds = [session.sum(second_moments, (*public, k), size=d * (d + 1) // 2, radius=1) for k in components]
    return sizes, firsts, np.array([_symmetric_from_upper(second, d) for second in seconds])


def _symmetric_from_upper(values: np.ndarray, d: int) -> np.ndarray:
    """Return the symmetric matrix from its released upper triangle, whose off-diagonal entries have weight sqrt(2)."""
    matrix = np.zeros((d, d))
    matrix[np.triu_indices(d)] = values
    return np.asarray(np.where(np.eye(d, dtype=bool), matrix, (matrix + matrix.T) / math.sqrt(2)))


def responsibilities(rows: np.ndarray, public: PublicValues) -> np.ndarray:
    """Return the responsibilities: (n, K), non-negative, summing to 1 in each row."""
    return _responsibilities(_columns_in_ball(rows, public), public).T


def first_moments(rows: np.ndarray, public: PublicValues) -> np.ndarray:
    """Return r·x for component public[-1]: (n, d), of norm at most 1 for x in the ball."""
    columns = _columns_in_ball(rows, public)
    return np.asarray(columns * _responsibilities(columns, public)[public[-1]]).T


def second_moments(rows: np.ndarray, public: PublicValues) -> np.ndarray:
    """Return the upper triangle of r·xxᵀ, with off-diagonal entries times sqrt(2) to preserve the Frobenius norm."""
    columns = _columns_in_ball(rows, public)
    weighted = columns * _responsibilities(columns, public)[public[-1]]
    pairs = [(i, j) for i in range(len(columns)) for j in range(i, len(columns))]
    out = np.empty((len(pairs), len(rows)))
    for at, (i, j) in enumerate(pairs):
        np.multiply(weighted[i], columns[j] if i == j else columns[j] * math.sqrt(2), out=out[at])
    return out.T


def _columns_in_ball(rows: np.ndarray, public: PublicValues) -> np.ndarray:
    """Return the rows in ball units: (d, n)."""
    return np.ascontiguousarray(((rows - public[0]) / public[1]).T)


def _responsibilities(columns: np.ndarray, public: PublicValues) -> np.ndarray:
    """Return the responsibilities, (K, n), elementwise, so that no row's value depends on other rows."""
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
    return np.asarray(
        logs / reduce(np.add, logs)
    )  # a fixed order of additions; that of .sum() may differ for a single row


def _prior_in_ball(plan: DPEMPlan) -> MixturePrior:
    """Return the prior in ball units; without one, the prior for which MAP is maximum likelihood."""
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
    """Return the MAP estimate from the released sums, with means clamped to the bounds."""
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
    """Return the mixture with the eigenvalues of covariances clamped between `min_variances` and 1."""
    values, vectors = np.linalg.eigh(mixture.covariances)
    clipped = np.clip(values, np.minimum(min_variances, 1.0)[:, None], 1.0)
    return mixture._replace(covariances=(vectors * clipped[:, None, :]) @ vectors.transpose(0, 2, 1))
