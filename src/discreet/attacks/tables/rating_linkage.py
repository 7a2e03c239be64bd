"""Linkage of ratings: find people by a few of their ratings, with their record in the release and removed from it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.attacks.attack import CURATOR, EASY, NOTHING, AttackResult, DefenceRelease, EventEvidence, Game
from discreet.attacks.data.register import Ratings
from discreet.attacks.private_answers import (
    CountOracle,
    is_count_oracle,
    named_by_counts,
    private_count_oracle,
)
from discreet.attacks.tables.scoreboard import (
    AuxiliaryRatings,
    RatingMatrix,
    draw_auxiliary_ratings,
    eccentricity_threshold,
    identify_user,
    is_consistent,
    positions_of_ids,
    rating_matrix,
    scoreboard_scores,
    users_with_enough_ratings,
)

_DROPPED_SHARE = _CHANGED_SHARE = 0.1


@dataclass(frozen=True, eq=False)
class _ReleasedRatings:
    """Released ratings, and the true index of each released user, used only for scoring."""

    matrix: RatingMatrix
    user_indices: np.ndarray


@dataclass(frozen=True, eq=False)
class _NamedPeople:
    """Who was named correctly, who was named at all, and who was named when their record was removed."""

    correctly: np.ndarray
    at_all: np.ndarray
    when_removed: np.ndarray
    details: dict[str, Any]


def link_ratings(game: Game) -> AttackResult:
    """Re-identify people by a few of their ratings, with their record in the release and removed from it."""
    data, matrix = game.data, rating_matrix(game.data)
    targets = game.rng.permutation(_users_worth_attacking(matrix, data))[: game.settings.targets]
    auxiliary = [draw_auxiliary_ratings(data, matrix, int(target), game.rng) for target in targets]
    release = game.release(matrix)
    if isinstance(release, _ReleasedRatings):
        named = _name_by_scoreboard(release, auxiliary, targets, data, game.rng)
    else:
        named = _name_by_counts(matrix, auxiliary, data, release, game.rng)
    weights = matrix.movie_weights
    return game.result(
        "of people re-identified by a few ratings",
        # A non-member is the same person with all ratings removed: neighbouring databases at user level.
        EventEvidence.from_outcomes(named.at_all, named.when_removed, named.correctly),
        {
            "people": data.user_count,
            "people targeted": len(targets),
            "known ratings per person": data.known,
            "wrong ones among them": data.wrong,
            **named.details,
        },
        hit=named.correctly,
        rarity=[float(weights[known.movies].mean()) for known in auxiliary],  # known by movies that few others rated
        rarity_label="rare movies",
        labels=[f"user {data.user_ids[target]}" for target in targets],
    )


def _name_by_scoreboard(
    release: _ReleasedRatings,
    auxiliary: list[AuxiliaryRatings],
    targets: np.ndarray,
    data: Ratings,
    rng: np.random.Generator,
) -> _NamedPeople:
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
    return _NamedPeople(np.array(correctly_named), np.array(named_at_all), np.array(named_when_removed), details)


def _name_by_counts(
    matrix: RatingMatrix,
    auxiliary: list[AuxiliaryRatings],
    data: Ratings,
    oracle: CountOracle,
    rng: np.random.Generator,
) -> _NamedPeople:
    """Query how many people match the known ratings, and name targets whose counts exceed the decoys."""
    consistent = [is_consistent(matrix, known, data.known - data.wrong, data.days) for known in auxiliary]
    counts = np.array([int(fit.sum()) for fit in consistent])
    # The target always matches; without the target the count is one lower.
    members_named, named_when_removed = named_by_counts(oracle, counts, counts - 1, rng)
    return _NamedPeople(
        members_named,
        members_named,
        named_when_removed,
        {"correctly named": int(members_named.sum()), "non-members named": int(named_when_removed.sum())},
    )


def _perturbed_release(game: Game, matrix: RatingMatrix) -> _ReleasedRatings:
    """Drop a tenth of the ratings and change the stars of another tenth."""
    luck = game.rng.random(matrix.stars.shape)
    stars = np.where(luck < _DROPPED_SHARE, np.nan, matrix.stars)
    changed = ~np.isnan(stars) & (luck > 1 - _CHANGED_SHARE)
    stars[changed] = game.rng.choice(game.data.star_values, int(changed.sum()))
    perturbed = RatingMatrix(stars, np.where(np.isnan(stars), np.nan, matrix.days))
    return _ReleasedRatings(perturbed, np.arange(game.data.user_count))


def user_ratings(game: Game, _: RatingMatrix) -> _ReleasedRatings | CountOracle:
    """Return what the user's defence releases: ratings, or an oracle for counts."""
    returned, data = game.ask_user(game.data), game.data
    if is_count_oracle(returned):
        return returned
    if not isinstance(returned, Ratings):
        raise TypeError(
            "the defence must return its Ratings, modified or with users or movies left out, or a function that takes "
            f"an array of counts and returns them with noise; not {type(returned).__name__}"
        )
    people = positions_of_ids(returned.user_ids, data.user_ids)
    if people is None:
        raise ValueError("the defence's Ratings have unknown users: keep the ids, or leave users out")
    return _ReleasedRatings(rating_matrix(returned, data), people)


def _users_worth_attacking(matrix: RatingMatrix, data: Ratings) -> np.ndarray:
    users = users_with_enough_ratings(matrix, data)
    if not users.size:
        unrated = f" and {data.wrong} movies that they have not rated" if data.wrong else ""
        raise ValueError(f"known: nobody has {data.known} ratings{unrated}. Choose a smaller number.")
    return users


RELEASES = {
    NOTHING: DefenceRelease(
        "ratings without names", lambda game, all_: _ReleasedRatings(all_, np.arange(game.data.user_count))
    ),
    EASY: DefenceRelease("ratings without names, a tenth dropped and a tenth changed", _perturbed_release),
    CURATOR: DefenceRelease("counts of the people who match a target's known ratings", private_count_oracle),
}
