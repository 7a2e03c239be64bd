"""Model inversion: a prior over images, learned from public ones, and a search by queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.attacks.models.adapters import Classifier

_MAX_AXES, _MIXTURE_SIZE = 30, 15  # principal axes, and mixture components
_MIN_VARIANCE = 0.05  # of a component, relative to the variance of an axis


@dataclass(frozen=True)
class ImagePrior:
    """A prior over images, learned from public ones: principal axes, and a Gaussian mixture of the coordinates."""

    mean: np.ndarray
    axes: np.ndarray
    mixture: Any

    def draw_latents(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Draw latent coordinates of new images."""
        kinds = rng.choice(len(self.mixture.weights_), count, p=self.mixture.weights_)
        deviations = rng.normal(size=(count, len(self.axes)))
        return np.asarray(self.mixture.means_[kinds] + deviations * np.sqrt(self.mixture.covariances_[kinds]))

    def decode(self, latents: np.ndarray) -> np.ndarray:
        """Return the images at these latent coordinates."""
        return np.asarray(np.clip(self.mean + latents @ self.axes, 0, 1))

    def log_likelihood(self, latents: np.ndarray) -> np.ndarray:
        """Return the log-density of latent coordinates."""
        return np.asarray(self.mixture.score_samples(latents))


def fit_image_prior(public: np.ndarray, rng: np.random.Generator) -> ImagePrior:
    """Fit the prior to public images of other people, without their classes.

    >>> from discreet.attacks.data.gallery import digit_gallery
    >>> prior = fit_image_prior(digit_gallery().images[:300], np.random.default_rng(0))
    >>> prior.decode(prior.draw_latents(5, np.random.default_rng(0))).shape
    (5, 64)
    """
    from sklearn.mixture import GaussianMixture  # noqa: PLC0415 - an extra

    mean = public.mean(axis=0)
    _, lengths, directions = np.linalg.svd(public - mean, full_matrices=False)
    axis_count = min(_MAX_AXES, int((lengths > 1e-6 * lengths[0]).sum()))
    axes = directions[:axis_count] * (lengths[:axis_count, np.newaxis] / np.sqrt(len(public)))
    mixture = GaussianMixture(
        min(_MIXTURE_SIZE, len(public)),
        covariance_type="diag",
        reg_covar=_MIN_VARIANCE,
        random_state=int(rng.integers(2**31)),
        tol=0.01,
    )
    latents = (public - mean) @ np.linalg.pinv(axes)
    return ImagePrior(mean, axes, mixture.fit(latents))


_INITIAL_QUERIES, _QUERIES_PER_ROUND, _ROUNDS = 1600, 300, 10
_ELITE_SIZE = 40
_STEP_SCALE = 0.7  # relative to the standard deviation of the elite
_MIN_CONFIDENCE = 1e-9  # avoids the logarithm of 0
QUERY_COUNT = _INITIAL_QUERIES + _ROUNDS * _QUERIES_PER_ROUND


def label_confidences(model: Classifier, labels: Sequence[int], images: np.ndarray) -> np.ndarray:
    """Return the confidence in each label, images × labels; 0 for classes that the classifier does not have."""
    confidences = np.asarray(model.predict_proba(images), float)
    classes = np.asarray(model.classes_)
    return np.column_stack([confidences[:, classes == label].sum(axis=1) for label in labels])


def recover_images(
    model: Classifier, labels: Sequence[int], prior: ImagePrior, rng: np.random.Generator, prior_weight: float
) -> np.ndarray:
    """Return an image per label with high confidence and, weighted by `prior_weight`, a high prior density."""
    label_rows, label_indices = np.arange(len(labels))[:, np.newaxis], np.arange(len(labels))
    first = prior.draw_latents(_INITIAL_QUERIES, rng)
    values = _search_scores(model, labels, prior, prior_weight, first).T
    best = np.argsort(-values, axis=1, kind="stable")[:, :_ELITE_SIZE]
    latents, scores = first[best], values[label_rows, best]
    for _ in range(_ROUNDS):
        parents = latents[label_rows, rng.integers(_ELITE_SIZE, size=(len(labels), _QUERIES_PER_ROUND))]
        proposals = parents + rng.normal(size=parents.shape) * _STEP_SCALE * latents.std(axis=1, keepdims=True)
        proposal_scores = _search_scores(model, labels, prior, prior_weight, proposals.reshape(-1, proposals.shape[-1]))
        proposal_scores = proposal_scores.reshape(len(labels), _QUERIES_PER_ROUND, -1)[label_indices, :, label_indices]
        latents, scores = (
            np.concatenate([latents, proposals], axis=1),
            np.concatenate([scores, proposal_scores], axis=1),
        )
        best = np.argsort(-scores, axis=1, kind="stable")[:, :_ELITE_SIZE]
        latents, scores = latents[label_rows, best], scores[label_rows, best]
    return prior.decode(latents.mean(axis=1))


def _search_scores(
    model: Classifier, labels: Sequence[int], prior: ImagePrior, prior_weight: float, latents: np.ndarray
) -> np.ndarray:
    log_confidences = np.log(np.maximum(label_confidences(model, labels, prior.decode(latents)), _MIN_CONFIDENCE))
    weighted_prior = 0.0 if prior_weight == 0 else prior_weight * prior.log_likelihood(latents)[:, np.newaxis]
    return np.asarray(log_confidences + weighted_prior)
