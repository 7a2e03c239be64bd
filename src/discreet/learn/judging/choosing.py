"""Choosing the best of several models privately: the better ones are the more likely ones, exactly so."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from discreet.kernel.choice import Exponential, Utilities
from discreet.kernel.errors import FAILED, Failed
from discreet.kernel.event import Event, canonical
from discreet.kernel.exact import Number, positive
from discreet.kernel.ledger import Ledger
from discreet.kernel.loss import Loss
from discreet.learn.inputs import check_ledger
from discreet.learn.judging.scoring import right, sayings
from discreet.learn.rows import array_rows

_LOG = logging.getLogger("discreet")
_STEPS = 1 << 20  # in which a unit's share of right answers is counted


@dataclass(frozen=True)
class Choice:
    """A candidate that was chosen privately, its place among the others, and the price.

    >>> Choice("forest", 1, Loss(1)).candidate
    'forest'
    """

    candidate: Any
    index: int
    loss: Loss


def select(  # noqa: PLR0913 - what is chosen from, by what, at which price
    candidates: Sequence[Any],
    utilities: Utilities | Callable[[Any], Number] | None = None,
    *,
    epsilon: Number,
    sensitivity: Number = 1,
    X: Any = None,
    y: Any = None,
    unit: Any = None,
    ledger: Ledger | None = None,
) -> Choice:
    """Choose candidate i with a probability proportional to exp(epsilon·utility_i/(2·sensitivity)).

    Utilities are given for each candidate or worked out by a function of it; or the candidates are public models and
    the utility of each is its number of right answers on X and y (with `unit`, the sum of each unit's share of right
    ones), which one row (one unit) moves by at most 1. `sensitivity` is how far one unit can move any utility.
    Accuracies are shares of a number n of rows that must be public then: sensitivity=Fraction(1, n), for neighbours
    that differ in one row's values; so Pr(i) is proportional to exp(epsilon·n·accuracy_i/2).

    >>> choice = select(["tree", "forest", "line"], [812, 1005, 640], epsilon=1)
    >>> choice.candidate, choice.loss
    ('forest', Loss(epsilon=1, rho=1/8))
    """
    mechanism = _mechanism(epsilon, sensitivity)
    if not len(candidates):
        raise ValueError("candidates must not be empty")
    measure = _measure(candidates, utilities, X, y, unit)
    moved = positive(sensitivity, "sensitivity")
    if callable(measure) and utilities is None and moved != 1:
        raise ValueError("sensitivity: the number of right answers has one of 1")
    loss = mechanism.loss(moved)
    if X is not None:
        check_ledger(ledger, unit)
    if ledger is not None:
        norms = canonical({"l1": str(moved), "l2_squared": str(moved * moved)})
        receipt = ledger.charge(loss, Event(mechanism=str(mechanism), sensitivity=norms, question="select"))
    index = _chosen(mechanism, candidates, measure) if callable(measure) else mechanism.choose(measure)
    if ledger is not None:
        ledger.settle(receipt, canonical({"index": index}).encode())
    return Choice(candidates[index], index, loss)


def probabilities(utilities: Utilities, *, epsilon: Number, sensitivity: Number = 1) -> list[float]:
    """Return how likely each candidate is to be chosen; these tell of the data, and are for lessons and tests.

    >>> [round(p, 3) for p in probabilities([100, 98, 90], epsilon=1)]
    [0.727, 0.268, 0.005]
    """
    return _mechanism(epsilon, sensitivity).probabilities(utilities)


def right_answers(model: Any, X: Any, y: Any, unit: Any = None) -> Fraction:
    """Return how many rows a model is right about or, by units, the sum of their shares of right answers.

    >>> from types import SimpleNamespace
    >>> zero = SimpleNamespace(predict=lambda X: [0] * len(X))
    >>> X, y = [[1], [2], [3]], [0, 0, 1]
    >>> right_answers(zero, X, y), right_answers(zero, X, y, unit=["a", "b", "b"])
    (Fraction(2, 1), Fraction(3, 2))
    """
    said = np.nan_to_num(sayings(model, X, y, right))  # where a model fails, it is not right
    if unit is None:
        return Fraction(int(said.sum()))
    places = array_rows(said[:, np.newaxis], (np.zeros(1), np.ones(1)), unit)
    assert places.order is not None
    assert places.places is not None
    hits, rows = np.bincount(places.places, said[places.order]), np.bincount(places.places)
    return Fraction(sum(int(hit) * _STEPS // int(of) for hit, of in zip(hits, rows, strict=True)), _STEPS)


def _mechanism(epsilon: Number, sensitivity: Number) -> Exponential:
    return Exponential(2 * positive(sensitivity, "sensitivity") / positive(epsilon, "epsilon"))


def _chosen(mechanism: Exponential, candidates: Sequence[Any], measure: Callable[[Any], Number]) -> int:
    """Work out the utilities and choose; whatever goes wrong then may depend on the data, and has one text."""
    try:
        return mechanism.choose([measure(candidate) for candidate in candidates])
    except Exception:  # noqa: BLE001 - as the docstring says
        _LOG.exception("a choice failed after it was charged")
    raise Failed(FAILED)


def _measure(
    candidates: Sequence[Any], utilities: Any, X: Any, y: Any, unit: Any
) -> Sequence[Number] | Callable[[Any], Number]:
    """Return the utilities, or the function that gives them once they are paid for."""
    if (utilities is None) is (X is None):
        raise ValueError("utilities: give one for each candidate, or a function, or X and y to count right answers")
    if X is None:
        if not callable(utilities) and len(utilities) != len(candidates):
            raise ValueError(f"utilities must be one for each of the {len(candidates)} candidates")
        return utilities  # type: ignore[no-any-return]
    if y is None:
        raise ValueError("y: right answers need what is true")
    check_consistent_length(X, y, unit)
    return lambda model: right_answers(model, X, y, unit)
