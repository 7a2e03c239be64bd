"""Model inversion of classes and of single people, for members and non-members."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.attacks.attack import AttackResult, EventEvidence, Game
from discreet.attacks.data.gallery import Gallery
from discreet.attacks.models.image_inversion import QUERY_COUNT, ImagePrior, fit_image_prior, recover_images
from discreet.attacks.models.plots import ImageMosaic
from discreet.attacks.result import format_gain
from discreet.progress import track

_PUBLIC_SHARE = 1 / 3  # the share of people whose images are public, for the prior and for the referee
_CLASS_PRIOR_WEIGHT = 0.03  # the weight of the prior: a class of many people looks typical


@dataclass(frozen=True)
class ClassInversionSetup:
    """The setup of one split: the prior and the referee from public images, and the candidates for membership."""

    prior: ImagePrior
    referee: Any
    candidates: Gallery
    rows: np.ndarray
    is_in_first: np.ndarray


@dataclass(frozen=True)
class RecoveredClasses:
    """The recovered images of one classifier's classes, the members' mean images, and who is recognised by them."""

    pictures: np.ndarray
    means: np.ndarray
    is_member: np.ndarray
    is_recognised: np.ndarray
    distances: np.ndarray
    pictures_recognised: int
    accuracy: float


def invert_classes(game: Game) -> AttackResult:
    """Recover images of every class."""
    games = []
    for _ in track(range(game.settings.repeats), "classifiers"):
        setup = _draw_setup(game)
        games.append((setup, [_recover_classes(game, setup, side) for side in (setup.is_in_first, ~setup.is_in_first)]))
    members, non_members = (
        np.concatenate(
            [np.where(one.is_member == side, one.is_recognised, other.is_recognised) for _, (one, other) in games]
        )
        for side in (True, False)
    )
    setup, (first, _) = games[0]
    rarity = np.linalg.norm(setup.candidates.images - first.means[setup.candidates.labels], axis=1)
    return game.result(
        "of people's own images recognised from the recovered images",
        # With independent draws, membership is the addition or removal of one person. Everybody is a member once and a
        # non-member once in each split; where the two classifiers disagree, the difference varies up to 1.4 times as
        # much as between different people. `EventEvidence` accounts for it: both intervals hold under any dependence.
        EventEvidence.from_outcomes(members, non_members),
        _class_details([each for _, both in games for each in both], members, non_members),
        guessing=1 / len(first.pictures),
        hit=first.is_recognised[first.is_member],
        rarity=rarity[first.is_member],
        rarity_label="distance from the mean",
        labels=[f"image {row}" for row in setup.rows[first.is_member]],
        draw=ImageMosaic({"recovered": first.pictures, "members' mean": first.means}),
    )


def nearest_picture(images: np.ndarray, pictures: np.ndarray) -> np.ndarray:
    """Return the index of the recovered image nearest to each image.

    >>> nearest_picture(np.array([[0.0, 0.1], [1.0, 0.7]]), np.array([[0.0, 0.0], [1.0, 1.0]])).tolist()
    [0, 1]
    """
    # |a - b|² without |a|², which is the same for all recovered images
    return np.asarray(((pictures**2).sum(axis=1) - 2 * images @ pictures.T).argmin(axis=1))


def _draw_setup(game: Game) -> ClassInversionSetup:
    gallery, rng = game.data, game.rng
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


def _recover_classes(game: Game, setup: ClassInversionSetup, is_member: np.ndarray) -> RecoveredClasses:
    images, labels = setup.candidates.images, setup.candidates.labels
    model = game.release(Gallery(images[is_member], labels[is_member], setup.candidates.people[is_member]))
    classes = range(int(labels.max()) + 1)
    pictures = recover_images(model, classes, setup.prior, game.rng, _CLASS_PRIOR_WEIGHT)
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
    """Return an independent classifier, trained on public images, that judges whether an image looks like its class."""
    from sklearn.svm import SVC  # noqa: PLC0415 - an extra

    return SVC(C=10).fit(public.images, public.labels)


def _class_details(
    games: list[RecoveredClasses], members_recognised: np.ndarray, non_members_recognised: np.ndarray
) -> dict[str, Any]:
    pictures = sum(len(game.pictures) for game in games)
    return {
        "images recognised by an independent classifier": sum(game.pictures_recognised for game in games) / pictures,
        "images recovered": pictures,
        "queries per image": QUERY_COUNT,
        "non-members' images recognised": float(non_members_recognised.mean()),
        "members minus non-members": format_gain(members_recognised.astype(float) - non_members_recognised),
        "distance to members' images": float(np.mean([game.distances[game.is_member].mean() for game in games])),
        "distance to non-members' images": float(np.mean([game.distances[~game.is_member].mean() for game in games])),
        "accuracy of the classifier on non-members": float(np.mean([game.accuracy for game in games])),
    }


_ALWAYS_ENROLLED = 2  # people who always enrol and are not scored, because a classifier needs two classes
PERSON_COUNT = 20  # candidates for enrolment per classifier
_PHOTOS_PER_PERSON = 5
_PHOTO_NOISE = 0.08  # standard deviation of a pixel between photos of one person
_DECOY_COUNT = 9
_SHOWN_PEOPLE = 10
_PERSON_PRIOR_WEIGHT = 0.0  # a single person need not look typical


def invert_people(game: Game) -> AttackResult:
    """Recover images of single people."""
    games = [each for _ in track(range(game.settings.repeats), "classifiers") for each in _attack_both_splits(game)]
    people, real_images, pictures, enrolled, is_picked, rarity = (
        np.concatenate(each) for each in zip(*games, strict=True)
    )
    shown = np.flatnonzero(enrolled)[:_SHOWN_PEOPLE]
    evidence = EventEvidence.from_outcomes(is_picked[enrolled], is_picked[~enrolled])
    return game.result(
        f"of people picked out of {_DECOY_COUNT + 1} candidates by their recovered image",
        # Enrolment is drawn independently: a person who does not enrol leaves an empty class, which is the removal of
        # one person. A second classifier enrols those whom the first does not: everybody is a member once and a
        # non-member once.
        evidence,
        {
            "people enrolled": evidence.members.trials,
            "people not enrolled": evidence.non_members.trials,
            "non-members picked out": evidence.baseline,
            "queries per image": QUERY_COUNT,
        },
        guessing=1 / (_DECOY_COUNT + 1),
        hit=is_picked[enrolled],
        rarity=rarity[enrolled],
        rarity_label="distance from the mean",
        labels=[f"image {person}" for person in people[enrolled]],
        draw=ImageMosaic({"recovered": pictures[shown], "the person": real_images[shown]}),
    )


def _attack_both_splits(game: Game) -> Iterator[Any]:
    """Yield people, their images, the recovered images, enrolment, hits and rarity, for both random assignments."""
    gallery, rng = game.data, game.rng
    order = rng.permutation(np.unique(gallery.people, return_index=True)[1])  # one image of each
    public = round(len(order) * _PUBLIC_SHARE)
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
        model = game.release(_photo_gallery(real_images, np.flatnonzero(enrolled), rng))
        pictures = recover_images(model, range(PERSON_COUNT), prior, rng, _PERSON_PRIOR_WEIGHT)
        decoys = [gallery.images[rng.choice(each, _DECOY_COUNT, replace=False)] for each in same_class]
        is_picked = [
            nearest_picture(picture[None], np.vstack([image, *decoy_images]))[0] == 0
            for picture, image, decoy_images in zip(pictures, real_images, decoys, strict=True)
        ]
        outcome = people, real_images, pictures, enrolled, np.array(is_picked), np.array(rarity)
        yield tuple(each[_ALWAYS_ENROLLED:] for each in outcome)


def _photo_gallery(images: np.ndarray, enrolled: np.ndarray, rng: np.random.Generator) -> Gallery:
    """Return several photos of each enrolled person, with the person's index as their class."""
    person_of_photo = np.repeat(enrolled, _PHOTOS_PER_PERSON)
    photos = images[person_of_photo] + rng.normal(0, _PHOTO_NOISE, (len(person_of_photo), images.shape[1]))
    return Gallery(np.clip(photos, 0, 1), person_of_photo, person_of_photo)
