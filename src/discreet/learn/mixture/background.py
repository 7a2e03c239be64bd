"""A background: one wide component of small weight, so that nobody is astronomically far from all components.

The number of components stays the same: the two that are most alike become one. This is post-processing.
"""

import math

import numpy as np

from discreet.learn.mixture.dp_em import GaussianMixtureParameters
from discreet.learn.mixture.marginals import MarginalTables

MAX_SHARE = 0.05  # of all units
_DEVIATIONS = 0.5  # of noise: with more, the background costs clearly separated clusters more than it protects others
_SQUARED_DISTANCE = 18.0  # mean of the background's points from the mean of all, in overall deviations


def hidden_share(tables: MarginalTables) -> float:
    """Return the share of units that noise can hide if they are far from all others, but in the same cells."""
    sd = tables.sd / math.sqrt(len(tables.marginals))  # a unit is in every table
    return min(MAX_SHARE, _DEVIATIONS * sd / tables.total)


def add_background(mixture: GaussianMixtureParameters, share: float) -> GaussianMixtureParameters:
    """Return the mixture with one more component, which has this weight and is wider than the whole mixture.

    >>> one = GaussianMixtureParameters(np.ones(1), np.zeros((1, 2)), np.eye(2)[None])
    >>> add_background(one, 0.1).covariances[1].tolist()
    [[9.0, 0.0], [0.0, 9.0]]
    """
    weights, means, covariances = mixture
    centre = weights @ means
    offsets = means - centre
    overall = np.einsum("k,kij->ij", weights, covariances + offsets[:, :, np.newaxis] * offsets[:, np.newaxis])
    spread = max(1.0, _SQUARED_DISTANCE / len(centre))
    return GaussianMixtureParameters(
        np.append(weights * (1 - share), share),
        np.vstack([means, centre]),
        np.concatenate([covariances, spread * overall[np.newaxis]]),
    )


def merge_most_similar(mixture: GaussianMixtureParameters) -> GaussianMixtureParameters:
    """Return the mixture with two components replaced by a Gaussian with their moments, at the least loss.

    The loss is an upper bound of the divergence from the mixture (Runnalls, 2007).
    """
    weights, means, covariances = mixture
    i, j = np.triu_indices(len(weights), 1)
    both = weights[i] + weights[j]
    of_i, of_j = weights[i] / both, weights[j] / both
    centres = of_i[:, np.newaxis] * means[i] + of_j[:, np.newaxis] * means[j]
    offsets = np.sqrt(of_i * of_j)[:, np.newaxis] * (means[i] - means[j])
    within = of_i[:, np.newaxis, np.newaxis] * covariances[i] + of_j[:, np.newaxis, np.newaxis] * covariances[j]
    merged = within + offsets[:, :, np.newaxis] * offsets[:, np.newaxis]
    volumes = weights * np.linalg.slogdet(covariances)[1]
    best = int(np.argmin(both * np.linalg.slogdet(merged)[1] - volumes[i] - volumes[j]))
    others = np.delete(np.arange(len(weights)), [i[best], j[best]])
    return GaussianMixtureParameters(
        np.append(weights[others], both[best]),
        np.vstack([means[others], centres[best]]),
        np.concatenate([covariances[others], merged[best : best + 1]]),
    )
