"""What a class looks like, recovered from a classifier of many people, and whether its members lose more by it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.attacks.evidence import Found
from discreet.attacks.models.gains import gain
from discreet.attacks.models.images import Gallery, Imagination, imagination
from discreet.attacks.models.mosaic import Mosaic
from discreet.attacks.models.recover import QUESTIONS, Classifier, recover
from discreet.attacks.progress import track
from discreet.attacks.rarity import exposure
from discreet.audit.counting import Share

_PUBLIC = 1 / 3  # of the people: strangers whose images are public, for the imagination and for the judge
_CAUTION = 0.03  # of an image's log-likelihood: a class of many people looks usual


@dataclass(frozen=True)
class Scene:
    """What one split begins with: public images, learned from, and the images of those whom a coin sends in or out."""

    dream: Imagination
    judge: Any
    asked: Gallery
    rows: np.ndarray
    heads: np.ndarray


@dataclass(frozen=True)
class Recovered:
    """The classes of one classifier as an outsider recovered them, beside how members look, and whom they fit."""

    pictures: np.ndarray
    means: np.ndarray
    members: np.ndarray
    fits: np.ndarray
    away: np.ndarray
    named: int
    accuracy: float


def looks(make: Callable[[Gallery], Classifier], gallery: Gallery, rng: np.random.Generator, repeats: int) -> Any:
    """Return what an `AttackResult` says of pictures that were recovered for every class."""
    games = []
    for _ in track(range(repeats), "classifiers"):
        scene = _scene(gallery, rng)
        games.append((scene, [_recovered(make, scene, side, rng) for side in (scene.heads, ~scene.heads)]))
    pairs = [both for _, both in games]
    inside = np.concatenate([np.where(one.members, one.fits, other.fits) for one, other in pairs])
    outside = np.concatenate([np.where(one.members, other.fits, one.fits) for one, other in pairs])
    scene, (first, _) = games[0]
    return {
        "metric": "of people's own images are recognised by the recovered pictures",
        # A coin for each person: being in or out is the removal of one, the others are as likely as before. Everybody
        # is in once and out once in each split; where two classifiers disagree, the difference varies up to 1.4 times
        # as much as that of different people would. `Found` allows for it: its two intervals hold together anyhow.
        "evidence": Found(Share.of(inside), Share.of(outside)),
        "guessing": 1 / len(first.pictures),
        "details": _details([each for both in pairs for each in both], inside, outside),
        "exposure": exposure(
            np.linalg.norm(scene.asked.images - first.means[scene.asked.labels], axis=1)[first.members],
            first.fits[first.members],
            labels=[f"image {row}" for row in scene.rows[first.members]],
            by="distance from the mean",
        ),
        "draw": Mosaic({"recovered": first.pictures, "members' mean": first.means}),
    }


def classify(images: np.ndarray, pictures: np.ndarray) -> np.ndarray:
    """Return which picture each image is nearest to.

    >>> classify(np.array([[0.0, 0.1], [1.0, 0.7]]), np.array([[0.0, 0.0], [1.0, 1.0]])).tolist()
    [0, 1]
    """
    # |a - b|² without the part that all pictures share
    return np.asarray(((pictures**2).sum(axis=1) - 2 * images @ pictures.T).argmin(axis=1))


def _scene(gallery: Gallery, rng: np.random.Generator) -> Scene:
    people = rng.permutation(np.unique(gallery.people))
    public, others = np.split(people, [round(len(people) * _PUBLIC)])
    asked = gallery.of(others)
    return Scene(
        dream=imagination(gallery.of(public[::2]).images, rng),
        judge=_judge(gallery.of(public[1::2])),
        asked=asked,
        rows=np.flatnonzero(np.isin(gallery.people, others)),
        heads=np.isin(asked.people, others[rng.random(len(others)) < 0.5]),
    )


def _recovered(make: Callable[[Gallery], Classifier], scene: Scene, side: np.ndarray, rng: Any) -> Recovered:
    images, labels = scene.asked.images, scene.asked.labels
    model = make(Gallery(images[side], labels[side], scene.asked.people[side]))
    classes = range(int(labels.max()) + 1)
    pictures = recover(model, classes, scene.dream, rng, _CAUTION)
    told = np.asarray(model.classes_)[np.asarray(model.predict_proba(images[~side])).argmax(axis=1)]
    return Recovered(
        pictures=pictures,
        means=np.array([images[side & (labels == label)].mean(axis=0) for label in classes]),
        members=side,
        fits=classify(images, pictures) == labels,
        away=np.linalg.norm(images - pictures[labels], axis=1),
        named=int((scene.judge.predict(pictures) == np.array(classes)).sum()),
        accuracy=float((told == labels[~side]).mean()),
    )


def _judge(public: Gallery) -> Any:
    """Return a classifier that never saw anybody who may be in the data: whether a picture looks like its class."""
    from sklearn.svm import SVC  # noqa: PLC0415 - an extra

    return SVC(C=10).fit(public.images, public.labels)


def _details(games: list[Recovered], inside: np.ndarray, outside: np.ndarray) -> dict[str, Any]:
    pictures = sum(len(game.pictures) for game in games)
    return {
        "pictures that an independent classifier recognises": sum(game.named for game in games) / pictures,
        "pictures": pictures,
        "questions for each": QUESTIONS,
        "strangers' images that are recognised": float(outside.mean()),
        "members beyond strangers": gain(inside.astype(float) - outside),
        "distance to members' images": float(np.mean([game.away[game.members].mean() for game in games])),
        "distance to strangers' images": float(np.mean([game.away[~game.members].mean() for game in games])),
        "the classifier is right about strangers": float(np.mean([game.accuracy for game in games])),
    }
