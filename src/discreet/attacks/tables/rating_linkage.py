"""Linkage of ratings: who is found by a few of them, in the release and taken out of it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from discreet.attacks.defences import CURATOR, EASY, OWN, Shield
from discreet.attacks.rarity import exposure
from discreet.attacks.result import AttackResult
from discreet.attacks.tables.counting import Answers, answered, named, private_counts
from discreet.attacks.tables.naming import Naming
from discreet.attacks.tables.ratings import Ratings
from discreet.attacks.tables.reading import oracle, places
from discreet.attacks.tables.scoreboard import (
    Knowledge,
    Record,
    enough_lead,
    fitting,
    knowledge_of,
    name,
    record_of,
    scoreboard,
    with_enough,
)

_DROPPED = _CHANGED = 0.1


@dataclass(frozen=True, eq=False)
class _Release:
    """A record that is handed out, and where its users are among the owner's: the truth, by which names are scored."""

    record: Record
    people: np.ndarray


@dataclass(frozen=True, eq=False)
class _Outcome:
    """Who was named, rightly and at all, and who was when they were not there."""

    right: np.ndarray
    named: np.ndarray
    outside: np.ndarray
    details: dict[str, Any]


def link_ratings(data: Ratings, protected: Shield, rng: np.random.Generator, most: int) -> AttackResult:
    """Find people's records by a few of their ratings: everybody in the release, and the same person taken out."""
    exact = record_of(data)
    targets = rng.permutation(_with_enough(exact, data))[:most]
    knowledge = [knowledge_of(data, exact, int(target), rng) for target in targets]
    seen = _released(protected, data, exact, rng)
    if isinstance(seen, _Release):
        found = _named(seen, knowledge, targets, data, rng)
    else:
        found = _counted(exact, knowledge, data, seen, rng)
    weights = exact.weights
    return AttackResult(
        attack="linkage",
        shield=protected,
        metric="of the people were found by a few ratings",
        # A stranger is the same person, taken out with all ratings: the neighbours of the curator's promise.
        evidence=Naming.of(found.right, found.named, found.outside),
        details={
            "people": data.users,
            "people looked for": len(targets),
            "ratings known of each": data.known,
            "of these wrong": data.wrong,
            **found.details,
        },
        # Rare is who is known by movies that few others have seen.
        exposure=exposure(
            [float(weights[known.movies].mean()) for known in knowledge],
            found.right,
            labels=[f"user {data.user_ids[target]}" for target in targets],
            by="rare movies",
        ),
    )


def _named(
    release: _Release, knowledge: list[Knowledge], targets: np.ndarray, data: Ratings, rng: np.random.Generator
) -> _Outcome:
    """Return who is named rightly, and who is taken for somebody else when they are not there."""
    record = release.record
    enough, weights = enough_lead(record, data, rng), record.weights
    rows = np.full(data.users, -1)  # of those who were left out, and cannot be found
    rows[release.people] = np.arange(len(release.people))
    right, anybody, outside, alone = [], [], [], 0
    for known, row in zip(knowledge, rows[targets].tolist(), strict=True):
        scores, fits = scoreboard(record, weights, known), fitting(record, known, data.known - data.wrong, data.days)
        found = name(scores, fits, enough)
        right.append(found == row)
        anybody.append(found is not None)
        alone += int(fits.sum() == 1 and int(np.argmax(fits)) == row)
        others = np.arange(len(scores)) != row
        outside.append(name(scores[others], fits[others], enough) is not None)
    told = {"named rightly": sum(right), "named wrongly": sum(anybody) - sum(right), "alone with what is known": alone}
    return _Outcome(np.array(right), np.array(anybody), np.array(outside), told)


def _counted(
    record: Record, knowledge: list[Knowledge], data: Ratings, answers: Answers, rng: np.random.Generator
) -> _Outcome:
    """Ask how many people have given these ratings, or all but the wrong ones; who is counted is named."""
    fits = [fitting(record, known, data.known - data.wrong, data.days) for known in knowledge]
    counts = np.array([int(fit.sum()) for fit in fits])
    # A target has given what is right of what is known; without the target there is one fewer.
    seen, decoys = answered(answers, np.concatenate([counts, counts - 1])[:, None])
    hit = named(seen[:, 0], decoys[:, 0], rng)
    inside, outside = hit[: len(counts)], hit[len(counts) :]
    return _Outcome(
        inside, inside, outside, {"named rightly": int(inside.sum()), "strangers named": int(outside.sum())}
    )


def _released(protected: Shield, data: Ratings, exact: Record, rng: np.random.Generator) -> _Release | Answers:
    if protected.word == CURATOR:
        return partial(private_counts, epsilon=protected.price)
    if protected.word == OWN and protected.make is not None:
        return _own(protected.make, data)
    return _Release(_shaken(exact, data, rng) if protected.word == EASY else exact, np.arange(data.users))


def _own(make: Callable[..., Any], data: Ratings) -> _Release | Answers:
    seen = make(data)
    answers = oracle(seen)
    if answers is not None:
        return answers
    if not isinstance(seen, Ratings):
        raise TypeError(
            "the defence must return the Ratings that it was given, changed, or with users or movies left out; or a "
            f"function that takes an array of counts and returns them with noise; not {type(seen).__name__}"
        )
    people = places(seen.user_ids, data.user_ids)
    if people is None:
        raise ValueError("the defence's Ratings have users that it was not given: keep the ids, or leave users out")
    return _Release(record_of(seen, data), people)


def _shaken(record: Record, data: Ratings, rng: np.random.Generator) -> Record:
    """Drop a tenth of the ratings and change the stars of another tenth."""
    luck = rng.random(record.stars.shape)
    stars = np.where(luck < _DROPPED, np.nan, record.stars)
    changed = ~np.isnan(stars) & (luck > 1 - _CHANGED)
    stars[changed] = rng.choice(data.scale, int(changed.sum()))
    return Record(stars, np.where(np.isnan(stars), np.nan, record.days))


def _with_enough(exact: Record, data: Ratings) -> np.ndarray:
    enough = with_enough(exact, data)
    if not enough.size:
        left = f" and {data.wrong} movies left that they did not rate" if data.wrong else ""
        raise ValueError(f"known: nobody has {data.known} ratings{left}. Take fewer.")
    return enough
