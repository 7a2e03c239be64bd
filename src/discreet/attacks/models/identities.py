"""Whose face is it: a classifier that recognises people, each of them a class, and what it gives away of one."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from discreet.attacks.evidence import Found
from discreet.attacks.models.images import Gallery, imagination
from discreet.attacks.models.mosaic import Mosaic
from discreet.attacks.models.recover import QUESTIONS, Classifier, recover
from discreet.attacks.progress import track
from discreet.attacks.rarity import exposure
from discreet.audit.counting import Share

_PUBLIC = 1 / 3  # of the people: strangers whose images are public
_ANCHORS = 2  # people who enrol always and do not count: a classifier needs two classes
PEOPLE = 20  # whom a classifier can recognise, if they enrol
_PHOTOS = 5  # of each person who enrols
_BLUR = 0.08  # how much a pixel differs between two photos of one person
_DECOYS = 9
_SHOWN = 10
_CAUTION = 0.0  # a single person need not look usual


def identities(make: Callable[[Gallery], Classifier], gallery: Gallery, rng: np.random.Generator, repeats: int) -> Any:
    """Return what an `AttackResult` says of pictures that were recovered for single people."""
    games = [game for _ in track(range(repeats), "classifiers") for game in _split(make, gallery, rng)]
    people, real, pictures, enrolled, found, rarity = (np.concatenate(each) for each in zip(*games, strict=True))
    members, strangers = (Share.of(found[side]) for side in (enrolled, ~enrolled))
    shown = np.flatnonzero(enrolled)[:_SHOWN]
    return {
        "metric": f"of the people were picked out of {_DECOYS + 1} by the picture recovered for them",
        # A coin for each person: who does not enrol leaves an empty class behind, which is the removal of one person.
        # A second classifier has those whom the first one has not: everybody is in once and out once.
        "evidence": Found(members, strangers),
        "guessing": 1 / (_DECOYS + 1),
        "details": {
            "people who enrolled": members.trials,
            "people who did not": strangers.trials,
            "of these picked out": strangers.value,
            "questions for each": QUESTIONS,
        },
        "exposure": exposure(
            rarity[enrolled],
            found[enrolled],
            labels=[f"image {person}" for person in people[enrolled]],
            by="distance from the mean",
        ),
        "draw": Mosaic({"recovered": pictures[shown], "the person": real[shown]}),
    }


def pick(picture: np.ndarray, candidates: np.ndarray) -> int:
    """Return which of some known images a recovered picture is of.

    >>> pick(np.array([0.1, 0.9]), np.array([[1.0, 1.0], [0.0, 1.0]]))
    1
    """
    return int(((candidates - picture) ** 2).sum(axis=1).argmin())


def _split(make: Callable[[Gallery], Classifier], gallery: Gallery, rng: np.random.Generator) -> Iterator[Any]:
    """Play both sides of a coin: people, their images, pictures recovered, who enrolled, who was found, how rare."""
    order = rng.permutation(np.unique(gallery.people, return_index=True)[1])  # one image of each
    public = round(len(order) * _PUBLIC)
    people, others = order[public : public + PEOPLE], order[public + PEOPLE :]
    dream = imagination(gallery.images[order[:public]], rng)
    heads = rng.random(PEOPLE) < 0.5
    alike = [others[gallery.labels[others] == gallery.labels[person]] for person in people]
    real = gallery.images[people]
    rarity = [
        np.linalg.norm(image - gallery.images[each].mean(axis=0)) for image, each in zip(real, alike, strict=True)
    ]
    for coins in (heads, ~heads):
        enrolled = coins | (np.arange(PEOPLE) < _ANCHORS)
        model = make(_photographed(real, np.flatnonzero(enrolled), rng))
        pictures = recover(model, range(PEOPLE), dream, rng, _CAUTION)
        decoys = [gallery.images[rng.choice(each, _DECOYS, replace=False)] for each in alike]
        found = [
            pick(picture, np.vstack([image, *strangers])) == 0
            for picture, image, strangers in zip(pictures, real, decoys, strict=True)
        ]
        told = people, real, pictures, enrolled, np.array(found), np.array(rarity)
        yield tuple(each[_ANCHORS:] for each in told)


def _photographed(images: np.ndarray, enrolled: np.ndarray, rng: np.random.Generator) -> Gallery:
    """Return several photos of each person who enrols, whose class is the person's place."""
    who = np.repeat(enrolled, _PHOTOS)
    photos = images[who] + rng.normal(0, _BLUR, (len(who), images.shape[1]))
    return Gallery(np.clip(photos, 0, 1), who, who)
