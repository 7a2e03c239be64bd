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

from discreet.kernel.exact import Number, positive, share, whole
from discreet.kernel.loss import NOTHING, Loss
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.purse import STEPS, Noise, ball
from discreet.learn.losses import REMOVAL, replaces
from discreet.learn.mixture.composition import Kind, Law, mechanism, scales
from discreet.learn.session import Session

Public = tuple[Any, ...]
_FEWEST = 1.0  # units in a component: a noisy size may be below 0


class Parameters(NamedTuple):
    """A mixture: (K,) weights, (K, d) means, (K, d, d) covariances."""

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray


class Prior(NamedTuple):
    """Of the MAP form: Dirichlet on the weights, normal and inverse Wishart on each mean and covariance."""

    concentration: float  # of each weight; 1 is flat
    precision: float  # how many units the prior's mean is worth
    mean: np.ndarray
    degrees: float  # of freedom of the covariance
    scatter: np.ndarray  # what its sum of squares begins with


class Frame(NamedTuple):
    """Where the unit ball lies in the data: its centre, and how long a radius is in each column."""

    centre: np.ndarray
    radius: np.ndarray

    def inside(self, mixture: Parameters) -> Parameters:
        """Return a mixture in the ball's units."""
        weights, means, covariances = mixture
        squares = np.outer(self.radius, self.radius)
        return Parameters(weights, (means - self.centre) / self.radius, covariances / squares)

    def outside(self, mixture: Parameters) -> Parameters:
        """Return a mixture of the ball in the data's units."""
        weights, means, covariances = mixture
        squares = np.outer(self.radius, self.radius)
        return Parameters(weights, means * self.radius + self.centre, covariances * squares)


def frame_around(low: np.ndarray, high: np.ndarray) -> Frame:
    """Return the ball on whose surface the corners of the declared bounds lie.

    >>> frame_around(np.array([0.0, 0.0]), np.array([4.0, 2.0])).centre
    array([2., 1.])
    """
    return Frame(low / 2 + high / 2, (high / 2 - low / 2) * math.sqrt(len(low)))


@dataclass(frozen=True)
class Plan:
    """All that is fixed before any data: which noises on which sums, and what is made of them.

    `loss` is what the noises cost, as the ledger counts it; epsilon and delta are what the composition says of them.
    """

    components: int
    frame: Frame
    iterations: int
    units: int | None  # how many there are, where that is public
    prior: Prior | None
    start: Parameters | None
    floor: float
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
    composition: Kind = "zcdp",
    iterations: int = 10,
    neighbours: str = REMOVAL,
    units: int | None = None,
    prior: Prior | None = None,
    start: Parameters | None = None,
    floor: float = 1e-3,
) -> Plan:
    """Return the plan of a fit that is (epsilon, delta)-DP for these neighbours.

    Gaussian noise is on everything ("GGG"), or Laplace noise on weights and means and Gaussian noise on covariances
    ("LLG"). Units can be replaced only where their number is public. The floor of a component's variances is relative
    to the uniform law within the bounds; a prior makes the fit a MAP estimate; both it and a start are in data units.

    Claim: the noises, each on a sum over units of vectors in a ball, are together (epsilon, delta)-DP.
    Proof: `scales` divides epsilon and delta among them; `mechanism` calibrates each for what one unit moves: a vector
        of the ball comes or goes, or is replaced by another, at most two radii away.
    Checked by: test_noises_cost_what_was_asked, test_one_unit_moves_each_sum_by_no_more_than_claimed
    """
    components, rounds = whole(n_components, "n_components", least=1), whole(iterations, "iterations", least=1)
    replacing = replaces(neighbours)
    if replacing != (units is not None):
        raise ValueError("units: their number must be public, and given, just where one of them may be replaced")
    if noise not in ("gaussian", "laplace"):
        raise ValueError(f"noise must be 'gaussian' or 'laplace', not {noise!r}")
    if not 0 < floor < 1:
        raise ValueError("floor must lie strictly between 0 and 1")
    if prior is not None and (prior.concentration < 1 or prior.precision < 0 or prior.degrees < len(low) - 1):
        raise ValueError("prior: concentration must be at least 1, precision at least 0, degrees at least d - 1")
    if start is not None and (start.means.shape != (components, len(low)) or not (start.weights > 0).all()):
        raise ValueError("start: give every component a weight above 0 and a mean with a number for each column")
    first: Law = Gaussian if noise == "gaussian" else Laplace
    laws = [first] * (1 + components) + [Gaussian] * components
    parts = scales(positive(epsilon, "epsilon"), share(delta, "delta"), laws * rounds, composition)
    of_law = {
        law: mechanism(law, part, ball(law(STEPS), replacing=replacing))
        for law, part in zip(laws, parts, strict=False)  # every iteration is like the first
    }
    noises = tuple(of_law[law] for law in laws) * rounds
    loss = sum((each.loss(ball(each, replacing=replacing)) for each in noises), NOTHING)
    number = None if units is None else whole(units, "units", least=1)
    frame = frame_around(low, high)
    return Plan(components, frame, rounds, number, prior, start, floor, noises, loss, neighbours)


def fit(session: Session, plan: Plan) -> Parameters:
    """Return a mixture in data units, made of nothing but what the session released."""
    d = len(plan.frame.centre)
    least = np.full(plan.components, plan.floor / (3 * d))  # the variance of the uniform law is 1/(3·d) in the ball
    # A variance that is smaller than the noise in it was not seen.
    noise = float(plan.noises[-1].scale / STEPS)
    current = random_start(plan.components, d) if plan.start is None else _valid(plan.frame.inside(plan.start), least)
    prior = _prior_of_ball(plan)
    for _ in range(plan.iterations):
        sizes, firsts, seconds = _released(session, plan, current)
        counts = _counts(sizes, plan.units)
        current = _valid(_estimate(prior, counts, firsts, seconds), np.maximum(least, noise / counts))
    return plan.frame.outside(current)


def _counts(sizes: np.ndarray, units: int | None) -> np.ndarray:
    """Return how many units each component has: a noisy size or, with a public number of units, its share of that."""
    counts = np.maximum(sizes, _FEWEST)
    return counts if units is None else np.asarray(counts * (units / counts.sum()))


def random_start(components: int, d: int) -> Parameters:
    """Return equal weights, means anywhere in the box, and round covariances that could share the box."""
    side = 1 / math.sqrt(d)
    means = np.random.default_rng().uniform(-side, side, (components, d))
    variance = side * side / 3 * components ** (-2 / d)
    return Parameters(np.full(components, 1 / components), means, np.tile(variance * np.eye(d), (components, 1, 1)))


def _released(session: Session, plan: Plan, current: Parameters) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return noisy sums over units of each component's shares, share·x and share·xxᵀ: (K,), (K, d), (K, d, d)."""
    each, d = range(plan.components), len(plan.frame.centre)
    factors = np.linalg.inv(np.linalg.cholesky(current.covariances))
    heights = np.log(current.weights) + np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    public = (*plan.frame, heights, current.means, factors)
    # The distance in l1 from the ball's centre is up to the root of d.
    radius = math.sqrt(d) if isinstance(plan.noises[1], Laplace) else 1
    sizes = session.sum(shares, public, size=plan.components, radius=1)
    firsts = np.array([session.sum(first_moments, (*public, k), size=d, radius=radius) for k in each])
    seconds = [session.sum(second_moments, (*public, k), size=d * (d + 1) // 2, radius=1) for k in each]
    return sizes, firsts, np.array([_symmetric(second, d) for second in seconds])


def _symmetric(values: np.ndarray, d: int) -> np.ndarray:
    """Return the matrix whose upper triangle was released, off the diagonal times sqrt(2)."""
    matrix = np.zeros((d, d))
    matrix[np.triu_indices(d)] = values
    return np.asarray(np.where(np.eye(d, dtype=bool), matrix, (matrix + matrix.T) / math.sqrt(2)))


def shares(rows: np.ndarray, public: Public) -> np.ndarray:
    """Return how much of each row every component explains: (n, K), each at least 0, together 1."""
    return _shares(_columns(rows, public), public).T


def first_moments(rows: np.ndarray, public: Public) -> np.ndarray:
    """Return share·x of the component public[-1]: (n, d), of norm at most 1 for x in the ball."""
    columns = _columns(rows, public)
    return np.asarray(columns * _shares(columns, public)[public[-1]]).T


def second_moments(rows: np.ndarray, public: Public) -> np.ndarray:
    """Return share·xxᵀ as its upper triangle, off the diagonal times sqrt(2), which keeps Frobenius' norm."""
    columns = _columns(rows, public)
    weighted = columns * _shares(columns, public)[public[-1]]
    pairs = [(i, j) for i in range(len(columns)) for j in range(i, len(columns))]
    out = np.empty((len(pairs), len(rows)))
    for at, (i, j) in enumerate(pairs):
        np.multiply(weighted[i], columns[j] if i == j else columns[j] * math.sqrt(2), out=out[at])
    return out.T


def _columns(rows: np.ndarray, public: Public) -> np.ndarray:
    """Return the rows in the ball's units, (d, n)."""
    return np.ascontiguousarray(((rows - public[0]) / public[1]).T)


def _shares(columns: np.ndarray, public: Public) -> np.ndarray:
    """Return every component's share of each point, (K, n): elementwise, so that no row's value depends on others."""
    _, _, heights, means, factors = public[:5]
    logs = np.empty((len(heights), columns.shape[1]))
    for k, height in enumerate(heights):
        logs[k] = height
        apart = [column - mean for column, mean in zip(columns, means[k], strict=True)]
        for i in range(len(apart)):
            whitened = apart[0] * factors[k, i, 0]
            for j in range(1, i + 1):
                whitened += apart[j] * factors[k, i, j]
            logs[k] -= whitened * whitened / 2
    logs -= logs.max(axis=0)
    np.exp(logs, out=logs)
    return np.asarray(logs / reduce(np.add, logs))  # in the components' order, which .sum() may change for one row


def _prior_of_ball(plan: Plan) -> Prior:
    """Return the prior in the ball's units; without one, that for which MAP is maximum likelihood."""
    d = len(plan.frame.centre)
    if plan.prior is None:
        return Prior(1.0, 0.0, np.zeros(d), -d - 2.0, np.zeros((d, d)))
    _, mean, scatter = plan.frame.inside(Parameters(np.ones(1), plan.prior.mean, plan.prior.scatter))
    return plan.prior._replace(mean=mean, scatter=scatter)


def _estimate(prior: Prior, counts: np.ndarray, firsts: np.ndarray, seconds: np.ndarray) -> Parameters:
    """Return the MAP estimate from released sums, a function of these alone: the means are within the bounds."""
    weights, size = counts + prior.concentration - 1, counts[:, None]
    d = firsts.shape[1]
    averages = np.clip(firsts / size, -1 / math.sqrt(d), 1 / math.sqrt(d))
    means = (prior.precision * prior.mean + size * averages) / (prior.precision + size)
    away = averages - prior.mean
    pull = prior.precision * size / (prior.precision + size)
    pulled, taken = np.einsum("ki,kj->kij", pull * away, away), np.einsum("ki,kj->kij", size * averages, averages)
    divisor = prior.degrees + counts + d + 2
    covariances = (prior.scatter + seconds + pulled - taken) / divisor[:, None, None]
    return Parameters(weights / weights.sum(), means, covariances)


def _valid(mixture: Parameters, least: np.ndarray) -> Parameters:
    """Return the mixture with the covariances' eigenvalues between the least and 1, the most that a ball allows."""
    values, vectors = np.linalg.eigh(mixture.covariances)
    kept = np.clip(values, np.minimum(least, 1.0)[:, None], 1.0)
    return mixture._replace(covariances=(vectors * kept[:, None, :]) @ vectors.transpose(0, 2, 1))
