"""Model inversion: recover images of a class from a classifier, with a prior learned from public images."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np

import discreet as dc
from discreet.attacks.defences import CURATOR, EASY, NOTHING, Defence, DefenceChoice, parse_defence
from discreet.attacks.models.adapters import checked_classifier
from discreet.attacks.models.image_inversion import Classifier, Gallery, LabelOnlyClassifier, digit_gallery
from discreet.attacks.models.inversion_games import PERSON_COUNT, invert_classes, invert_people
from discreet.attacks.registry import Attack
from discreet.attacks.result import AttackResult
from discreet.attacks.validation import random_generator
from discreet.kernel.numbers import Number, as_integer

_MIN_PEOPLE_PER_CLASS = 60  # a third is public, and each person is picked out of ten candidates
_GAMES: dict[str, Callable[..., Any]] = {"digits": invert_classes, "people": invert_people}


def invert(  # noqa: PLR0913 - the common arguments and two settings
    data: Gallery | None = None,
    *,
    defence: DefenceChoice = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    classes: Literal["digits", "people"] = "digits",
    repeats: int = 6,
) -> AttackResult:
    """Recover images of classes from the confidences of a classifier for generated images.

    `data` is a `Gallery`, scikit-learn's handwritten digits by default. A third of the people are public; the others
    are divided at random between the training data of two classifiers, `repeats` times. The classes are those of the
    gallery, or, with `classes="people"`, twenty people of whom those who enrol are photographed five times. The release
    is a logistic regression with all confidences ("nothing"), with the most likely class only ("easy"), or a private
    one ("curator"). A function as defence gets the members' `Gallery` and returns an object with `predict_proba` and
    `classes_`.

    >>> result = invert(random_state=0, repeats=1)
    >>> result.success > 0.7, result.details["images recognised by an independent classifier"] > 0.8
    (True, True)
    >>> invert(classes="people", random_state=0, repeats=3).implied.low > 1
    True
    """
    parsed_defence = parse_defence(defence, epsilon)
    if classes not in tuple(_GAMES):
        raise ValueError(f'classes must be "digits" or "people", not {classes!r}')
    repeat_count = int(as_integer(repeats, "repeats", 1))
    gallery = digit_gallery() if data is None else _checked_gallery(data)
    rng = random_generator(random_state)
    class_count = PERSON_COUNT if classes == "people" else int(gallery.labels.max()) + 1
    outcome = _GAMES[classes](_classifier_trainer(parsed_defence, class_count), gallery, rng, repeat_count)
    return AttackResult(attack="invert", against=parsed_defence, **outcome)


def _classifier_trainer(defence: Defence, class_count: int) -> Callable[[Gallery], Classifier]:
    """Return the function that trains a classifier on the members' images under a defence."""
    if defence.user_function is not None:
        return partial(_user_classifier, defence.user_function, class_count)
    trainers: dict[str, Callable[[Gallery], Classifier]] = {
        NOTHING: _fit_non_private,
        EASY: _fit_label_only,
        CURATOR: partial(_fit_private, defence, class_count),
    }
    return trainers[defence.kind]


def _user_classifier(user_function: Callable[[Gallery], Any], class_count: int, members: Gallery) -> Classifier:
    return checked_classifier(user_function(members), class_count)


def _fit_non_private(members: Gallery) -> Classifier:
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - an extra

    model: Classifier = LogisticRegression(max_iter=1000).fit(members.images, members.labels)
    return model


def _fit_label_only(members: Gallery) -> Classifier:
    return LabelOnlyClassifier(_fit_non_private(members))


def _fit_private(defence: Defence, class_count: int, members: Gallery) -> Classifier:
    # User-level privacy: all images of a person form one unit.
    model: Classifier = dc.learn.LogisticRegression(
        epsilon=defence.curator_epsilon, bounds=(0, 1), classes=range(class_count)
    ).fit(members.images, members.labels, unit=members.people)
    return model


def _checked_gallery(data: Any) -> Gallery:
    if not isinstance(data, Gallery):
        raise TypeError(f"data must be Gallery(images, labels), not {type(data).__name__}")
    sizes = np.bincount(np.unique(np.column_stack([data.labels, data.people]), axis=0)[:, 0].astype(int))
    if sizes.size < 2 or sizes.min() < _MIN_PEOPLE_PER_CLASS:
        raise ValueError(
            f"data must have at least two classes 0, 1, ..., each with images of {_MIN_PEOPLE_PER_CLASS} or more people"
        )
    if (data.images == data.images[0]).all():
        raise ValueError("data: all images are equal, so there is nothing to recover")
    return data


ATTACK = Attack(
    run=invert,
    docs_page="facts",
    summary="Recovers images of a classifier's classes from its confidences.",
    without_defence="a logistic regression with confidences for all classes",
    with_easy_fix="the same classifier, with the most likely class only",
    with_curator="a private logistic regression; all images of a person form one unit",
    built_in_data="scikit-learn's 1,797 handwritten digits",
)
