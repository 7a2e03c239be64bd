"""k-anonymity, l-diversity and t-closeness as criteria that every equivalence class must satisfy."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from discreet.anonymity.encoding.encoded_table import EncodedColumn, EncodedTable
from discreet.anonymity.encoding.equivalence_classes import (
    ContingencyTable,
    EquivalenceClasses,
    weighted_contingency_table,
)
from discreet.anonymity.hierarchies.taxonomy_tree import TaxonomyTree
from discreet.anonymity.metrics.attribute_risk import distance_measure, distinct_counts, entropies, recursive_ratios
from discreet.arguments import ArgumentError, ArgumentTypeError, require


@dataclass(frozen=True, eq=False)
class SensitiveCriterion:
    """A sensitive column's codes, the number of occurrences of each, and the test that every class must pass.

    The criterion `is_monotone` if the union of two classes that pass it passes it too.
    """

    codes: np.ndarray
    totals: np.ndarray
    passes: Callable[[ContingencyTable], np.ndarray]
    is_monotone: bool = True


@dataclass(frozen=True, eq=False)
class PrivacyCriteria:
    """The smallest allowed class size, and the criteria of the sensitive columns."""

    k: int
    sensitive_criteria: tuple[SensitiveCriterion, ...] = ()


def satisfies_criteria(
    criteria: PrivacyCriteria, classes: EquivalenceClasses, rows: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Return which classes of some rows pass all sensitive criteria; each row represents `weights` equal rows.

    >>> two_values = SensitiveCriterion(np.array([0, 1, 0]), np.array([3, 1]), lambda cells: distinct_counts(cells) > 1)
    >>> criteria = PrivacyCriteria(2, (two_values,))
    >>> classes = EquivalenceClasses(np.array([0, 0, 1]), np.array([2, 2]))
    >>> satisfies_criteria(criteria, classes, np.arange(3), weights=np.array([1, 1, 2])).tolist()
    [True, False]
    """
    is_satisfied = np.ones(len(classes.sizes), bool)
    for criterion in criteria.sensitive_criteria:
        cells = weighted_contingency_table(classes, criterion.codes[rows], criterion.totals, weights)
        is_satisfied &= criterion.passes(_with_complement_class(cells))[: len(is_satisfied)]
    return is_satisfied


def _with_complement_class(cells: ContingencyTable) -> ContingencyTable:
    """Add the rows that are in none of the classes as another class: t-closeness compares with the whole table."""
    complement_counts = cells.totals - np.bincount(cells.values, cells.counts, len(cells.totals)).astype(np.int64)
    values = np.flatnonzero(complement_counts)
    if not len(values):
        return cells
    return replace(
        cells,
        classes=np.append(cells.classes, np.full(len(values), len(cells.sizes))),
        values=np.append(cells.values, values),
        counts=np.append(cells.counts, complement_counts[values]),
        starts=np.append(cells.starts, len(cells.values)),
        sizes=np.append(cells.sizes, complement_counts.sum()),
    )


_DIGITS = 12  # the same rounding as in `measure`, so that it confirms the criteria
_DISTINCT, _ENTROPY, _RECURSIVE = DIVERSITIES = ("distinct", "entropy", "recursive")
_ClassTest = Callable[[ContingencyTable], np.ndarray]


@dataclass(frozen=True)
class AnonymityParameters:
    """The k, l and t that every class must satisfy; `diversity` is the kind of l-diversity, recursive with `c`."""

    k: int
    l: float | None = None  # noqa: E741 - the name in the literature
    t: float | None = None
    diversity: str = _DISTINCT
    c: float | None = None


def build_criteria(
    parameters: AnonymityParameters, encoded: EncodedTable, trees: Mapping[str, TaxonomyTree]
) -> PrivacyCriteria:
    """Check the parameters against the table, and return the criteria."""
    _check_k(parameters.k, encoded.source.row_count)
    _check_diversity(parameters)
    _check_t(parameters.t)
    for name, value in (("l", parameters.l), ("t", parameters.t)):
        if value is not None and not encoded.sensitive:
            raise ArgumentError(name, "it needs a sensitive column, and none was named. Name one.")
    sensitive_criteria = []
    for column in encoded.sensitive:
        totals = np.bincount(column.codes, minlength=len(column.values))
        if parameters.l is not None:
            if parameters.l > len(totals):
                limit = f"{len(totals)}, the number of distinct values of {column.name[:60]!r}"
                raise ArgumentError("l", f"must be at most {limit}, not {parameters.l}.")
            sensitive_criteria.append(
                SensitiveCriterion(column.codes, totals, _diversity_test(parameters), is_monotone=True)
            )
        if parameters.t is not None:
            sensitive_criteria.append(_closeness_criterion(parameters.t, column, totals, trees.get(column.name)))
    return PrivacyCriteria(int(parameters.k), tuple(sensitive_criteria))


def _check_k(k: Any, rows: int) -> None:
    if isinstance(k, bool) or not isinstance(k, Integral):
        raise ArgumentTypeError("k", f"must be an integer, not {type(k).__name__}.")
    require(int(k) >= 1, f"must be at least 1, not {k}.", "k")
    require(int(k) <= rows, f"must be at most {rows}, the number of rows, not {k}.", "k")


def _check_diversity(parameters: AnonymityParameters) -> None:
    require(
        parameters.diversity in DIVERSITIES,
        f"expected one of {', '.join(map(repr, DIVERSITIES))}, not {str(parameters.diversity)[:60]!r}.",
        "diversity",
    )
    if parameters.l is None:
        if parameters.diversity != _DISTINCT or parameters.c is not None:
            raise ArgumentError("l", "diversity and c have no effect without it. Give it too, for example 2.")
        return
    _check_number(parameters.l, "l")
    require(
        parameters.l >= 1 and (parameters.diversity == _ENTROPY or parameters.l == int(parameters.l)),
        f"must be an integer of at least 1, not {parameters.l}.",
        "l",
    )
    if (parameters.c is not None) != (parameters.diversity == _RECURSIVE):
        raise ArgumentError("c", "required for recursive diversity, for example 3, and not allowed otherwise.")
    if parameters.c is not None:
        _check_number(parameters.c, "c")
        require(parameters.c > 0, f"must be above 0, not {parameters.c}.", "c")


def _check_t(t: Any) -> None:
    if t is None:
        return
    _check_number(t, "t")
    require(0 < t <= 1, f"must be above 0 and at most 1, not {t}.", "t")


def _check_number(number: Any, argument: str) -> None:
    if isinstance(number, bool) or not isinstance(number, Real) or not math.isfinite(number):
        raise ArgumentTypeError(argument, f"must be a number, not {str(number)[:60]!r}.")


def _diversity_test(parameters: AnonymityParameters) -> _ClassTest:
    min_l, c = float(parameters.l or 1), parameters.c
    if parameters.diversity == _ENTROPY:
        return lambda cells: np.round(np.exp(entropies(cells)), _DIGITS) >= min_l
    if c is not None:
        return lambda cells: recursive_ratios(cells, int(min_l)) < float(c)
    return lambda cells: distinct_counts(cells) >= min_l


def _closeness_criterion(
    t: float, column: EncodedColumn, totals: np.ndarray, tree: TaxonomyTree | None
) -> SensitiveCriterion:
    _, distances, is_monotone = distance_measure(column, None if tree is None else list(tree.codes[1:]))
    return SensitiveCriterion(
        column.codes,
        totals,
        lambda cells: np.asarray(np.round(distances(cells), _DIGITS) <= t),
        is_monotone=is_monotone,
    )
