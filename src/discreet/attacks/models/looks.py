"""What a class looks like, recovered from a classifier of many people, and whether its members lose more by it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.attacks.evidence import Found
from discreet.attacks.models.images import Gallery, imagination
from discreet.attacks.models.mosaic import Mosaic
from discreet.attacks.models.recover import QUESTIONS, Classifier, recover
from discreet.attacks.progress import track
from discreet.attacks.rarity import exposure
from discreet.audit.counting import Share

_PUBLIC = 1 / 3  # of the people: strangers whose images are public, for the imagination and for the judge
_CAUTION = 0.03  # of an image's log-likelihood: a class of many people looks usual


@dataclass(frozen=True)
class Recovered:
    """One classifier's classes as an outsider sees them, beside how they look, and who is known by it."""

    pictures: np.ndarray
    means: np.ndarray
    named: int
    accuracy: float
    inside: np.ndarray
    outside: np.ndarray
    near: float
    far: float
    rarity: np.ndarray
    members: np.ndarray


def looks(make: Callable[[Gallery], Classifier], gallery: Gallery, rng: np.random.Generator, repeats: int) -> Any:
    """Return what an `AttackResult` says of pictures that were recovered for every class."""
    games = [_game(make, gallery, rng) for _ in track(range(repeats), "classifiers")]
    inside, outside = (np.concatenate([getattr(game, side) for game in games]) for side in ("inside", "outside"))
    first = games[0]
    return {
        "metric": "of people's own images are recognised by the recovered pictures",
        # A coin for each person: being in or out is the removal of one, the others are as likely as before. All are
        # compared with the same pictures, so that what makes a picture good or bad by chance is no evidence.
        "evidence": Found(Share(int(inside.sum()), inside.size), Share(int(outside.sum()), outside.size)),
        "guessing": 1 / len(first.pictures),
        "details": _details(games, inside, outside),
        "exposure": exposure(
            first.rarity,
            first.inside,
            labels=[f"image {person}" for person in first.members],
            by="distance from the class's mean",
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


def _game(make: Callable[[Gallery], Classifier], gallery: Gallery, rng: np.random.Generator) -> Recovered:
    public, asked = _parted(gallery, rng)
    coins = rng.random(len(asked)) < 0.5
    dreamt, judged = public[::2], public[1::2]
    members, strangers = gallery.of(asked[coins]), gallery.of(asked[~coins])
    model = make(members)
    dream = imagination(gallery.of(dreamt).images, rng)
    classes = range(int(gallery.labels.max()) + 1)
    pictures = recover(model, classes, dream, rng, _CAUTION)
    means = np.array([_mean(members.images[members.labels == label], dream.middle) for label in classes])
    known = [classify(each.images, pictures) == each.labels for each in (members, strangers)]
    away = [np.linalg.norm(each.images - pictures[each.labels], axis=1).mean() for each in (members, strangers)]
    return Recovered(
        pictures=pictures,
        means=means,
        named=int((_judge(gallery.of(judged)).predict(pictures) == np.array(classes)).sum()),
        accuracy=_accuracy(model, strangers),
        inside=known[0],
        outside=known[1],
        near=float(away[0]),
        far=float(away[1]),
        rarity=np.linalg.norm(members.images - means[members.labels], axis=1),
        members=np.flatnonzero(np.isin(gallery.people, members.people)),
    )


def _parted(gallery: Gallery, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return whose images are public, and who may be in the classifier's data."""
    people = rng.permutation(np.unique(gallery.people))
    public = round(len(people) * _PUBLIC)
    return people[:public], people[public:]


def _judge(public: Gallery) -> Any:
    """Return a classifier that never saw anybody who may be in the data: whether a picture looks like its class."""
    from sklearn.svm import SVC  # noqa: PLC0415 - an extra

    return SVC(C=10).fit(public.images, public.labels)


def _mean(images: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    return np.asarray(images.mean(axis=0)) if len(images) else otherwise


def _accuracy(model: Classifier, strangers: Gallery) -> float:
    told = np.asarray(model.classes_)[np.asarray(model.predict_proba(strangers.images)).argmax(axis=1)]
    return float((told == strangers.labels).mean())


def _details(games: list[Recovered], inside: np.ndarray, outside: np.ndarray) -> dict[str, Any]:
    beyond = inside.mean() - outside.mean()
    wide = 1.96 * np.sqrt(inside.var() / inside.size + outside.var() / outside.size)
    pictures = sum(len(game.pictures) for game in games)
    return {
        "pictures that an independent classifier recognises": sum(game.named for game in games) / pictures,
        "pictures": pictures,
        "questions for each": QUESTIONS,
        "strangers' images that are recognised": float(outside.mean()),
        "members beyond strangers": f"{beyond:+.3f} ({beyond - wide:+.3f} to {beyond + wide:+.3f})",
        "distance to members' images": float(np.mean([game.near for game in games])),
        "distance to strangers' images": float(np.mean([game.far for game in games])),
        "the classifier is right about strangers": float(np.mean([game.accuracy for game in games])),
    }
