"""A private recommender: it hides one rating or a whole taste, and is never worse than not to know the items at all."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.engines.row_sums import sums_observed_by
from discreet.kernel.errors import Refused
from discreet.kernel.model_release import check_row_wise
from discreet.learn.model_selection.evaluation import evaluate
from discreet.learn.model_selection.hyperparameter_tuning import tune
from discreet.learn.model_selection.private_selection import Trials
from discreet.learn.recommend.item_effects import (
    block_effects,
    choose_blocks,
    expected_counts,
    item_effects,
    shrunken_overall_mean,
    taste_covariance,
)
from discreet.learn.recommend.rating_rows import (
    RatingsByUnit,
    count_and_deviation,
    item_codes,
    item_entries,
    item_pair_entries,
    read_columns,
    read_own_ratings,
    split_between_bounds,
)
from discreet.learn.recommend.recommender import Recommender
from discreet.learn.row_sources import array_rows

DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))
LEVELS = pytest.mark.parametrize("level", ["event", "user"])
GOOD = np.linspace(-1, 1, 20)


def ratings(people=2000, each=10, seed=1):
    """Ratings from 1 to 5 of twenty items, of which each is better than the one before; people differ as well."""
    generator = np.random.default_rng(seed)
    user = np.repeat(np.arange(people), each)
    item = np.argsort(generator.random((people, 20)), axis=1)[:, :each].ravel()
    usual = generator.normal(0, 0.5, people)
    given = np.clip(3 + GOOD[item] + usual[user] + generator.normal(0, 0.5, len(item)), 1, 5)
    return np.column_stack([user, item, given])


TABLE = ratings()


def fitted(level, table=TABLE, **more):
    settings = {"epsilon": 5, "items": range(20), "bounds": (1, 5), "level": level}
    return Recommender(**(settings | more)).fit(table)


@LEVELS
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_better_items_are_predicted_to_be_liked_more(level, delta):
    model = fitted(level, delta=delta)
    assert np.corrcoef(model.predict(range(20)), GOOD)[0, 1] > 0.9
    assert abs(model.mean_ - 3) < 0.3
    assert abs(model.predict([0, 19], own={3: 3, 10: 3})[1] - 4) < 0.6


@LEVELS
def test_counts_are_near_the_truth_where_the_noise_is_small(level):
    model = fitted(level, epsilon=1000, ratings_per_user=20)
    assert np.abs(model.counts_ - np.bincount(TABLE[:, 1].astype(int))).max() < 40


@LEVELS
def test_own_ratings_move_predictions(level):
    model = fitted(level)
    glad = model.predict(range(20), own=[(0, 5), (1, 5), (2, 5), (3, 5)])
    sour = model.predict(range(20), own={16: 1, 17: 1, 18: 1, 19: 1})
    assert (glad > model.predict(range(20)) + 0.3).all()
    assert (sour < model.predict(range(20)) - 0.3).all()


def test_one_own_rating_counts_a_quarter_and_no_more_than_the_bounds_allow():
    model = fitted("event", epsilon=1000)
    base = model.predict([5, 10])
    assert model.predict([5], own={10: base[1] + 1})[0] == pytest.approx(base[0] + 1 / 4, abs=0.02)
    assert model.predict([5], own={10: 100}) == model.predict([5], own={10: 5})
    glad, sour = (model.predict(range(20), own=dict.fromkeys(range(20), given)) for given in (5, 1))
    assert (glad.max(), sour.min()) == (5, 1)


def test_a_user_counts_up_to_the_declared_number_of_ratings():
    radii = []

    def observe(request, reservation):
        if request.rule is item_entries:
            radii.append(float(request.radius))
        return request.release(reservation)

    with sums_observed_by(observe):
        for many in (1, 4, 1000):
            fitted("user", epsilon=1000, ratings_per_user=many)
    assert radii[1] == pytest.approx(4 * radii[0])
    assert radii[2] == pytest.approx(10 * radii[0], rel=0.05)  # everybody has ten


def test_tastes_that_noise_hides_are_not_invented():
    settings = {"level": "user", "taste": 8, "delta": 1e-6}
    assert np.abs(fitted(epsilon=0.1, **settings).taste_covariance_).max() < 0.1
    assert np.abs(fitted(epsilon=1000, **settings).taste_covariance_).max() < 0.3


def test_recommendations_leave_out_what_was_rated():
    model = fitted("event")
    best = model.recommend(own={19: 5, 18: 4}, count=5)
    assert len(best) == 5
    assert not {18, 19} & {item for item, _ in best}
    assert [value for _, value in best] == sorted((value for _, value in best), reverse=True)
    assert len(model.recommend(own={19: 5}, count=100)) == 19


@LEVELS
def test_a_tiny_epsilon_is_no_worse_than_no_items_at_all(level):
    model, held = fitted(level, epsilon=0.0001), ratings(people=100, seed=2)
    error, bare = [], []
    for user in range(100):
        mine = held[held[:, 0] == user]
        own, (_, item, given) = [(int(i), r) for _, i, r in mine[1:]], mine[0]
        error.append(given - model.predict([int(item)], own)[0])
        bare.append(given - np.mean([rating for _, rating in own]))
    assert np.sqrt(np.mean(np.square(error))) < 1.1 * np.sqrt(np.mean(np.square(bare)))


def test_privacy_levels_protect_what_they_state():
    assert repr(fitted("event").loss_).endswith("for the removal of one rating)")
    assert repr(fitted("user").loss_).endswith("for the removal of one user)")
    assert repr(fitted("user", neighbours="replacement").loss_).endswith("for the replacement of one user)")


def test_a_user_with_very_many_ratings_counts_like_others():
    """Somebody who praises the worst item a million times moves its effect by what one person may."""
    loud = np.column_stack([np.full(20_000, 10**6), np.zeros(20_000), np.full(20_000, 5.0)])
    table = np.concatenate([TABLE, loud])
    quiet = fitted("user", table, epsilon=1000).predict([0])[0]
    assert abs(quiet - 2) < 0.3
    assert fitted("event", table, epsilon=1000).predict([0])[0] > 3.5  # which is what event level does not hide


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, np.asarray, "arrow", "labelled"])
def test_every_kind_of_table_is_read(kind):
    table = {"user": ["a", "b", "b"], "item": ["x", "y", "x"], "rating": [1.0, 2.0, 3.0]}
    frame = pd.DataFrame(table)
    if kind == "arrow":
        given = pa.table(table)
    elif kind == "labelled":
        given = frame.set_index(pd.Index([7, 3, 5]))
    else:
        given = kind(table) if kind is not np.asarray else frame.to_numpy()
    user, item, rating = read_columns(given, 3)
    assert list(user) == table["user"]
    assert list(item) == table["item"]
    assert list(rating) == table["rating"]
    model = Recommender(epsilon=1000, items=["x", "y"], bounds=(1, 5), level="event").fit(given)
    assert model.predict(["x", "never seen"]).shape == (2,)


def test_items_that_are_not_listed_count_nowhere():
    table = np.concatenate([TABLE, [[1, 77, 5.0]] * 5000])
    model = fitted("event", table, epsilon=1000)
    assert model.counts_.sum() == pytest.approx(len(TABLE), abs=100)
    assert item_codes([3, 1], np.array([1, 2, 3])).tolist() == [1, -1, 0]
    assert read_own_ratings([3, 1], {2: 5, 3: 4})[0].tolist() == [0]


def test_missing_ratings_are_left_out():
    table = np.concatenate([TABLE, [[1, 1, np.nan]] * 5000])
    assert fitted("event", table, epsilon=1000).counts_.sum() == pytest.approx(len(TABLE), abs=100)


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"level": "person"}, "level"),
        ({"bounds": None}, "bounds: declare"),
        ({"taste": 5}, "taste"),
        ({"items": [1, 1]}, "items"),
        ({"items": []}, "items"),
        ({"ratings_per_user": 0}, "ratings_per_user"),
        ({"table": TABLE[:, :2]}, "3 columns"),
    ],
)
def test_wrong_settings_are_refused(changed, match):
    with pytest.raises(ValueError, match=match):
        fitted(**({"level": "event"} | changed))


def test_rules_depend_on_one_row_at_a_time():
    generator = np.random.default_rng(4)
    for _ in range(10):
        low, third, level = generator.uniform(-5, 5), generator.uniform(0.1, 3), generator.uniform(0, 3)
        ends = np.array([-1, low]), np.array([9, low + 3 * third])
        check_row_wise(split_between_bounds, (low, third), *ends)
        check_row_wise(item_entries, (low, third, level, 0.3, 10, 3), *ends)
        check_row_wise(count_and_deviation, (low, third, level, 0.2), *ends)
        base = generator.uniform(0, 3, 7)
        check_row_wise(item_pair_entries, (low, third, base, 0.3), np.full(7, low), np.full(7, low + 3 * third))


def test_a_person_without_a_rating_adds_nothing_for_it():
    rows = np.array([[1.0, np.nan, 5.0], [np.nan, np.nan, np.nan]])
    vectors = item_pair_entries(rows, (1.0, 4 / 3, np.full(3, 1.5), 0.3))
    assert np.isfinite(vectors).all()
    assert (vectors[1] == 0).all()
    assert np.flatnonzero(vectors[0, 6:]).tolist() == [0, 2, 5]  # the pairs of the first and the third with each other


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_people_are_the_same_however_their_ratings_are_batched(size):
    table = TABLE[:60]
    rows = array_rows(table[:, 1:], (np.array([-1.0, 1.0]), np.array([19.0, 5.0])), table[:, 0])
    items = np.array([4, 7, 19])
    found = np.concatenate([batch for batch, _ in RatingsByUnit(rows, items).batches(size)])
    expected = np.full((6, 3), np.nan)
    for user, item, given in table:
        if item in items:
            expected[int(user), items.tolist().index(int(item))] = given
    np.testing.assert_array_equal(found, expected)


def test_people_are_the_same_whatever_the_order_of_their_rows():
    table = np.array([[0, 4, 5.0], [0, 4, 1.0], [0, 7, 2.0], [1, 4, 3.0], [1, 4, 4.0]])
    bounds = np.array([-1.0, 1.0]), np.array([19.0, 5.0])
    people = [
        list(RatingsByUnit(array_rows(rows[:, 1:], bounds, rows[:, 0]), np.array([4, 7])).batches(100))
        for rows in (table, table[[2, 1, 0, 4, 3]])
    ]
    for found in people:
        np.testing.assert_array_equal(np.concatenate([batch for batch, _ in found]), [[5, 2], [4, np.nan]])


def test_taste_is_learned_from_many_people():
    """Two camps, each with its own half of the items: who likes one of them will like the others."""
    generator = np.random.default_rng(6)
    user = np.repeat(np.arange(8000), 6)
    item = np.argsort(generator.random((8000, 12)), axis=1)[:, :6].ravel()
    camp = np.where((item < 6) == (user % 2 == 0), 1.0, -1.0)
    table = np.column_stack([user, item, np.clip(3 + camp + generator.normal(0, 0.4, len(user)), 1, 5)])
    settings = {"items": range(12), "level": "user", "table": table, "epsilon": 2, "delta": 1e-6}
    own = {0: 4, 1: 4, 7: 2}
    blind, seeing = fitted(**settings), fitted(taste=12, **settings)
    assert np.abs(np.diff(blind.predict([2, 8], own))) < 0.5
    assert seeing.predict([2], own)[0] > seeing.predict([8], own)[0] + 1
    assert seeing.predict([99], own)[0] == pytest.approx(seeing.predict([98], own)[0])


def test_covariance_of_noise_alone_is_nothing():
    generator = np.random.default_rng(8)
    for _ in range(20):
        noise = generator.normal(0, 2.0, 820)
        assert np.abs(taste_covariance(noise, 2.0, generator.normal(0, 6.0, 820), 6.0)).max() < 0.15


def test_effects_are_shrunk_to_zero_under_strong_noise():
    counts, sums = np.array([100.0, 100.0, -5.0]), np.array([50.0, -50.0, 30.0])
    clear, vague = (item_effects(counts, s, sums, s, is_gaussian=True) for s in (0.1, 300.0))
    assert clear[:2] == pytest.approx([0.47, -0.47], abs=0.01)
    assert np.abs(vague).max() < 0.02
    assert shrunken_overall_mean(np.array([1.0, -2.0]), 10.0)[0] == pytest.approx(1.5, abs=0.5)


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_at_user_level_the_mean_is_over_ratings_and_not_over_people(delta):
    """A tenth of the people rate ten times as many items as the others, and lower."""
    generator = np.random.default_rng(3)
    user = np.repeat(np.arange(3000), np.where(np.arange(3000) % 10 == 0, 200, 20))
    given = np.clip(np.where(user % 10 == 0, 2.5, 4) + generator.normal(0, 0.5, len(user)), 1, 5)
    table = np.column_stack([user, generator.integers(0, 5000, len(user)), given])
    model = fitted("user", table, items=range(5000), delta=delta)
    assert abs(model.mean_ - given.mean()) < 0.1  # the mean over people is 0.56 above
    assert np.sqrt((model.effects_**2).mean()) < 0.15


def test_under_strong_noise_neighbouring_items_share_an_effect():
    """Nobody can tell apart the 9,600 items of this list, but its first and its second half can be."""
    generator = np.random.default_rng(12)
    user, item = np.repeat(np.arange(600), 100), generator.integers(0, 9600, 60_000)
    given = np.clip(np.where(item < 4800, 4, 3) + generator.normal(0, 0.5, len(user)), 1, 5)
    model = fitted("user", np.column_stack([user, item, given]), items=range(9600), epsilon=2)
    assert len(np.unique(model.effects_)) == 32
    assert model.effects_[:4800].mean() - model.effects_[4800:].mean() > 0.7
    assert model.counts_[:4800].sum() == pytest.approx(model.counts_[4800:].sum(), rel=0.5)


def test_blocks_of_items_that_share_nothing_have_hardly_any_effect():
    generator = np.random.default_rng(13)
    counts = np.full(64, 300.0)
    for _ in range(20):
        none = block_effects(generator.laplace(0, 30, 64), 30 * 2**0.5, counts, 100, block_size=150)
        assert np.sqrt((none**2).mean()) < 0.07  # the noise alone is 0.14
    some = block_effects(np.repeat([60.0, -60.0], 32), 1, counts, 3, block_size=150)
    assert some[[0, -1]] == pytest.approx([0.2, -0.2], rel=0.02)
    assert choose_blocks(20, n_users=1000, n_ratings=10_000, sum_sd=1e6) == 20  # too few to be worth it


@pytest.mark.parametrize("normal", [True, False])
def test_expected_counts_are_between_the_noisy_count_and_the_prior(normal):
    number, square = expected_counts(np.array([-40.0, 0.0, 30.0, 5000.0]), 10.0, is_gaussian=normal)
    assert (number[:2] >= 1).all()
    assert number[1] < 10 < number[2] < 31
    assert number[3] == pytest.approx(5000, rel=0.01)
    assert (square >= number**2).all()


def test_a_fit_is_charged_once():
    ledger = dc.memory_ledger(name="films", budget=dc.Budget(5, 1e-5))
    model = fitted("user", delta=1e-6, taste=3)
    Recommender(**model.get_params()).fit(TABLE, ledger=ledger)
    (event,) = ledger.events()
    assert (event.state, event.question) == ("released", "Recommender")
    assert event.loss.rho == model.loss_.rho


def test_a_curator_fits_it_for_the_policys_privacy_unit():
    table = pa.table({"user": TABLE[:, 0].astype(int), "item": TABLE[:, 1].astype(int), "rating": TABLE[:, 2]})
    columns = {"user": {"type": "integer"}, "item": {"type": "integer", "between": [0, 19]}}
    columns["rating"] = {"type": "real", "between": [1, 5]}
    with pytest.warns(UserWarning, match="memory"):
        curator = dc.open(
            table, table="films", unit="user", budget=dc.Budget(8, 1e-6), columns=columns, groups=1, rows=1
        )
    with curator:
        model = Recommender(epsilon=5, delta=1e-6, items=range(20), level="user", taste=2)
        curator.fit(model, "SELECT item, rating FROM films")
        assert np.corrcoef(model.predict(range(20)), GOOD)[0, 1] > 0.9
        with pytest.raises(Refused, match="two columns"):
            curator.fit(model, "SELECT item FROM films")


def test_settings_are_tuned_on_held_out_ratings_of_other_people():
    held, answers = ratings(people=60, each=6, seed=9), ratings(people=60, each=6, seed=9)[:, 2]

    def fit(many, price):
        return fitted("user", epsilon=price.epsilon, delta=price.delta, ratings_per_user=many)

    def score(model, price):
        known = model.with_ratings(held[::2])
        return evaluate(known, held[1::2, :2], answers[1::2], metric="rmse", bounds=(1, 5), unit=held[1::2, 0],
                        epsilon=price.epsilon, delta=price.delta)  # fmt: skip

    found = tune([1, 10], fit, score, epsilon=50, delta=1e-6, trials=Trials("1/2", max_trials=4))
    assert found.candidate in (1, 10)
    assert 0 <= found.score.value <= 4  # an error is never below none, whatever its noise
    assert found.loss.epsilon == 50


@pytest.mark.long
@pytest.mark.parametrize(("level", "epsilon", "bar"), [("event", 1, 1.0), ("user", 0.01, 1.045), ("user", 1, 1.045)])
def test_movies_are_predicted_within_the_error_targets(level, epsilon, bar):
    path = DATA / "movielens_latest_small_ratings.parquet"
    if not path.exists():
        pytest.skip("needs MovieLens: set DISCREET_DATA")
    table = pq.read_table(path, columns=["userId", "movieId", "rating"])
    user, item, rating = (column.to_numpy() for column in table.columns)
    held = np.random.default_rng(17).random(len(user)) < 0.2
    model = Recommender(epsilon=epsilon, items=np.unique(item), bounds=(0.5, 5), level=level)
    model.fit(table.filter(pa.array(~held)))
    squares = []
    for who in np.unique(user[held]):
        mine = user == who
        own = list(zip(item[mine & ~held], rating[mine & ~held], strict=True))
        squares.append((rating[mine & held] - model.predict(item[mine & held], own)) ** 2)
    assert np.sqrt(np.concatenate(squares).mean()) <= bar
    if epsilon == 1:  # also for somebody who has not rated anything
        constant = np.sqrt(np.mean((rating[held] - rating[~held].mean()) ** 2))
        alone = np.sqrt(np.mean((rating[held] - model.predict(item[held])) ** 2))
        assert alone <= (bar if level == "event" else 1.01 * constant)  # on average, it is below the constant


def test_people_with_long_ids_stay_distinct_and_null_is_no_person():
    table = pa.table({"user": pa.array([2**53, 2**53 + 1, None]), "item": [0, 0, 0], "rating": [5.0, 5.0, 5.0]})
    users = read_columns(table, 3)[0]
    assert users[:2].tolist() == [2**53, 2**53 + 1]
    with pytest.raises(ValueError, match="some rows have no unit"):
        Recommender(epsilon=1, items=[0], bounds=(1, 5), level="user").fit(table)


def test_the_ledger_of_a_policy_requires_user_level_privacy():
    ledger = dc.memory_ledger(name="d", budget=dc.Budget(1), unit_declaration="each person")
    rows = np.array([[1, 0, 5.0], [2, 0, 4.0]])
    with pytest.raises(ValueError, match="pass the unit"):
        Recommender(epsilon=1, items=[0], bounds=(1, 5), level="event").fit(rows, ledger=ledger)
    assert Recommender(epsilon=1, items=[0], bounds=(1, 5), level="user").fit(rows, ledger=ledger).loss_.unit == "user"
