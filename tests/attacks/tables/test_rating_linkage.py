"""People found by a few ratings, in all of them and in what a defence leaves of them."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from discreet.attacks import linkage
from discreet.attacks.data.register import Ratings, read_ratings, simulate_ratings

DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))
FEW = simulate_ratings(250, random_state=3)
TINY = {"user": [0, 0, 0, 1, 1, 1], "movie": [5, 6, 7, 6, 7, 8], "stars": [1, 2, 3, 4, 5, 1], "day": [1, 2, 3, 4, 5, 6]}


def some(data, kept):
    return replace(data, user=data.user[kept], movie=data.movie[kept], stars=data.stars[kept], day=data.day[kept])


def test_three_ratings_identify_nearly_everybody():
    result = linkage(FEW, random_state=1)
    assert result.success > 0.95
    assert result.baseline < 0.25
    assert result.details["wrongly named"] <= 5


def test_wrong_and_missing_ratings_and_rough_days_do_not_help():
    data = simulate_ratings(250, known=8, wrong=2, days=14, random_state=3)
    assert linkage(data, random_state=1).success > 0.98
    shaken = linkage(data, defence="easy", random_state=1)
    assert shaken.success > 0.8
    assert shaken.details["wrongly named"] <= 10


def test_dropping_and_changing_a_tenth_does_not_protect():
    result = linkage(FEW, defence="easy", random_state=1)
    assert 0.4 < result.success < 0.95
    assert result.implied.low > 1


def test_rare_movies_identify_people():
    deciles = linkage(FEW, defence="easy", random_state=1).exposure.deciles
    assert sum(share.value for share in deciles[5:]) > sum(share.value for share in deciles[:5])


def test_a_custom_defence_may_change_ratings():
    def rounded(data):
        return Ratings(data.user, data.movie, np.round(data.stars), data.day + 1000, data.known)

    assert linkage(FEW, defence=lambda data: data, random_state=1).success > 0.95
    assert linkage(FEW, defence=rounded, random_state=1).success < 0.9
    for rubbish in (None, "x", 5, FEW.user, {"user": FEW.user}):
        with pytest.raises(TypeError, match="must return its Ratings"):
            linkage(FEW, defence=lambda _, rubbish=rubbish: rubbish)


def test_dropping_a_movie_does_not_renumber_the_others():
    plain = linkage(FEW, random_state=1)
    first, last = FEW.movie_ids[[0, -1]]
    for movie in (first, last):
        fewer = linkage(FEW, defence=lambda data, movie=movie: some(data, data.movie != movie), random_state=1)
        assert fewer.success > plain.success - 0.1


def test_dropping_rare_movies_is_measured_as_a_defence():
    movies, raters = np.unique(FEW.movie, return_counts=True)

    def common(data):
        return some(data, np.isin(data.movie, movies[raters >= 20]))

    def emptied(data):  # the same, with a rating that fits nobody in place of each that is left out
        return replace(data, stars=np.where(np.isin(data.movie, movies[raters >= 20]), data.stars, -1e9))

    fewer = linkage(FEW, defence=common, random_state=1)
    assert 0.2 < fewer.success < linkage(FEW, random_state=1).success - 0.1
    assert abs(fewer.success - linkage(FEW, defence=emptied, random_state=1).success) < 0.1


def test_dropped_users_cannot_be_found_and_all_others_can():
    kept = FEW.user_ids[150:]
    fewer = linkage(FEW, defence=lambda data: some(data, np.isin(data.user, kept)), random_state=1)
    assert 95 <= fewer.details["correctly named"] <= 100
    assert fewer.success <= 100 / 250
    assert all(int(label.removeprefix("user ")) in kept for label in fewer.exposure.rarest_hit)


@pytest.mark.long
def test_the_order_of_ratings_and_the_kind_of_ids_do_not_matter():
    shuffled = np.random.default_rng(0).permutation(FEW.user.size)
    named = replace(
        FEW, user=[f"user {each:04}" for each in FEW.user], movie=[f"movie {each:04}" for each in FEW.movie]
    )
    plain = linkage(FEW, random_state=1).details
    assert linkage(FEW, defence=lambda data: some(data, shuffled), random_state=1).details == plain
    assert linkage(named, random_state=1).details == plain
    assert linkage(named, defence=lambda data: some(data, shuffled), random_state=1).details == plain


def test_random_names_for_people_prove_nothing():
    other = simulate_ratings(250, random_state=4)  # of other people, under the same ids
    kept = np.isin(other.movie, FEW.movie_ids)
    result = linkage(FEW, defence=lambda _: some(other, kept), epsilon=0.1, random_state=1)
    assert result.baseline > 0.05
    assert result.success < 0.03
    assert result.implied.low == 0


def test_users_and_movies_that_were_not_in_the_input_are_refused():
    with pytest.raises(ValueError, match="unknown users"):
        linkage(FEW, defence=lambda data: replace(data, user=data.user + 1))
    with pytest.raises(ValueError, match="unknown movies"):
        linkage(FEW, defence=lambda data: replace(data, movie=data.movie + 1))
    with pytest.raises(ValueError, match="unknown users"):
        linkage(FEW, defence=lambda data: replace(data, user=data.user.astype(str)))


@pytest.mark.parametrize("users", [1, 2])
def test_one_or_two_users_are_enough(users):
    data = some(Ratings(**TINY), np.array(TINY["user"]) < users)
    for defence in ("nothing", "easy"):
        assert linkage(data, defence=defence, random_state=1).details["people targeted"] == users
    assert linkage(data, random_state=1).success == 1


def test_a_defence_may_leave_one_user():
    assert linkage(FEW, defence=lambda data: some(data, data.user == 7), random_state=1).details["correctly named"] <= 1


def test_users_who_rated_nearly_everything_are_not_targeted_with_wrong_ratings():
    everything = {"user": [9] * 4, "movie": [5, 6, 7, 8], "stars": [1, 2, 3, 4], "day": [1, 2, 3, 4]}
    three = Ratings(**{name: TINY[name] + everything[name] for name in TINY}, wrong=1)
    assert linkage(three, random_state=1).details["people targeted"] == 2
    with pytest.raises(ValueError, match="nobody has 3 ratings and 2 movies"):
        linkage(replace(three, wrong=2))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"movie": [5, 5, 7, 6, 7, 8]}, "rated a movie twice"),
        ({"stars": [1, 2, np.nan, 4, 5, 1]}, "stars must not contain missing values"),
        ({"stars": [1, 2, None, 4, 5, 1]}, "stars must not contain missing values"),
        ({"day": [1, 2, np.inf, 4, 5, 1]}, "day must not contain missing values"),
        ({"stars": list("abcdef")}, "stars must be an array of numbers"),
        ({"user": [None] * 6}, "user must be a list of ids"),
        ({"movie": [0.5] * 6}, "movie must be a list of ids"),
        ({"user": [0]}, "lists of equal length"),
        ({"user": [], "movie": [], "stars": [], "day": []}, "at least one rating"),
        ({"user": 5, "movie": 5, "stars": 5, "day": 5}, "lists of equal length"),
        ({"known": 2, "wrong": 2}, "wrong must be less"),
        ({"known": "3"}, "known must be an integer"),
        ({"days": "3"}, "days must be an integer"),
    ],
    ids=str,
)
def test_malformed_ratings_are_refused(changed, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Ratings(**{**TINY, **changed})


def test_too_few_ratings_per_user_are_refused():
    with pytest.raises(ValueError, match="nobody has 4 ratings"):
        linkage(Ratings(**TINY, known=4))
    with pytest.raises(TypeError, match="people must be an integer"):
        simulate_ratings("5")


@pytest.mark.long
@pytest.mark.skipif(
    not (DATA / "movielens_latest_small_ratings.parquet").exists(), reason="needs movielens in DISCREET_DATA"
)
def test_three_known_ratings_single_out_most_viewers():
    told = linkage(read_ratings(DATA), random_state=0).details
    assert told["people"] == 610
    assert 515 <= told["unique matches"] <= 550
    assert linkage(read_ratings(DATA, known=8, wrong=2, days=14), random_state=0).success > 0.99
