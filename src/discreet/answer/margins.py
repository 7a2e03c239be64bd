"""Margins of error with two parts, privacy noise and sampling, and whether two numbers of an answer differ."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from discreet.answer.text import is_number, key_texts, round_to_margin, truncate

if TYPE_CHECKING:
    from discreet.answer.model import Answer

_TAIL = 0.05
_MIN_P_VALUE = 0.001
_NORMAL = NormalDist()
_Z = _NORMAL.inv_cdf(1 - _TAIL / 2)

Margins = Mapping[str, Sequence[float | None]]


@dataclass(frozen=True)
class CellDifference:
    """The difference of two noisy numbers, its 95 % margin of error, and a test of whether there is one.

    `p_value` is an upper bound: a difference at least as large has at most this probability if there is none.

    >>> CellDifference("n: Bonn - Trier", 1691, 43.0)
    n: Bonn - Trier = 1,691 ± 43 (95 %), p < 0.001: significant
    >>> bool(CellDifference("n: Bonn - Kiel", 12.5, 43.0))
    False
    """

    label: str
    difference: float
    margin: float

    @property
    def significant(self) -> bool:
        """Whether the numbers differ at the 95 % level."""
        return abs(self.difference) > self.margin

    @property
    def p_value(self) -> float:
        """The p-value of the two-sided test; small ones are upper bounds for noise of any log-concave distribution."""
        if self.margin == 0:
            return 0.0 if self.difference else 1.0
        ratio = abs(self.difference) / self.margin
        # P[|x| > t·margin] <= P[|x| > margin]^t for t >= 1 where log P is concave; below, normal tails are wider.
        return float(_TAIL**ratio if ratio >= 1 else 2 * (1 - _NORMAL.cdf(_Z * ratio)))

    def __bool__(self) -> bool:
        return self.significant

    def __repr__(self) -> str:
        value, margin = round_to_margin(self.difference, self.margin)
        p_value = f"p = {self.p_value:.2g}" if self.p_value >= _MIN_P_VALUE else f"p < {_MIN_P_VALUE}"
        return f"{self.label} = {value} ± {margin} (95 %), {p_value}: {'' if self.significant else 'not '}significant"


def combine_margins(noise: Margins, sampling: Margins) -> dict[str, list[float | None]]:
    """Return margins from noise and sampling together; that from noise alone where the other is unknown.

    Both errors are symmetric, independent and near normal or Laplace, so the squares of their margins add up.

    >>> combine_margins({"n": [3.0, 3.0, None]}, {"n": [4.0, None, 1.0]})
    {'n': [5.0, 3.0, None]}
    """
    return {
        name: [
            margin if margin is None or other is None else math.hypot(margin, other)
            for margin, other in zip(margins, sampling.get(name, [None] * len(margins)), strict=True)
        ]
        for name, margins in noise.items()
    }


def cell_difference(answer: "Answer", row_a: int, row_b: int, column: str | None) -> CellDifference:
    """Return the difference of two rows in a noisy column.

    Margins from noise are added up if it may be correlated between rows, and so are sampling errors unless they are
    known to be uncorrelated; where these are unknown, the difference is that of the sample.
    """
    name = _noisy_column(answer, column)
    size = len(answer)
    for argument, row in (("row_a", row_a), ("row_b", row_b)):
        if not 0 <= row < size:
            raise ValueError(f"{argument} must be a row from 0 to {size - 1}, not {row}")
    pair = [(answer.table.column(name)[row].as_py(), answer.margins[name][row]) for row in (row_a, row_b)]
    if any(not is_number(value) or margin is None for value, margin in pair):
        raise ValueError(f"column: {name!r} has no number or no margin of error in one of these rows")
    (first, _), (second, _) = pair
    sampling_unknown = any(margins[row] is None for margins in _sampling_of(answer, name) for row in (row_a, row_b))
    label = f"{truncate(name)}: {' - '.join(_row_label(answer, row) for row in (row_a, row_b))}"
    label += " in the sample" if sampling_unknown else ""
    return CellDifference(label, first - second, 0.0 if row_a == row_b else _margin_of(answer, name, row_a, row_b))


def _noisy_column(answer: "Answer", column: str | None) -> str:
    if column is None and len(answer.margins) == 1:
        return next(iter(answer.margins))
    if column is None or column not in answer.margins:
        names = ", ".join(answer.margins) or "none"
        raise ValueError(f"column must be one of the noisy columns: {names}")
    return column


def _row_label(answer: "Answer", row: int) -> str:
    keys = [name for name in answer.table.column_names if name not in answer.margins]
    texts: list[Any] = [key_texts(answer.table.column(name).slice(row, 1).to_pylist())[0] for name in keys]
    return ", ".join(texts) or f"row {row}"


def _sampling_of(answer: "Answer", name: str) -> list[list[float | None]]:
    return [answer.sampling_margins[name]] if name in answer.sampling_margins else []


def _margin_of(answer: "Answer", name: str, row_a: int, row_b: int) -> float:
    noise = [answer.noise_margins.get(name, answer.margins[name])[row] or 0.0 for row in (row_a, row_b)]
    sampling = [margins[row] or 0.0 for margins in _sampling_of(answer, name) for row in (row_a, row_b)]
    sampled = math.hypot(*sampling) if name in answer.uncorrelated_sampling else sum(sampling)
    return math.hypot(sum(noise) if name in answer.correlated_noise else math.hypot(*noise), sampled)
