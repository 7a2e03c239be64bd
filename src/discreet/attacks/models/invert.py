"""Images of a class out of a classifier: model inversion, with an imagination that public images trained."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np

import discreet as dc
from discreet.attacks.checking import generator
from discreet.attacks.defences import CURATOR, EASY, NOTHING, Defence, Shield, shield
from discreet.attacks.listing import Attack
from discreet.attacks.models.identities import PEOPLE, identities
from discreet.attacks.models.images import Gallery, digits
from discreet.attacks.models.looks import looks
from discreet.attacks.models.recover import Classifier, LabelOnly
from discreet.attacks.models.returned import classifier
from discreet.attacks.result import AttackResult
from discreet.kernel.exact import Number, whole

_FEWEST = 60  # people with images of a class: a third is public, and a person is to be picked out of ten
_GAMES: dict[str, Callable[..., Any]] = {"digits": looks, "people": identities}


def invert(  # noqa: PLR0913 - two settings of its own beside what every attack has
    data: Gallery | None = None,
    *,
    defence: Defence = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    classes: Literal["digits", "people"] = "digits",
    repeats: int = 6,
) -> AttackResult:
    """Recover what classes look like by asking a classifier how sure it is about images that one imagines.

    `data` is a `Gallery`, scikit-learn's handwritten digits unless given. A third of it is public; a coin decides whose
    of the other images one classifier learns from and whose another, `repeats` times. Classes are those of the gallery;
    with `classes="people"`, they are twenty people, of whom those who enrol are photographed five times. Released is a
    logistic regression that tells how sure it is ("nothing"), tells the likeliest class only ("easy"), was learned
    privately ("curator"), or what a function of yours makes of the members' `Gallery`: an object with `predict_proba`
    and `classes_`.

    >>> result = invert(random_state=0, repeats=1)
    >>> result.success > 0.7, result.details["pictures that an independent classifier recognises"] > 0.8
    (True, True)
    >>> invert(classes="people", random_state=0, repeats=3).implied.low > 1
    True
    """
    protected = shield(defence, epsilon)
    if classes not in tuple(_GAMES):
        raise ValueError(f'classes must be "digits" or "people", not {classes!r}')
    count = int(whole(repeats, "repeats", 1))
    gallery = digits() if data is None else _checked(data)
    rng = generator(random_state)
    declared = PEOPLE if classes == "people" else int(gallery.labels.max()) + 1
    played = _GAMES[classes](_trainer(protected, declared), gallery, rng, count)
    return AttackResult(attack="invert", shield=protected, **played)


def _trainer(protected: Shield, declared: int) -> Callable[[Gallery], Classifier]:
    """Return how a classifier is made of the members' images under a defence."""
    if protected.make is not None:
        return partial(_own, protected.make, declared)
    made: dict[str, Callable[[Gallery], Classifier]] = {
        NOTHING: _exact,
        EASY: _silent,
        CURATOR: partial(_private, protected, declared),
    }
    return made[protected.word]


def _own(make: Callable[[Gallery], Any], declared: int, members: Gallery) -> Classifier:
    return classifier(make(members), declared)


def _exact(members: Gallery) -> Classifier:
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - an extra

    model: Classifier = LogisticRegression(max_iter=1000).fit(members.images, members.labels)
    return model


def _silent(members: Gallery) -> Classifier:
    return LabelOnly(_exact(members))


def _private(protected: Shield, declared: int, members: Gallery) -> Classifier:
    # All images of a person count as one: it is people whom the promise is for.
    model: Classifier = dc.learn.LogisticRegression(
        epsilon=protected.price, bounds=(0, 1), classes=range(declared)
    ).fit(members.images, members.labels, unit=members.people)
    return model


def _checked(data: Any) -> Gallery:
    if not isinstance(data, Gallery):
        raise TypeError(f"data must be a Gallery(images, labels), not {type(data).__name__}")
    sizes = np.bincount(np.unique(np.column_stack([data.labels, data.people]), axis=0)[:, 0].astype(int))
    if sizes.size < 2 or sizes.min() < _FEWEST:
        raise ValueError(f"data must have classes 0, 1, ..., two or more, with images of {_FEWEST} people each")
    if (data.images == data.images[0]).all():
        raise ValueError("data: all images are the same, so that classes have no looks to recover; give others")
    return data


ATTACK = Attack(
    run=invert,
    topic="facts",
    says="Recovers what a classifier's classes look like, from its confidences.",
    nothing="a logistic regression that tells how sure it is of every class",
    easy="the classifier tells the likeliest class only",
    curator="a private logistic regression; all images of a person count as one",
    built_in="scikit-learn's 1,797 handwritten digits",
)
