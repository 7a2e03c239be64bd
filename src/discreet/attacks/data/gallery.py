"""Square greyscale images of people or things, with their classes."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.attacks.attack import Source
from discreet.attacks.validation import array_or_object, float_array, require, set_fields


@dataclass(frozen=True)
class Gallery:
    """Square greyscale images with pixels from 0 to 1, one row each, with their classes 0, 1, 2, ... and people.

    Without `people`, every image belongs to a different person.

    >>> len(Gallery(images=[[0.0, 1.0, 1.0, 0.0]], labels=[3]))
    1
    """

    images: Any
    labels: Any
    people: Any = None

    def __post_init__(self) -> None:
        images, labels = float_array(self.images, "images"), array_or_object(self.labels)
        require(
            images.ndim == 2 and images.size and math.isqrt(images.shape[1]) ** 2 == images.shape[1],
            "images must be square images, one row of pixels each: flatten them, and crop them if necessary",
        )
        people = np.arange(len(images)) if self.people is None else array_or_object(self.people)
        require(
            ((images >= 0) & (images <= 1)).all(),
            "images must have pixels from 0 to 1: divide them by the largest possible value",
        )
        require(
            labels.shape == (len(images),) and labels.dtype.kind in "iu" and labels.min() >= 0,
            "labels must be one class 0, 1, 2, ... per image",
        )
        require(people.shape == labels.shape, "people must have one entry per image")
        set_fields(self, images=images, labels=labels, people=people)

    def __len__(self) -> int:
        return len(self.images)

    def of_people(self, people: np.ndarray) -> "Gallery":
        """Return the images of these people."""
        is_chosen = np.isin(self.people, people)
        return Gallery(self.images[is_chosen], self.labels[is_chosen], self.people[is_chosen])


def digit_gallery() -> Gallery:
    """Return the 1,797 handwritten digits that come with scikit-learn."""
    from sklearn.datasets import load_digits  # noqa: PLC0415 - an extra

    images, labels = load_digits(return_X_y=True)
    return Gallery(images / 16, labels)


GALLERY = Source(
    Gallery,
    "Gallery(images, labels)",
    lambda _: digit_gallery(),
    built_in="scikit-learn's 1,797 handwritten digits",
)
