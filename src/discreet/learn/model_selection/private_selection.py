"""Private selection of the best candidate, by the exponential mechanism."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from discreet import privacy
from discreet.kernel.errors import FAILED, Failed
from discreet.kernel.event import Event, canonical_json
from discreet.kernel.ledger import Ledger
from discreet.kernel.loss import Loss
from discreet.kernel.numbers import Number, as_positive
from discreet.learn.fit_inputs import check_ledger
from discreet.learn.model_selection.evaluation import is_correct, row_scores
from discreet.learn.row_sources import array_rows
from discreet.privacy.selection import Exponential, Utilities

_LOG = logging.getLogger("discreet")
_SHARE_STEPS = 1 << 20  # resolution of a unit's share of correct predictions


@dataclass(frozen=True)
class SelectionResult:
    """The privately selected candidate, its index, and the loss.

    >>> SelectionResult("forest", 1, Loss(1)).candidate
    'forest'
    """

    candidate: Any
    index: int
    loss: Loss


def select(  # noqa: PLR0913 - the candidates, their utilities and the privacy parameters
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
    """Select candidate i with probability proportional to exp(epsilon·utility_i/(2·sensitivity)).

    `utilities` is a list or a function of a candidate. Without it, the candidates must be public models, and the
    utility of each is its number of correct predictions on X and y (with `unit`, the sum of the units' shares of
    correct predictions), which one row (one unit) changes by at most 1. `sensitivity` is the maximum change of any
    utility by one unit. For accuracies on a public number n of rows, use sensitivity=Fraction(1, n) and neighbours that
    differ in one row's values; then Pr(i) is proportional to exp(epsilon·n·accuracy_i/2).

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
        raise ValueError("sensitivity must be 1 for the number of correct predictions")
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
    """Return the selection probability of each candidate; they disclose the utilities: for teaching and tests only.

    >>> [round(p, 3) for p in probabilities([100, 98, 90], epsilon=1)]
    [0.727, 0.268, 0.005]
    """
    return privacy.probabilities(_exponential_mechanism(epsilon, sensitivity), utilities)


def count_correct(model: Any, X: Any, y: Any, unit: Any = None) -> Fraction:
    """Return the number of correct predictions or, with `unit`, the sum of the units' shares of correct predictions.

    >>> from types import SimpleNamespace
    >>> zero = SimpleNamespace(predict=lambda X: [0] * len(X))
    >>> X, y = [[1], [2], [3]], [0, 0, 1]
    >>> count_correct(zero, X, y), count_correct(zero, X, y, unit=["a", "b", "b"])
    (Fraction(2, 1), Fraction(3, 2))
    """
    correct = np.nan_to_num(row_scores(model, X, y, is_correct))  # a failed prediction is not correct
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
    """Compute the utilities and select; any error may depend on the data, so there is one fixed failure message."""
    try:
        return mechanism.choose([utility(candidate) for candidate in candidates])
    except Exception:  # noqa: BLE001 - see the docstring
        _LOG.exception("a selection failed after it was charged")
    raise Failed(FAILED)


def _resolve_utilities(
    candidates: Sequence[Any], utilities: Any, X: Any, y: Any, unit: Any
) -> Sequence[Number] | Callable[[Any], Number]:
    """Return the utilities, or the function that computes them after the charge."""
    if (utilities is None) is (X is None):
        raise ValueError("utilities: pass one per candidate, or a function, or X and y to count correct predictions")
    if X is None:
        if not callable(utilities) and len(utilities) != len(candidates):
            raise ValueError(f"utilities must have one entry for each of the {len(candidates)} candidates")
        return utilities  # type: ignore[no-any-return]
    if y is None:
        raise ValueError("y: pass the true values to count correct predictions")
    check_consistent_length(X, y, unit)
    return lambda model: count_correct(model, X, y, unit)
