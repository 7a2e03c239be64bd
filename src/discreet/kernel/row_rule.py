"""Check that a model's rule treats each row independently of the other rows."""

from collections.abc import Callable
from itertools import product
from types import FunctionType
from typing import Any

import numpy as np

RowRule = Callable[[np.ndarray, tuple[Any, ...]], Any]
_POINT_COUNT = 23  # odd, and not a multiple of a vector width
_SINGLE_ROWS = (0, 1, 7, _POINT_COUNT - 1)


def check_row_wise(rule: RowRule, public: tuple[Any, ...], low: np.ndarray, high: np.ndarray) -> None:
    """Raise an error unless the result of a rule for each row is the same, bit by bit, whatever the other rows are.

    Claim: a rule that passes is a plain function, whose only inputs are rows and `public`; on the test points of the
        declared box, each row's result does not depend on the number, the order or the values of the others.
    Proof: no closure, no defaults; the same points are evaluated all at once, in reverse, one by one and together with
        others, and the results are compared bit by bit. The points are public, so an error discloses nothing. This is
        a test, not a proof that the rule is row-wise everywhere; the tests of every model repeat it on many points.
    Needs: nothing.
    Checked by: test_a_rule_that_mixes_rows_is_stopped_before_anything_is_charged
    Seal: b2747c07c8c5
    """
    if not isinstance(rule, FunctionType) or rule.__closure__ or rule.__defaults__ or rule.__kwdefaults__:
        raise TypeError("rule must be a module-level function without closure or defaults; pass values in `public`")
    points = _test_points(low, high)
    batch = _apply_rule(rule, points, public)
    reversed_batch = _apply_rule(rule, points[::-1], public)[::-1]
    larger_batch = _apply_rule(rule, np.concatenate([points, points[::3], points]), public)
    single_rows = np.concatenate([_apply_rule(rule, points[[index]], public) for index in _SINGLE_ROWS])
    same = (
        _raw_bytes(batch)
        == _raw_bytes(reversed_batch)
        == _raw_bytes(larger_batch[: len(points)])
        == _raw_bytes(larger_batch[-len(points) :])
    )
    if not same or _raw_bytes(batch[list(_SINGLE_ROWS)]) != _raw_bytes(single_rows):
        raise ValueError("rule: the result of a row depends on other rows. Use elementwise operations on columns only.")


def _test_points(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return points of the box that do not depend on data: its ends, its middle, and scattered points."""
    shares = np.array(
        [(0.618033988749895 * i + 0.7548776662466927 * j) % 1 for i, j in product(range(_POINT_COUNT), range(len(low)))]
    )
    points = low + shares.reshape(_POINT_COUNT, len(low)) * (high - low)
    points[0], points[1], points[2] = low, high, (low + high) / 2
    return np.asarray(points)


def _apply_rule(rule: RowRule, points: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    """Return the results of a rule, one row per point; several arrays are put side by side."""
    with np.errstate(all="ignore"):
        output = rule(np.asfortranarray(points), public)
    parts = output if isinstance(output, tuple) else (output,)
    if any(np.shape(part)[:1] != (len(points),) for part in parts):
        raise ValueError("rule must return one result per row")
    return np.concatenate([np.reshape(part, (len(points), -1)).astype(np.float64) for part in parts], axis=1)


def _raw_bytes(numbers: np.ndarray) -> bytes:
    return np.ascontiguousarray(numbers).tobytes()
