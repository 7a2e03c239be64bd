"""Recommending without telling who likes what: how items are rated is learned privately, taste stays at home.

What is released is about items: how often and how well each is rated, and, if asked for, which are liked together.
What a person may like is then worked out from that and from the person's own ratings, wherever those are.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from discreet.kernel.errors import Refused
from discreet.kernel.exact import Number, whole
from discreet.kernel.ledger import Ledger
from discreet.learn.bounds import declared
from discreet.learn.inputs import QueryRows, check_ledger
from discreet.learn.losses import REMOVAL
from discreet.learn.recommending.item_effects import PERSON, RATING, item_effects, liked_together, overall
from discreet.learn.recommending.ratings import (
    Layout,
    People,
    Queried,
    codes_of,
    columns_of,
    halves,
    own_of,
    pairs,
    rated,
)
from discreet.learn.rows import array_rows
from discreet.learn.session import Session, Source, begin_fit

EVENT, USER = "event", "user"
# How the price is divided over the overall mean and the items: a mean over few people needs more than one over many
# ratings. What items have in common takes a third of it all, if it is asked for.
_SHARES = {EVENT: [1, 19], USER: [1, 2]}
_WEIGHT = 0.3  # of an item's count beside its sum, whose noise hurts more
_PAIR_WEIGHT = 0.3  # of the number of people with both items


class Recommender(BaseEstimator):  # type: ignore[misc]
    """Predicts ratings; hides each single rating (`level="event"`) or all that a person has rated (`level="user"`).

    `items` is the public list of what can be rated. With `taste=m`, what the m most rated items have in common is
    learned too, which takes many thousand people; it is about people, so it needs `level="user"`. The weight of a
    person with more than `ratings_per_user` ratings is that of about so many.

    >>> rng = np.random.default_rng(0)
    >>> table = np.column_stack([np.arange(6000) % 300, np.arange(6000) % 7, rng.integers(1, 6, 6000)])
    >>> model = Recommender(epsilon=1, items=range(7), bounds=(1, 5), level="event").fit(table)
    >>> model.predict([0, 3], own={1: 5, 2: 5}).shape, model.loss_
    ((2,), Loss(epsilon=1, rho=1/2, for the removal of one rating))
    """

    def __init__(  # noqa: PLR0913 - scikit-learn's way: every setting is a parameter
        self,
        *,
        epsilon: Number,
        delta: Number = 0,
        items: Any,
        bounds: Any = None,
        level: str,
        ratings_per_user: int = 10,
        taste: int = 0,
        neighbours: str = REMOVAL,
    ) -> None:
        self.epsilon, self.delta, self.items, self.bounds, self.level = epsilon, delta, items, bounds, level
        self.ratings_per_user, self.taste, self.neighbours = ratings_per_user, taste, neighbours

    def fit(self, ratings: Any, y: Any = None, *, unit: Any = None, ledger: Ledger | None = None) -> Self:  # noqa: ARG002 - y is for Pipelines
        """Learn from a table of three columns: user, item, rating; at the user's level, `unit` may name other units."""
        self._check()
        if unit is not None and self.level == EVENT:
            raise ValueError("unit: at the level of single ratings there are no units; use level='user'")
        check_ledger(ledger, None if self.level == EVENT else USER)
        users, found, given = columns_of(ratings, 3)
        numbers = np.column_stack([codes_of(self.items, found), np.asarray(given, np.float64)])
        known = np.isfinite(numbers[:, 1])
        units = None if self.level == EVENT else np.asarray(users if unit is None else unit)[known]
        word = "rating" if self.level == EVENT else "user"
        return self._learn(Source(array_rows(numbers[known], self._ends(), units), word, ledger))

    def fit_rows(self, rows: QueryRows) -> Self:
        """Learn from the rows of a curator's query: the item and the rating. Its policy says who is protected."""
        self._check()
        if len(rows.names) != 2:
            raise Refused("SELECT: name two columns, the item and the rating.")
        coded = Queried(rows, *self._ends(rows.bounds[1]), np.asarray(self.items))
        question = f"fit {type(self).__name__}: {rows.question}"
        return self._learn(Source(coded, rows.protects, rows.ledger, rows.by, question))

    def _check(self) -> None:
        if self.level not in (EVENT, USER):
            raise ValueError(f"level must be {EVENT!r} (one rating is hidden) or {USER!r} (a person's whole taste is)")
        whole(self.ratings_per_user, "ratings_per_user", least=1)
        if whole(self.taste, "taste") and self.level == EVENT:
            raise ValueError("taste: what one person likes together is about people; it needs level='user'")
        if len(np.unique(np.asarray(self.items))) != len(self.items) or not len(self.items):
            raise ValueError("items must list what can be rated, each once")

    def _ends(self, policy: Any = None) -> tuple[np.ndarray, np.ndarray]:
        low, high = declared(policy if self.bounds is None else self.bounds, 1)
        return np.array([-1.0, low[0]]), np.array([len(self.items) - 1.0, high[0]])

    def _learn(self, source: Source) -> Self:
        layout = Layout(source.rows)
        shares = [2 * share for share in _SHARES[self.level]]
        shares += [sum(shares) // 2] if self.taste else []
        session = begin_fit(self, Source(layout, source.unit, source.ledger, source.by, source.question), shares)
        self._low, self._third = float(source.rows.low[1]), float(source.rows.high[1] - source.rows.low[1]) / 3
        level = self._learn_items(session)
        self.taste_items_, self.taste_covariance_ = np.zeros(0, np.int64), np.zeros((0, 0))
        if self.taste:
            self.taste_items_ = np.argsort(-self.counts_, kind="stable")[: self.taste]
            layout.now = People(source.rows, self.taste_items_)
            self.taste_covariance_ = self._learn_taste(session, level)
        return session.finish(self)

    def _learn_items(self, session: Session) -> float:
        """Learn how often and how well each item is rated; return the overall mean, in thirds of the range."""
        noise = session.sd()
        level, self.doubt_ = overall(session.sum(halves, (self._low, self._third), size=2, radius=1), noise)
        self.mean_ = self._low + self._third * level
        length = self._radius(session)
        noise, normal, count = session.sd(length), session.is_gaussian, len(self.items)
        found = session.sparse_sum(
            rated, (self._low, self._third, level, count, _WEIGHT), size=2 * count, radius=length
        )
        self.counts_, sums = found[:count] / _WEIGHT, found[count:]
        self.effects_ = self._third * item_effects(self.counts_, noise / _WEIGHT, sums, noise, normal=normal)
        return level

    def _radius(self, session: Session) -> float:
        """Return the length of a unit's vector: of one rating at most, or of a person's with so many usual ones."""
        if self.level == EVENT:
            return float(np.hypot(_WEIGHT, 1)) if session.is_gaussian else _WEIGHT + 1
        many = self.ratings_per_user
        return float(np.sqrt(many * (_WEIGHT**2 + RATING))) if session.is_gaussian else many * (_WEIGHT + 0.6)

    def _learn_taste(self, session: Session, level: float) -> np.ndarray:
        size = len(self.taste_items_)
        base = level + self.effects_[self.taste_items_] / self._third
        count = size * (size + 1) // 2
        noise = session.sd()
        found = session.sum(pairs, (self._low, self._third, base, _PAIR_WEIGHT), size=2 * count, radius=1)
        return liked_together(found[:count], noise, found[count:] / _PAIR_WEIGHT, noise / _PAIR_WEIGHT)

    def predict(self, items: Any, own: Any = None) -> np.ndarray:
        """Return what a person would give each item; `own` holds that person's ratings, {item: rating} or pairs."""
        check_is_fitted(self)
        codes = codes_of(self.items, np.atleast_1d(np.asarray(items)))
        return self._predicted(codes, *own_of(self.items, own))

    def recommend(self, own: Any = None, count: int = 10) -> list[tuple[Any, float]]:
        """Return the items that a person would like best, of those that are not among the person's own."""
        check_is_fitted(self)
        held, given = own_of(self.items, own)
        expected = self._predicted(np.arange(len(self.items)), held, given)
        expected[held] = -np.inf
        best = np.argsort(-expected, kind="stable")[: min(count, len(expected) - len(np.unique(held)))]
        return [(self.items[code], float(expected[code])) for code in best]

    def knowing(self, ratings: Any) -> "Acquainted":
        """Return a model that knows people's own ratings, to predict rows of (user, item): for evaluate, by user."""
        check_is_fitted(self)
        users, found, given = columns_of(ratings, 3)
        known: dict[Any, list[tuple[Any, float]]] = {}
        for user, item, rating in zip(users.tolist(), found.tolist(), given.tolist(), strict=True):
            known.setdefault(user, []).append((item, rating))
        return Acquainted(self, known)

    def _predicted(self, codes: np.ndarray, held: np.ndarray, given: np.ndarray) -> np.ndarray:
        base = self.mean_ + np.append(self.effects_, 0.0)  # the last is for an item that is not on the list
        expected = base[codes]
        if len(given):
            rest = np.clip(given, self._low, self._low + 3 * self._third) - base[held]
            usual = rest.sum() / (len(rest) + RATING / (PERSON + self.doubt_))
            expected = expected + usual + self._by_taste(codes, held, rest - usual)
        return np.asarray(np.clip(expected, self._low, self._low + 3 * self._third))

    def _by_taste(self, codes: np.ndarray, held: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """Return the best linear guess of what is left over for some items, from what is left over for others."""
        place = np.full(len(self.items) + 1, -1)
        place[self.taste_items_] = np.arange(len(self.taste_items_))
        seen = place[held] >= 0
        here, there = place[held[seen]], place[codes]
        known = self.taste_covariance_[np.ix_(here, here)] + RATING * np.eye(len(here))
        weights = np.linalg.solve(known, rest[seen]) if len(here) else rest[:0]
        guess = self.taste_covariance_[:, here] @ weights
        return np.where(there >= 0, np.append(guess, 0.0)[there], 0.0)


@dataclass(frozen=True)
class Acquainted:
    """A recommender with people's own ratings: what it predicts for one person depends on that person's alone."""

    model: Recommender
    known: Mapping[Any, list[tuple[Any, float]]] = field(repr=False)

    def predict(self, X: Any) -> np.ndarray:
        """Return the expected rating of each row (user, item)."""
        users, items = columns_of(X, 2)
        rows = zip(users.tolist(), items.tolist(), strict=True)
        return np.array([self.model.predict([item], self.known.get(user))[0] for user, item in rows])
