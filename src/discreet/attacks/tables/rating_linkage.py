"""Linkage of ratings: who is found by a few of them, in the release and taken out of it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from discreet.attacks.defences import CURATOR, EASY, OWN, Shield
from discreet.attacks.evidence import Found
from discreet.attacks.rarity import exposure
from discreet.attacks.result import AttackResult
from discreet.attacks.tables.counting import Answers, answered, named, private_counts
from discreet.attacks.tables.ratings import STARS, Ratings
from discreet.attacks.tables.scoreboard import (
    Knowledge,
    Record,
    enough_lead,
    fitting,
    knowledge_of,
    name,
    record_of,
    scoreboard,
)
from discreet.audit.counting import Share

_DROPPED = _CHANGED = 0.1


def link_ratings(data: Ratings, protected: Shield, rng: np.random.Generator, most: int) -> AttackResult:
    """Find people's records by a few of their ratings: everybody in the release, and the same person taken out."""
    exact = record_of(data)
    targets = rng.permutation(_with_enough(data))[:most]
    knowledge = [knowledge_of(data, exact, int(target), rng) for target in targets]
    seen = _released(protected, data, exact, rng)
    details: dict[str, Any] = {"people": data.users, "ratings known of each": data.known, "of these wrong": data.wrong}
    if isinstance(seen, Record):
        found, outside, more = _named(seen, knowledge, targets, data, rng)
    else:
        found, outside, more = _counted(exact, knowledge, data, seen, rng)
    weights = exact.weights
    return AttackResult(
        attack="linkage",
        shield=protected,
        metric="of the people were found by a few ratings",
        # A stranger is the same person, taken out with all ratings: the neighbours of the curator's promise.
        evidence=Found(*(Share(int(each.sum()), each.size) for each in (found, outside))),
        details=details | more,
        # Rare is who is known by movies that few others have seen.
        exposure=exposure(
            [float(weights[known.movies].mean()) for known in knowledge],
            found,
            labels=[f"user {target}" for target in targets],
            by="rare movies",
        ),
    )


def _named(
    record: Record, knowledge: list[Knowledge], targets: np.ndarray, data: Ratings, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Return who is named rightly, and who is taken for somebody else when they are not there."""
    enough, weights = enough_lead(record, data, rng), record.weights
    inside, outside, wrong, alone = [], [], 0, 0
    for known, target in zip(knowledge, targets, strict=True):
        scores, fits = scoreboard(record, weights, known), fitting(record, known, data.known - data.wrong, data.days)
        found = name(scores, fits, enough)
        inside.append(found == target)
        wrong += int(found is not None and found != target)
        alone += int(fits.sum() == 1 and fits[target])
        outside.append(name(np.delete(scores, target), np.delete(fits, target), enough) is not None)
    told = {"named rightly": int(sum(inside)), "named wrongly": wrong, "alone with what is known": alone}
    return np.array(inside), np.array(outside), told


def _counted(
    record: Record, knowledge: list[Knowledge], data: Ratings, answers: Answers, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Ask how many people have given these ratings, or all but the wrong ones; who is counted is named."""
    fits = [fitting(record, known, data.known - data.wrong, data.days) for known in knowledge]
    counts = np.array([int(fit.sum()) for fit in fits])
    # A target has given what is right of what is known; without the target there is one fewer.
    seen, decoys = answered(answers, np.concatenate([counts, counts - 1])[:, None])
    hit = named(seen[:, 0], decoys[:, 0], rng)
    inside, outside = hit[: len(counts)], hit[len(counts) :]
    return inside, outside, {"named rightly": int(inside.sum()), "strangers named": int(outside.sum())}


def _released(protected: Shield, data: Ratings, exact: Record, rng: np.random.Generator) -> Record | Answers:
    if protected.word == CURATOR:
        return partial(private_counts, epsilon=protected.price)
    if protected.word == OWN and protected.make is not None:
        return _own(protected.make, data)
    return _shaken(exact, rng) if protected.word == EASY else exact


def _own(make: Callable[..., Any], data: Ratings) -> Record | Answers:
    seen = make(data)
    if callable(seen):
        return seen  # type: ignore[no-any-return] # its answers are checked when they come
    if not isinstance(seen, Ratings) or seen.users > data.users:
        raise TypeError(
            "the defence must return the Ratings that it was given, changed, of the same users; or a function that "
            "takes an array of counts and returns them with noise"
        )
    return record_of(seen, data)


def _shaken(record: Record, rng: np.random.Generator) -> Record:
    """Drop a tenth of the ratings and change the stars of another tenth."""
    luck = rng.random(record.stars.shape)
    stars = np.where(luck < _DROPPED, np.nan, record.stars)
    changed = ~np.isnan(stars) & (luck > 1 - _CHANGED)
    stars[changed] = rng.choice(STARS, int(changed.sum()))
    return Record(stars, np.where(np.isnan(stars), np.nan, record.days))


def _with_enough(data: Ratings) -> np.ndarray:
    enough = np.flatnonzero(np.bincount(data.user) >= data.known)
    if not enough.size:
        raise ValueError(f"known: nobody has {data.known} ratings. Take fewer.")
    return enough
