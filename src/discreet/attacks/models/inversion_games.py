"""Model inversion of classes and of single people, for members and non-members."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.attacks.evidence import EventEvidence
from discreet.attacks.models.image_inversion import (
    QUERY_COUNT,
    Classifier,
    Gallery,
    ImagePrior,
    fit_image_prior,
    recover_images,
)
from discreet.attacks.models.plots import ImageMosaic
from discreet.attacks.progress import track
from discreet.attacks.result import exposure_by_rarity, format_gain
from discreet.audit.binomial import Proportion

_PUBLIC_SHARE = 1 / 3  # of the people: strangers whose images are public, for the imagination and for the judge
_CLASS_PRIOR_WEIGHT = 0.03  # of an image's log-likelihood: a class of many people looks usual


@dataclass(frozen=True)
class ClassInversionSetup:
    """What one split begins with: public images, learned from, and the images of those whom a coin sends in or out."""

    prior: ImagePrior
    referee: Any
    candidates: Gallery
    rows: np.ndarray
    is_in_first: np.ndarray


@dataclass(frozen=True)
class RecoveredClasses:
    """The classes of one classifier as an outsider recovered them, beside how members look, and whom they fit."""

    pictures: np.ndarray
    means: np.ndarray
    is_member: np.ndarray
    is_recognised: np.ndarray
    distances: np.ndarray
    pictures_recognised: int
    accuracy: float


def invert_classes(
    train: Callable[[Gallery], Classifier], gallery: Gallery, rng: np.random.Generator, repeats: int
) -> Any:
    """Return what an `AttackResult` says of pictures that were recovered for every class."""
    games = []
    for _ in track(range(repeats), "classifiers"):
        setup = _draw_setup(gallery, rng)
        games.append(
            (setup, [_recover_classes(train, setup, side, rng) for side in (setup.is_in_first, ~setup.is_in_first)])
        )
    pairs = [both for _, both in games]
    members_recognised = np.concatenate(
        [np.where(one.is_member, one.is_recognised, other.is_recognised) for one, other in pairs]
    )
    non_members_recognised = np.concatenate(
        [np.where(one.is_member, other.is_recognised, one.is_recognised) for one, other in pairs]
    )
    setup, (first, _) = games[0]
    return {
        "metric": "of people's own images are recognised by the recovered pictures",
        # A coin for each person: being in or out is the removal of one, the others are as likely as before. Everybody
        # is in once and out once in each split; where two classifiers disagree, the difference varies up to 1.4 times
        # as much as that of different people would. `EventEvidence` allows for it: its two intervals hold together anyhow.
        "evidence": EventEvidence(
            Proportion.from_outcomes(members_recognised), Proportion.from_outcomes(non_members_recognised)
        ),
        "guessing": 1 / len(first.pictures),
        "details": _class_details(
            [each for both in pairs for each in both], members_recognised, non_members_recognised
        ),
        "exposure": exposure_by_rarity(
            np.linalg.norm(setup.candidates.images - first.means[setup.candidates.labels], axis=1)[first.is_member],
            first.is_recognised[first.is_member],
            labels=[f"image {row}" for row in setup.rows[first.is_member]],
            rarity_label="distance from the mean",
        ),
        "draw": ImageMosaic({"recovered": first.pictures, "members' mean": first.means}),
    }


def nearest_picture(images: np.ndarray, pictures: np.ndarray) -> np.ndarray:
    """Return which picture each image is nearest to.

    >>> nearest_picture(np.array([[0.0, 0.1], [1.0, 0.7]]), np.array([[0.0, 0.0], [1.0, 1.0]])).tolist()
    [0, 1]
    """
    # |a - b|² without the part that all pictures share
    return np.asarray(((pictures**2).sum(axis=1) - 2 * images @ pictures.T).argmin(axis=1))


def _draw_setup(gallery: Gallery, rng: np.random.Generator) -> ClassInversionSetup:
    people = rng.permutation(np.unique(gallery.people))
    public, others = np.split(people, [round(len(people) * _PUBLIC_SHARE)])
    candidates = gallery.of_people(others)
    return ClassInversionSetup(
        prior=fit_image_prior(gallery.of_people(public[::2]).images, rng),
        referee=_fit_referee(gallery.of_people(public[1::2])),
        candidates=candidates,
        rows=np.flatnonzero(np.isin(gallery.people, others)),
        is_in_first=np.isin(candidates.people, others[rng.random(len(others)) < 0.5]),
    )


def _recover_classes(
    train: Callable[[Gallery], Classifier], setup: ClassInversionSetup, is_member: np.ndarray, rng: Any
) -> RecoveredClasses:
    images, labels = setup.candidates.images, setup.candidates.labels
    model = train(Gallery(images[is_member], labels[is_member], setup.candidates.people[is_member]))
    classes = range(int(labels.max()) + 1)
    pictures = recover_images(model, classes, setup.prior, rng, _CLASS_PRIOR_WEIGHT)
    predicted = np.asarray(model.classes_)[np.asarray(model.predict_proba(images[~is_member])).argmax(axis=1)]
    return RecoveredClasses(
        pictures=pictures,
        means=np.array([images[is_member & (labels == label)].mean(axis=0) for label in classes]),
        is_member=is_member,
        is_recognised=nearest_picture(images, pictures) == labels,
        distances=np.linalg.norm(images - pictures[labels], axis=1),
        pictures_recognised=int((setup.referee.predict(pictures) == np.array(classes)).sum()),
        accuracy=float((predicted == labels[~is_member]).mean()),
    )


def _fit_referee(public: Gallery) -> Any:
    """Return a classifier that never saw anybody who may be in the data: whether a picture looks like its class."""
    from sklearn.svm import SVC  # noqa: PLC0415 - an extra

    return SVC(C=10).fit(public.images, public.labels)


def _class_details(
    games: list[RecoveredClasses], members_recognised: np.ndarray, non_members_recognised: np.ndarray
) -> dict[str, Any]:
    pictures = sum(len(game.pictures) for game in games)
    return {
        "pictures that an independent classifier recognises": sum(game.pictures_recognised for game in games)
        / pictures,
        "pictures": pictures,
        "questions for each": QUERY_COUNT,
        "strangers' images that are recognised": float(non_members_recognised.mean()),
        "members beyond strangers": format_gain(members_recognised.astype(float) - non_members_recognised),
        "distance to members' images": float(np.mean([game.distances[game.is_member].mean() for game in games])),
        "distance to strangers' images": float(np.mean([game.distances[~game.is_member].mean() for game in games])),
        "the classifier is right about strangers": float(np.mean([game.accuracy for game in games])),
    }


_PUBLIC_PEOPLE_SHARE = 1 / 3  # of the people: strangers whose images are public
_ALWAYS_ENROLLED = 2  # people who enrol always and do not count: a classifier needs two classes
PERSON_COUNT = 20  # whom a classifier can recognise, if they enrol
_PHOTOS_PER_PERSON = 5  # of each person who enrols
_PHOTO_NOISE = 0.08  # how much a pixel differs between two photos of one person
_DECOY_COUNT = 9
_SHOWN_PEOPLE = 10
_PERSON_PRIOR_WEIGHT = 0.0  # a single person need not look usual


def invert_people(
    train: Callable[[Gallery], Classifier], gallery: Gallery, rng: np.random.Generator, repeats: int
) -> Any:
    """Return what an `AttackResult` says of pictures that were recovered for single people."""
    games = [game for _ in track(range(repeats), "classifiers") for game in _attack_both_splits(train, gallery, rng)]
    people, real_images, pictures, enrolled, is_picked, rarity = (
        np.concatenate(each) for each in zip(*games, strict=True)
    )
    members, non_members = (Proportion.from_outcomes(is_picked[side]) for side in (enrolled, ~enrolled))
    shown = np.flatnonzero(enrolled)[:_SHOWN_PEOPLE]
    return {
        "metric": f"of the people were picked out of {_DECOY_COUNT + 1} by the picture recovered for them",
        # A coin for each person: who does not enrol leaves an empty class behind, which is the removal of one person.
        # A second classifier has those whom the first one has not: everybody is in once and out once.
        "evidence": EventEvidence(members, non_members),
        "guessing": 1 / (_DECOY_COUNT + 1),
        "details": {
            "people who enrolled": members.trials,
            "people who did not": non_members.trials,
            "of these picked out": non_members.value,
            "questions for each": QUERY_COUNT,
        },
        "exposure": exposure_by_rarity(
            rarity[enrolled],
            is_picked[enrolled],
            labels=[f"image {person}" for person in people[enrolled]],
            rarity_label="distance from the mean",
        ),
        "draw": ImageMosaic({"recovered": pictures[shown], "the person": real_images[shown]}),
    }


def pick_candidate(picture: np.ndarray, candidates: np.ndarray) -> int:
    """Return which of some known images a recovered picture is of.

    >>> pick_candidate(np.array([0.1, 0.9]), np.array([[1.0, 1.0], [0.0, 1.0]]))
    1
    """
    return int(((candidates - picture) ** 2).sum(axis=1).argmin())


def _attack_both_splits(
    train: Callable[[Gallery], Classifier], gallery: Gallery, rng: np.random.Generator
) -> Iterator[Any]:
    """Play both sides of a coin: people, their images, pictures recovered, who enrolled, who was found, how rare."""
    order = rng.permutation(np.unique(gallery.people, return_index=True)[1])  # one image of each
    public = round(len(order) * _PUBLIC_PEOPLE_SHARE)
    people, others = order[public : public + PERSON_COUNT], order[public + PERSON_COUNT :]
    prior = fit_image_prior(gallery.images[order[:public]], rng)
    is_in_first = rng.random(PERSON_COUNT) < 0.5
    same_class = [others[gallery.labels[others] == gallery.labels[person]] for person in people]
    real_images = gallery.images[people]
    rarity = [
        np.linalg.norm(image - gallery.images[each].mean(axis=0))
        for image, each in zip(real_images, same_class, strict=True)
    ]
    for coins in (is_in_first, ~is_in_first):
        enrolled = coins | (np.arange(PERSON_COUNT) < _ALWAYS_ENROLLED)
        model = train(_photo_gallery(real_images, np.flatnonzero(enrolled), rng))
        pictures = recover_images(model, range(PERSON_COUNT), prior, rng, _PERSON_PRIOR_WEIGHT)
        decoys = [gallery.images[rng.choice(each, _DECOY_COUNT, replace=False)] for each in same_class]
        is_picked = [
            pick_candidate(picture, np.vstack([image, *decoy_images])) == 0
            for picture, image, decoy_images in zip(pictures, real_images, decoys, strict=True)
        ]
        outcome = people, real_images, pictures, enrolled, np.array(is_picked), np.array(rarity)
        yield tuple(each[_ALWAYS_ENROLLED:] for each in outcome)


def _photo_gallery(images: np.ndarray, enrolled: np.ndarray, rng: np.random.Generator) -> Gallery:
    """Return several photos of each person who enrols, whose class is the person's place."""
    person_of_photo = np.repeat(enrolled, _PHOTOS_PER_PERSON)
    photos = images[person_of_photo] + rng.normal(0, _PHOTO_NOISE, (len(person_of_photo), images.shape[1]))
    return Gallery(np.clip(photos, 0, 1), person_of_photo, person_of_photo)
