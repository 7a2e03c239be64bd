"""Linkage of ratings: find people by a few of their ratings, with their record in the release and removed from it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from discreet.attacks.defences import CURATOR, EASY, OWN, Defence
from discreet.attacks.evidence import ReidentificationEvidence
from discreet.attacks.result import AttackResult, exposure_by_rarity
from discreet.attacks.tables.linkage_data import Ratings
from discreet.attacks.tables.scoreboard import (
    AuxiliaryRatings,
    RatingMatrix,
    draw_auxiliary_ratings,
    eccentricity_threshold,
    identify_user,
    is_consistent,
    rating_matrix,
    scoreboard_scores,
    users_with_enough_ratings,
)
from discreet.attacks.tables.table_releases import CountOracle, answers_and_decoys, exceeds_decoys, private_counts
from discreet.attacks.tables.validation import count_oracle_or_none, positions_of_ids

_DROPPED_SHARE = _CHANGED_SHARE = 0.1


@dataclass(frozen=True, eq=False)
class _ReleasedRatings:
    """Released ratings, and the true index of each released user, used only for scoring."""

    matrix: RatingMatrix
    user_indices: np.ndarray


@dataclass(frozen=True, eq=False)
class _RatingLinkageOutcome:
    """Who was named correctly, who was named at all, and who was named when their record was removed."""

    correctly_named: np.ndarray
    named_at_all: np.ndarray
    named_when_removed: np.ndarray
    details: dict[str, Any]


def link_ratings(data: Ratings, defence: Defence, rng: np.random.Generator, max_targets: int) -> AttackResult:
    """Re-identify people by a few of their ratings, with their record in the release and removed from it."""
    matrix = rating_matrix(data)
    targets = rng.permutation(_users_worth_attacking(matrix, data))[:max_targets]
    auxiliary = [draw_auxiliary_ratings(data, matrix, int(target), rng) for target in targets]
    release = _release_ratings(defence, data, matrix, rng)
    if isinstance(release, _ReleasedRatings):
        outcome = _name_by_scoreboard(release, auxiliary, targets, data, rng)
    else:
        outcome = _name_by_counts(matrix, auxiliary, data, release, rng)
    weights = matrix.movie_weights
    return AttackResult(
        attack="linkage",
        against=defence,
        metric="of people re-identified by a few ratings",
        # A non-member is the same person with all ratings removed: neighbouring databases at user level.
        evidence=ReidentificationEvidence.from_outcomes(
            outcome.correctly_named, outcome.named_at_all, outcome.named_when_removed
        ),
        details={
            "people": data.user_count,
            "people targeted": len(targets),
            "known ratings per person": data.known,
            "wrong ones among them": data.wrong,
            **outcome.details,
        },
        # People known by movies that few others have rated count as rare.
        exposure=exposure_by_rarity(
            [float(weights[known.movies].mean()) for known in auxiliary],
            outcome.correctly_named,
            labels=[f"user {data.user_ids[target]}" for target in targets],
            rarity_label="rare movies",
        ),
    )


def _name_by_scoreboard(
    release: _ReleasedRatings,
    auxiliary: list[AuxiliaryRatings],
    targets: np.ndarray,
    data: Ratings,
    rng: np.random.Generator,
) -> _RatingLinkageOutcome:
    """Name each target by the scoreboard, with their record in the release and removed from it."""
    matrix = release.matrix
    threshold, weights = eccentricity_threshold(matrix, data, rng), matrix.movie_weights
    rows = np.full(data.user_count, -1)  # -1: not in the release
    rows[release.user_indices] = np.arange(len(release.user_indices))
    correctly_named, named_at_all, named_when_removed, unique_matches = [], [], [], 0
    for known, row in zip(auxiliary, rows[targets].tolist(), strict=True):
        scores, consistent = (
            scoreboard_scores(matrix, weights, known),
            is_consistent(matrix, known, data.known - data.wrong, data.days),
        )
        user = identify_user(scores, consistent, threshold)
        correctly_named.append(user == row)
        named_at_all.append(user is not None)
        unique_matches += int(consistent.sum() == 1 and int(np.argmax(consistent)) == row)
        others = np.arange(len(scores)) != row
        named_when_removed.append(identify_user(scores[others], consistent[others], threshold) is not None)
    details = {
        "correctly named": sum(correctly_named),
        "wrongly named": sum(named_at_all) - sum(correctly_named),
        "unique matches": unique_matches,
    }
    return _RatingLinkageOutcome(
        np.array(correctly_named), np.array(named_at_all), np.array(named_when_removed), details
    )


def _name_by_counts(
    matrix: RatingMatrix,
    auxiliary: list[AuxiliaryRatings],
    data: Ratings,
    oracle: CountOracle,
    rng: np.random.Generator,
) -> _RatingLinkageOutcome:
    """Query how many people match the known ratings, and name targets whose counts exceed the decoys."""
    consistent = [is_consistent(matrix, known, data.known - data.wrong, data.days) for known in auxiliary]
    counts = np.array([int(fit.sum()) for fit in consistent])
    # The target always matches; without the target the count is one lower.
    answers, decoys = answers_and_decoys(oracle, np.concatenate([counts, counts - 1])[:, None])
    is_named = exceeds_decoys(answers[:, 0], decoys[:, 0], rng)
    members_named, named_when_removed = is_named[: len(counts)], is_named[len(counts) :]
    return _RatingLinkageOutcome(
        members_named,
        members_named,
        named_when_removed,
        {"correctly named": int(members_named.sum()), "non-members named": int(named_when_removed.sum())},
    )


def _release_ratings(
    defence: Defence, data: Ratings, matrix: RatingMatrix, rng: np.random.Generator
) -> _ReleasedRatings | CountOracle:
    if defence.kind == CURATOR:
        return partial(private_counts, epsilon=defence.curator_epsilon)
    if defence.kind == OWN and defence.user_function is not None:
        return _user_release(defence.user_function, data)
    return _ReleasedRatings(
        _perturbed_ratings(matrix, data, rng) if defence.kind == EASY else matrix, np.arange(data.user_count)
    )


def _user_release(user_function: Callable[..., Any], data: Ratings) -> _ReleasedRatings | CountOracle:
    returned = user_function(data)
    oracle = count_oracle_or_none(returned)
    if oracle is not None:
        return oracle
    if not isinstance(returned, Ratings):
        raise TypeError(
            "the defence must return its Ratings, modified or with users or movies left out, or a function that takes "
            f"an array of counts and returns them with noise; not {type(returned).__name__}"
        )
    people = positions_of_ids(returned.user_ids, data.user_ids)
    if people is None:
        raise ValueError("the defence's Ratings have unknown users: keep the ids, or leave users out")
    return _ReleasedRatings(rating_matrix(returned, data), people)


def _perturbed_ratings(matrix: RatingMatrix, data: Ratings, rng: np.random.Generator) -> RatingMatrix:
    """Drop a tenth of the ratings and change the stars of another tenth."""
    luck = rng.random(matrix.stars.shape)
    stars = np.where(luck < _DROPPED_SHARE, np.nan, matrix.stars)
    changed = ~np.isnan(stars) & (luck > 1 - _CHANGED_SHARE)
    stars[changed] = rng.choice(data.star_values, int(changed.sum()))
    return RatingMatrix(stars, np.where(np.isnan(stars), np.nan, matrix.days))


def _users_worth_attacking(matrix: RatingMatrix, data: Ratings) -> np.ndarray:
    users = users_with_enough_ratings(matrix, data)
    if not users.size:
        unrated = f" and {data.wrong} movies that they have not rated" if data.wrong else ""
        raise ValueError(f"known: nobody has {data.known} ratings{unrated}. Choose a smaller number.")
    return users
