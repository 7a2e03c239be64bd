"""Private selection of the best candidate, by the exponential mechanism."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from discreet.kernel.errors import FAILED, Failed
from discreet.kernel.event import Event, canonical_json
from discreet.kernel.ledger import Ledger
from discreet.kernel.loss import Loss
from discreet.kernel.numbers import Number, as_positive
from discreet.kernel.selection import Exponential, Utilities
from discreet.learn.fit_inputs import check_ledger
from discreet.learn.model_selection.evaluation import is_correct, row_scores
from discreet.learn.row_sources import array_rows

_LOG = logging.getLogger("discreet")
_SHARE_STEPS = 1 << 20  # in which a unit's share of right answers is counted


@dataclass(frozen=True)
class SelectionResult:
    """A candidate that was chosen privately, its place among the others, and the price.

    >>> SelectionResult("forest", 1, Loss(1)).candidate
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
) -> SelectionResult:
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
    mechanism = _exponential_mechanism(epsilon, sensitivity)
    if not len(candidates):
        raise ValueError("candidates must not be empty")
    utility = _resolve_utilities(candidates, utilities, X, y, unit)
    exact_sensitivity = as_positive(sensitivity, "sensitivity")
    if callable(utility) and utilities is None and exact_sensitivity != 1:
        raise ValueError("sensitivity: the number of right answers has one of 1")
    loss = mechanism.loss(exact_sensitivity)
    if X is not None:
        check_ledger(ledger, unit)
    if ledger is not None:
        norms = canonical_json({"l1": str(exact_sensitivity), "l2_squared": str(exact_sensitivity * exact_sensitivity)})
        receipt = ledger.charge(loss, Event(mechanism=str(mechanism), sensitivity=norms, question="select"))
    index = _select_index(mechanism, candidates, utility) if callable(utility) else mechanism.choose(utility)
    if ledger is not None:
        ledger.settle(receipt, canonical_json({"index": index}).encode())
    return SelectionResult(candidates[index], index, loss)


def probabilities(utilities: Utilities, *, epsilon: Number, sensitivity: Number = 1) -> list[float]:
    """Return how likely each candidate is to be chosen; these tell of the data, and are for lessons and tests.

    >>> [round(p, 3) for p in probabilities([100, 98, 90], epsilon=1)]
    [0.727, 0.268, 0.005]
    """
    return _exponential_mechanism(epsilon, sensitivity).probabilities(utilities)


def count_correct(model: Any, X: Any, y: Any, unit: Any = None) -> Fraction:
    """Return how many rows a model is right about or, by units, the sum of their shares of right answers.

    >>> from types import SimpleNamespace
    >>> zero = SimpleNamespace(predict=lambda X: [0] * len(X))
    >>> X, y = [[1], [2], [3]], [0, 0, 1]
    >>> count_correct(zero, X, y), count_correct(zero, X, y, unit=["a", "b", "b"])
    (Fraction(2, 1), Fraction(3, 2))
    """
    correct = np.nan_to_num(row_scores(model, X, y, is_correct))  # where a model fails, it is not right
    if unit is None:
        return Fraction(int(correct.sum()))
    rows_by_unit = array_rows(correct[:, np.newaxis], (np.zeros(1), np.ones(1)), unit)
    assert rows_by_unit.order is not None
    assert rows_by_unit.unit_numbers is not None
    correct_by_unit, rows_per_unit = (
        np.bincount(rows_by_unit.unit_numbers, correct[rows_by_unit.order]),
        np.bincount(rows_by_unit.unit_numbers),
    )
    return Fraction(
        sum(int(hit) * _SHARE_STEPS // int(total) for hit, total in zip(correct_by_unit, rows_per_unit, strict=True)),
        _SHARE_STEPS,
    )


def _exponential_mechanism(epsilon: Number, sensitivity: Number) -> Exponential:
    return Exponential(2 * as_positive(sensitivity, "sensitivity") / as_positive(epsilon, "epsilon"))


def _select_index(mechanism: Exponential, candidates: Sequence[Any], utility: Callable[[Any], Number]) -> int:
    """Work out the utilities and choose; whatever goes wrong then may depend on the data, and has one text."""
    try:
        return mechanism.choose([utility(candidate) for candidate in candidates])
    except Exception:  # noqa: BLE001 - as the docstring says
        _LOG.exception("a choice failed after it was charged")
    raise Failed(FAILED)


def _resolve_utilities(
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
    return lambda model: count_correct(model, X, y, unit)
