"""Model inversion: recover images of a class from a classifier, with a prior learned from public images."""

from collections.abc import Callable
from typing import Literal

import numpy as np

import discreet as dc
from discreet.attacks.attack import (
    CURATOR,
    EASY,
    NOTHING,
    Attack,
    AttackResult,
    DefenceChoice,
    DefenceRelease,
    Game,
    Number,
    choice,
    whole,
)
from discreet.attacks.data.gallery import GALLERY, Gallery
from discreet.attacks.models.adapters import Classifier, checked_classifier, reduce_confidences
from discreet.attacks.models.inversion_games import PERSON_COUNT, invert_classes, invert_people
from discreet.attacks.validation import require

_MIN_PEOPLE_PER_CLASS = 60  # a third is public, and each person is picked out of ten candidates
_GAMES: dict[str, Callable[[Game], AttackResult]] = {"digits": invert_classes, "people": invert_people}


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
    return ATTACK.run(data, defence, epsilon, random_state, classes=classes, repeats=repeats)


def _play(game: Game) -> AttackResult:
    _check_gallery(game.data)
    return _GAMES[game.settings.classes](game)


def _check_gallery(data: Gallery) -> None:
    sizes = np.bincount(np.unique(np.column_stack([data.labels, data.people]), axis=0)[:, 0].astype(int))
    require(
        sizes.size >= 2 and sizes.min() >= _MIN_PEOPLE_PER_CLASS,
        f"data must have at least two classes 0, 1, ..., each with images of {_MIN_PEOPLE_PER_CLASS} or more people",
    )
    require(not (data.images == data.images[0]).all(), "data: all images are equal, so there is nothing to recover")


def _fit_non_private(_: Game, members: Gallery) -> Classifier:
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - an extra

    model = LogisticRegression(max_iter=1000).fit(members.images, members.labels)
    return Classifier(model.classes_, model.predict_proba)


def _fit_label_only(game: Game, members: Gallery) -> Classifier:
    model = _fit_non_private(game, members)
    return Classifier(model.classes_, lambda images: reduce_confidences(model.predict_proba(images), "label"))


def _fit_privately(game: Game, members: Gallery) -> Classifier:
    # User-level privacy: all images of a person form one unit.
    model = dc.learn.LogisticRegression(epsilon=game.epsilon, bounds=(0, 1), classes=range(_class_count(game)))
    model.fit(members.images, members.labels, unit=members.people)
    return Classifier(model.classes_, model.predict_proba)


def _class_count(game: Game) -> int:
    return PERSON_COUNT if game.settings.classes == "people" else int(game.data.labels.max()) + 1


ATTACK = Attack(
    function=invert,
    docs_page="facts",
    summary="Recovers images of a classifier's classes from its confidences.",
    data=GALLERY,
    releases={
        NOTHING: DefenceRelease("a logistic regression with confidences for all classes", _fit_non_private),
        EASY: DefenceRelease(
            "the same classifier, with the most likely class only",
            _fit_label_only,
        ),
        CURATOR: DefenceRelease("a private logistic regression; all images of a person form one unit", _fit_privately),
    },
    own=lambda game, members: checked_classifier(game.ask_user(members), _class_count(game)),
    play=_play,
    settings={"classes": choice(_GAMES), "repeats": whole(1)},
)
