"""Model inversion: a gallery of images, a prior learned from public ones, and a search by queries."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from discreet.attacks.validation import entry_array, float_array

_MAX_AXES, _MIXTURE_SIZE = 30, 15  # how many directions images vary in, and kinds of images in them
_MIN_VARIANCE = 0.05  # of a direction's variance: no kind is narrower


@dataclass(frozen=True)
class Gallery:
    """Square grey images from 0 to 1, a row of pixels each, with their classes 0, 1, 2, ... and whose they are.

    Without `people`, every image is of another person.

    >>> Gallery(images=[[0.0, 1.0, 1.0, 0.0]], labels=[3]).side
    2
    """

    images: Any
    labels: Any
    people: Any = None

    def __post_init__(self) -> None:
        images, labels = float_array(self.images, "images"), entry_array(self.labels, "labels")
        if images.ndim != 2 or not images.size or math.isqrt(images.shape[1]) ** 2 != images.shape[1]:
            raise ValueError(
                "images must be rows of the pixels of square images: flatten them, and crop them if need be"
            )
        people = np.arange(len(images)) if self.people is None else entry_array(self.people, "people")
        if not ((images >= 0) & (images <= 1)).all():
            raise ValueError("images must have pixels from 0 to 1: divide them by the brightest")
        if labels.shape != (len(images),) or labels.dtype.kind not in "iu" or labels.min() < 0:
            raise ValueError("labels must be a class 0, 1, 2, ... for each image")
        if people.shape != labels.shape:
            raise ValueError("people must say whose each image is")
        for name, value in (("images", images), ("labels", labels), ("people", people)):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.images)

    @property
    def side(self) -> int:
        """How many pixels an image is wide and high."""
        return math.isqrt(self.images.shape[1])

    def of_people(self, people: np.ndarray) -> "Gallery":
        """Return the images of some people."""
        is_chosen = np.isin(self.people, people)
        return Gallery(self.images[is_chosen], self.labels[is_chosen], self.people[is_chosen])


def digit_gallery() -> Gallery:
    """Return the 1,797 handwritten digits that come with scikit-learn."""
    from sklearn.datasets import load_digits  # noqa: PLC0415 - an extra

    images, labels = load_digits(return_X_y=True)
    return Gallery(images / 16, labels)


@dataclass(frozen=True)
class ImagePrior:
    """What images of a sort look like, learned from public ones: a few directions, and a mixture of kinds in them."""

    mean: np.ndarray
    axes: np.ndarray
    mixture: Any

    def draw_latents(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Draw where new images lie."""
        kinds = rng.choice(len(self.mixture.weights_), count, p=self.mixture.weights_)
        deviations = rng.normal(size=(count, len(self.axes)))
        return np.asarray(self.mixture.means_[kinds] + deviations * np.sqrt(self.mixture.covariances_[kinds]))

    def decode(self, latents: np.ndarray) -> np.ndarray:
        """Draw the images that lie at these places."""
        return np.asarray(np.clip(self.mean + latents @ self.axes, 0, 1))

    def log_likelihood(self, latents: np.ndarray) -> np.ndarray:
        """Return the logarithm of how usual images at these places are."""
        return np.asarray(self.mixture.score_samples(latents))


def fit_image_prior(public: np.ndarray, rng: np.random.Generator) -> ImagePrior:
    """Learn from public images of other people, without their classes.

    >>> dream = fit_image_prior(digit_gallery().images[:300], np.random.default_rng(0))
    >>> dream.decode(dream.places(5, np.random.default_rng(0))).shape
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
_STEP_SCALE = 0.7  # of how far the best ones lie apart
_MIN_CONFIDENCE = 1e-9  # confidences below are no confidence
QUERY_COUNT = _INITIAL_QUERIES + _ROUNDS * _QUERIES_PER_ROUND


class Classifier(Protocol):
    """What an outsider sees of a classifier: its classes, and how sure it is of each of them for any image."""

    @property
    def classes_(self) -> Any:
        """The classes that it has seen."""
        ...

    def predict_proba(self, X: np.ndarray) -> Any:
        """Return a row of confidences for each image."""
        ...


@dataclass(frozen=True)
class LabelOnlyClassifier:
    """A classifier that tells the likeliest class, and nothing else."""

    model: Classifier

    @property
    def classes_(self) -> Any:
        """The classes."""
        return self.model.classes_

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return certainty for the likeliest class."""
        confidences = np.asarray(self.model.predict_proba(X))
        return np.asarray(np.eye(confidences.shape[1])[confidences.argmax(axis=1)])


def label_confidences(model: Classifier, labels: Sequence[int], images: np.ndarray) -> np.ndarray:
    """Return how sure a classifier is of each label, for each image; of a class that it does not have, never."""
    confidences = np.asarray(model.predict_proba(images), float)
    classes = np.asarray(model.classes_)
    return np.column_stack([confidences[:, classes == label].sum(axis=1) for label in labels])


def recover_images(
    model: Classifier, labels: Sequence[int], prior: ImagePrior, rng: np.random.Generator, prior_weight: float
) -> np.ndarray:
    """Return an image for each label: one that the classifier is sure of and, as `prior_weight` weighs it, a usual one."""
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
