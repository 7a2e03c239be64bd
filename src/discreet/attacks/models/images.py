"""Images of people, and a memory of images in general from which new ones can be imagined."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.attacks.models.inputs import entries, floats

_AXES, _KINDS = 30, 15  # how many directions images vary in, and kinds of images in them
_ROOM = 0.05  # of a direction's variance: no kind is narrower


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
        images, labels = floats(self.images, "images"), entries(self.labels, "labels")
        if images.ndim != 2 or not images.size or math.isqrt(images.shape[1]) ** 2 != images.shape[1]:
            raise ValueError(
                "images must be rows of the pixels of square images: flatten them, and crop them if need be"
            )
        people = np.arange(len(images)) if self.people is None else entries(self.people, "people")
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

    def of(self, people: np.ndarray) -> "Gallery":
        """Return the images of some people."""
        kept = np.isin(self.people, people)
        return Gallery(self.images[kept], self.labels[kept], self.people[kept])


def digits() -> Gallery:
    """Return the 1,797 handwritten digits that come with scikit-learn."""
    from sklearn.datasets import load_digits  # noqa: PLC0415 - an extra

    images, labels = load_digits(return_X_y=True)
    return Gallery(images / 16, labels)


@dataclass(frozen=True)
class Imagination:
    """What images of a sort look like, learned from public ones: a few directions, and a mixture of kinds in them."""

    middle: np.ndarray
    axes: np.ndarray
    mixture: Any

    def places(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Draw where new images lie."""
        kinds = rng.choice(len(self.mixture.weights_), count, p=self.mixture.weights_)
        away = rng.normal(size=(count, len(self.axes)))
        return np.asarray(self.mixture.means_[kinds] + away * np.sqrt(self.mixture.covariances_[kinds]))

    def pictures(self, places: np.ndarray) -> np.ndarray:
        """Draw the images that lie at these places."""
        return np.asarray(np.clip(self.middle + places @ self.axes, 0, 1))

    def likelihood(self, places: np.ndarray) -> np.ndarray:
        """Return the logarithm of how usual images at these places are."""
        return np.asarray(self.mixture.score_samples(places))


def imagination(public: np.ndarray, rng: np.random.Generator) -> Imagination:
    """Learn from public images of other people, without their classes.

    >>> dream = imagination(digits().images[:300], np.random.default_rng(0))
    >>> dream.pictures(dream.places(5, np.random.default_rng(0))).shape
    (5, 64)
    """
    from sklearn.mixture import GaussianMixture  # noqa: PLC0415 - an extra

    middle = public.mean(axis=0)
    _, lengths, directions = np.linalg.svd(public - middle, full_matrices=False)
    kept = min(_AXES, int((lengths > 1e-6 * lengths[0]).sum()))
    axes = directions[:kept] * (lengths[:kept, np.newaxis] / np.sqrt(len(public)))
    mixture = GaussianMixture(
        min(_KINDS, len(public)),
        covariance_type="diag",
        reg_covar=_ROOM,
        random_state=int(rng.integers(2**31)),
        tol=0.01,
    )
    places = (public - middle) @ np.linalg.pinv(axes)
    return Imagination(middle, axes, mixture.fit(places))
