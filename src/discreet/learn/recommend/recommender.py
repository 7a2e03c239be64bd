"""A private recommender: noisy item statistics, combined with a user's own ratings.

The release contains how often and how highly each item is rated and, optionally, the covariance of the most rated
items. Predictions combine it with the user's own ratings, which need not leave the user's device.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from discreet.kernel.errors import Refused
from discreet.kernel.ledger import Ledger
from discreet.kernel.model_release import Combine
from discreet.kernel.numbers import Number, as_integer
from discreet.learn.bounds import parse_bounds
from discreet.learn.fit_cost import REMOVAL
from discreet.learn.fit_inputs import QueryRows, check_ledger
from discreet.learn.fit_session import FitSession, FitSource, open_model_session
from discreet.learn.recommend.item_effects import (
    BLOCK_RATINGS,
    RATING_VARIANCE,
    USER_VARIANCE,
    block_effects,
    choose_blocks,
    item_effects,
    shrunken_move,
    shrunken_overall_mean,
    taste_covariance,
)
from discreet.learn.recommend.rating_rows import (
    QueryRatings,
    RatingsByUnit,
    SwitchableRows,
    count_and_deviation,
    item_codes,
    item_entries,
    item_pair_entries,
    read_columns,
    read_own_ratings,
    split_between_bounds,
)
from discreet.learn.row_sources import array_rows

EVENT, USER = "event", "user"
# Budget shares of the overall mean, at user level first over users and then over ratings, and of the items. With
# `taste`, the covariance takes a third of the total.
_SHARES_BY_LEVEL = {EVENT: [1, 19], USER: [1, 4, 5]}
_COUNT_WEIGHT = 0.3  # weight of an item's count, relative to its sum, whose noise matters more
_TOTAL_COUNT_WEIGHT = 0.2  # weight of a rating's presence, relative to its deviation from the mean over users
_USUAL_USER_DEVIATION = 0.25  # of a user's mean rating, in thirds of the range
_PAIR_COUNT_WEIGHT = 0.3  # weight of the number of people with both items


class Recommender(BaseEstimator):  # type: ignore[misc]
    """Predicts ratings; protects single ratings (`level="event"`) or all ratings of a user (`level="user"`).

    `items` is the public list of items. With `taste=m`, the covariance of the m most rated items is learned too; this
    needs many thousands of users and `level="user"`. At user level, the overall mean counts up to about
    `ratings_per_user` ratings of a user; where noise hides single items, items that are next to each other in `items`
    share one effect, so list them by year, genre or series.

    >>> rng = np.random.default_rng(0)
    >>> table = np.column_stack([np.arange(6000) % 300, np.arange(6000) % 7, rng.integers(1, 6, 6000)])
    >>> model = Recommender(epsilon=1, items=range(7), bounds=(1, 5), level="event").fit(table)
    >>> model.predict([0, 3], own={1: 5, 2: 5}).shape, model.loss_
    ((2,), Loss(epsilon=1, rho=1/2, for the removal of one rating))
    """

    def __init__(  # noqa: PLR0913 - scikit-learn requires one parameter per setting
        self,
        *,
        epsilon: Number,
        delta: Number = 0,
        items: Any,
        bounds: Any = None,
        level: str,
        ratings_per_user: int = 1000,
        taste: int = 0,
        neighbours: str = REMOVAL,
    ) -> None:
        self.epsilon, self.delta, self.items, self.bounds, self.level = epsilon, delta, items, bounds, level
        self.ratings_per_user, self.taste, self.neighbours = ratings_per_user, taste, neighbours

    def fit(self, ratings: Any, y: Any = None, *, unit: Any = None, ledger: Ledger | None = None) -> Self:  # noqa: ARG002 - y is for Pipelines
        """Fit to a table of user, item and rating; with level="user", `unit` can replace the users as units."""
        self._check_parameters()
        if unit is not None and self.level == EVENT:
            raise ValueError("unit: level='event' protects single ratings and takes no unit; use level='user'")
        check_ledger(ledger, None if self.level == EVENT else USER)
        users, rated_items, given_ratings = read_columns(ratings, 3)
        coded = np.column_stack([item_codes(self.items, rated_items), np.asarray(given_ratings, np.float64)])
        is_finite = np.isfinite(coded[:, 1])
        units = None if self.level == EVENT else np.asarray(users if unit is None else unit)[is_finite]
        unit_noun = "rating" if self.level == EVENT else "user"
        return self._fit_source(FitSource(array_rows(coded[is_finite], self._row_bounds(), units), unit_noun, ledger))

    def fit_rows(self, rows: QueryRows) -> Self:
        """Fit to the rows (item, rating) of a curator's query; the policy declares the privacy unit."""
        self._check_parameters()
        if len(rows.names) != 2:
            raise Refused("SELECT: list exactly two columns, the item and the rating.")
        coded = QueryRatings(rows, *self._row_bounds(rows.bounds[1]), np.asarray(self.items))
        question = f"fit {type(self).__name__}: {rows.question}"
        return self._fit_source(FitSource(coded, rows.protects, rows.ledger, rows.by, question))

    def _check_parameters(self) -> None:
        if self.level not in (EVENT, USER):
            raise ValueError(
                f"level must be {EVENT!r} (protects one rating) or {USER!r} (protects all ratings of a user)"
            )
        as_integer(self.ratings_per_user, "ratings_per_user", minimum=1)
        if as_integer(self.taste, "taste") and self.level == EVENT:
            raise ValueError("taste: the covariance of items needs level='user'")
        if len(np.unique(np.asarray(self.items))) != len(self.items) or not len(self.items):
            raise ValueError("items must list at least one item, each once")

    def _row_bounds(self, policy_bounds: Any = None) -> tuple[np.ndarray, np.ndarray]:
        low, high = parse_bounds(policy_bounds if self.bounds is None else self.bounds, 1)
        return np.array([-1.0, low[0]]), np.array([len(self.items) - 1.0, high[0]])

    def _fit_source(self, source: FitSource) -> Self:
        rows = SwitchableRows(source.rows)
        shares = [2 * share for share in _SHARES_BY_LEVEL[self.level]]
        shares += [sum(shares) // 2] if self.taste else []
        session = open_model_session(
            self, FitSource(rows, source.unit, source.ledger, source.by, source.question), shares
        )
        self._low, self._third = float(source.rows.low[1]), float(source.rows.high[1] - source.rows.low[1]) / 3
        overall_mean = self._fit_items(session)
        self.taste_items_, self.taste_covariance_ = np.zeros(0, np.int64), np.zeros((0, 0))
        if self.taste:
            self.taste_items_ = np.argsort(-self.counts_, kind="stable")[: self.taste]
            rows.current = RatingsByUnit(source.rows, self.taste_items_)
            self.taste_covariance_ = self._fit_taste(session, overall_mean)
        return session.finish(self)

    def _fit_items(self, session: FitSession) -> float:
        """Fit counts and effects of items; return the overall mean, in thirds of the range."""
        noise_sd = session.sd()
        ends = session.sum(split_between_bounds, (self._low, self._third), size=2, radius=1)
        overall_mean, self.doubt_ = shrunken_overall_mean(ends, noise_sd)
        n_items, ratings_per_unit, blocks = len(self.items), 1.0, len(self.items)
        if self.level == USER:
            n_users = max(float(ends.sum()), noise_sd, 1.0)
            overall_mean, n_ratings = self._mean_over_ratings(session, overall_mean)
            ratings_per_unit = float(np.clip(n_ratings / n_users, 1, self.ratings_per_user))
            if not self.taste:
                sd = session.sd(_usual_norm(ratings_per_unit, is_gaussian=session.is_gaussian))
                blocks = choose_blocks(n_items, n_users, n_ratings, sd)
            if blocks < n_items:
                ratings_per_unit = max(BLOCK_RATINGS * ratings_per_unit, 1.0)
        self.mean_ = self._low + self._third * overall_mean
        radius = _usual_norm(ratings_per_unit, is_gaussian=session.is_gaussian)
        if self.level == EVENT:
            radius = float(np.hypot(_COUNT_WEIGHT, 1)) if session.is_gaussian else _COUNT_WEIGHT + 1  # of any rating
        noise_sd, is_gaussian = session.sd(radius), session.is_gaussian
        totals = session.sparse_sum(
            item_entries,
            (self._low, self._third, overall_mean, _COUNT_WEIGHT, n_items, blocks),
            size=2 * blocks,
            radius=radius,
        )
        counts, sums = totals[:blocks] / _COUNT_WEIGHT, totals[blocks:]
        count_sd = noise_sd / _COUNT_WEIGHT
        effects = (
            item_effects(counts, count_sd, sums, noise_sd, is_gaussian=is_gaussian)
            if blocks == n_items
            else block_effects(sums, noise_sd, counts, count_sd, n_items / blocks)
        )
        block_of_item = np.arange(n_items) * blocks // n_items
        self.counts_ = (counts / np.bincount(block_of_item))[block_of_item]
        self.effects_ = self._third * effects[block_of_item]
        return overall_mean

    def _mean_over_ratings(self, session: FitSession, user_mean: float) -> tuple[float, float]:
        """Return the mean over ratings, and their number: active users may rate differently from others.

        Deviations of a user's ratings from the mean over users partly cancel, so that they need a small radius.
        """
        radius = self.ratings_per_user * (_TOTAL_COUNT_WEIGHT + _USUAL_USER_DEVIATION)
        sd = session.sd(radius)
        weighted_count, deviations = session.sum(
            count_and_deviation,
            (self._low, self._third, user_mean, _TOTAL_COUNT_WEIGHT),
            size=2,
            radius=radius,
            combine=Combine.SUM,
        )
        count = max(float(weighted_count), 2 * sd) / _TOTAL_COUNT_WEIGHT
        move, self.doubt_ = shrunken_move(float(deviations) / count, sd / count, self.doubt_)
        return round(float(np.clip(user_mean + move, 0, 3)), 4), count

    def _fit_taste(self, session: FitSession, overall_mean: float) -> np.ndarray:
        size = len(self.taste_items_)
        base = overall_mean + self.effects_[self.taste_items_] / self._third
        n_pairs = size * (size + 1) // 2
        noise_sd = session.sd()
        totals = session.sum(
            item_pair_entries, (self._low, self._third, base, _PAIR_COUNT_WEIGHT), size=2 * n_pairs, radius=1
        )
        return taste_covariance(
            totals[:n_pairs], noise_sd, totals[n_pairs:] / _PAIR_COUNT_WEIGHT, noise_sd / _PAIR_COUNT_WEIGHT
        )

    def predict(self, items: Any, own: Any = None) -> np.ndarray:
        """Return predicted ratings of items for one person; `own` is that person's ratings, {item: rating} or pairs."""
        check_is_fitted(self)
        codes = item_codes(self.items, np.atleast_1d(np.asarray(items)))
        return self._predict_codes(codes, *read_own_ratings(self.items, own))

    def recommend(self, own: Any = None, count: int = 10) -> list[tuple[Any, float]]:
        """Return the `count` items with the highest predictions among those the person has not rated."""
        check_is_fitted(self)
        own_codes, own_ratings = read_own_ratings(self.items, own)
        expected = self._predict_codes(np.arange(len(self.items)), own_codes, own_ratings)
        expected[own_codes] = -np.inf
        best = np.argsort(-expected, kind="stable")[: min(count, len(expected) - len(np.unique(own_codes)))]
        return [(self.items[code], float(expected[code])) for code in best]

    def with_ratings(self, ratings: Any) -> "PersonalisedRecommender":
        """Return a model that predicts rows (user, item) from the users' own ratings, for `evaluate` with unit=user."""
        check_is_fitted(self)
        users, items, values = read_columns(ratings, 3)
        ratings_by_user: dict[Any, list[tuple[Any, float]]] = {}
        for user, item, rating in zip(users.tolist(), items.tolist(), values.tolist(), strict=True):
            ratings_by_user.setdefault(user, []).append((item, rating))
        return PersonalisedRecommender(self, ratings_by_user)

    def _predict_codes(self, codes: np.ndarray, own_codes: np.ndarray, own_ratings: np.ndarray) -> np.ndarray:
        base = self.mean_ + np.append(self.effects_, 0.0)  # the last entry is for items that are not listed
        expected = base[codes]
        if len(own_ratings):
            residuals = np.clip(own_ratings, self._low, self._low + 3 * self._third) - base[own_codes]
            user_effect = residuals.sum() / (len(residuals) + RATING_VARIANCE / (USER_VARIANCE + self.doubt_))
            expected = expected + user_effect + self._taste_effects(codes, own_codes, residuals - user_effect)
        return np.asarray(np.clip(expected, self._low, self._low + 3 * self._third))

    def _taste_effects(self, codes: np.ndarray, own_codes: np.ndarray, residuals: np.ndarray) -> np.ndarray:
        """Return the best linear prediction of residuals from the residuals of the person's own ratings."""
        position = np.full(len(self.items) + 1, -1)
        position[self.taste_items_] = np.arange(len(self.taste_items_))
        has_taste = position[own_codes] >= 0
        own_positions, positions = position[own_codes[has_taste]], position[codes]
        own_covariance = self.taste_covariance_[np.ix_(own_positions, own_positions)] + RATING_VARIANCE * np.eye(
            len(own_positions)
        )
        weights = np.linalg.solve(own_covariance, residuals[has_taste]) if len(own_positions) else residuals[:0]
        guess = self.taste_covariance_[:, own_positions] @ weights
        return np.where(positions >= 0, np.append(guess, 0.0)[positions], 0.0)


def _usual_norm(n_ratings: float, *, is_gaussian: bool) -> float:
    """Return the typical norm of the counts and deviations of so many ratings."""
    if is_gaussian:
        return float(np.sqrt(n_ratings * (_COUNT_WEIGHT**2 + RATING_VARIANCE)))
    return n_ratings * (_COUNT_WEIGHT + 0.6)


@dataclass(frozen=True)
class PersonalisedRecommender:
    """A recommender with users' own ratings: a prediction for one user depends on that user's ratings only."""

    model: Recommender
    ratings_by_user: Mapping[Any, list[tuple[Any, float]]] = field(repr=False)

    def predict(self, X: Any) -> np.ndarray:
        """Return the expected rating of each row (user, item)."""
        users, items = read_columns(X, 2)
        rows = zip(users.tolist(), items.tolist(), strict=True)
        return np.array([self.model.predict([item], self.ratings_by_user.get(user))[0] for user, item in rows])
