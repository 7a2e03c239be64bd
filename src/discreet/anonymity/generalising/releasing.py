"""The two ways to make a table coarser: what stands in its columns then, and which rows stay."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Rational, Real
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.anonymity.coding.classes import Classes, classes_of
from discreet.anonymity.coding.inputs import Inputs
from discreet.anonymity.generalising.axes import axis_of
from discreet.anonymity.generalising.full_domain import generalise
from discreet.anonymity.generalising.mondrian import partition
from discreet.anonymity.generalising.targets import Targets, passing
from discreet.anonymity.generalising.texts import labels_of, spread
from discreet.anonymity.labels.hierarchy import Hierarchy
from discreet.anonymity.labels.tree import Tree, tree_of
from discreet.anonymity.measuring.exposure import exposure
from discreet.anonymity.measuring.linkage import Linkage
from discreet.anonymity.measuring.unprotected import not_protected

Trees = Mapping[str, Tree]


@dataclass(frozen=True, eq=False)
class Release:
    """The texts of the columns that were made coarser, the rows that stay (all if None), and their classes.

    `lost` is what these rows lose in each column, as `InformationLoss` counts it, all added up.
    `levels` and `found` tell the level of every column and how they were found, where a method has levels.
    """

    texts: Mapping[str, pa.Array]
    kept: np.ndarray | None
    classes: Classes
    lost: Mapping[str, float]
    levels: Mapping[str, int] | None = None
    found: str = ""


def trees_of(given: Inputs, hierarchies: Mapping[str, Any] | None) -> dict[str, Tree]:
    """Apply each hierarchy to its column."""
    columns = {column.name: column for column in (*given.quasi, *given.sensitive)}
    trees = {}
    for name, hierarchy in (hierarchies or {}).items():
        if name not in columns:
            words = f"Those columns are: {', '.join(columns)[:200]}."
            raise ValueError(f"hierarchies: {str(name)[:60]!r} is neither quasi-identifying nor sensitive. {words}")
        if not isinstance(hierarchy, Hierarchy):
            words = "Make one with read_hierarchy, intervals or prefixes."
            raise TypeError(f"hierarchies: {name[:60]!r} has a {type(hierarchy).__name__}. {words}")
        trees[name] = tree_of(columns[name], hierarchy)
    return trees


@dataclass(frozen=True, eq=False)
class _Few:
    """The different rows of a table, by what matters here: which of them each row is, and their targets."""

    like: Classes
    firsts: np.ndarray
    targets: Targets


def _few(given: Inputs, targets: Targets) -> _Few:
    like = classes_of([*(column.codes for column in given.quasi), *(check.codes for check in targets.checks)])
    firsts = like.firsts
    checks = tuple(replace(check, codes=check.codes[firsts]) for check in targets.checks)
    return _Few(like, firsts, replace(targets, checks=checks))


def by_mondrian(given: Inputs, targets: Targets, trees: Trees) -> Release:
    """Cut the table into classes, each with its own ranges, sets and labels."""
    few = _few(given, targets)
    one = Classes(np.zeros_like(few.firsts), np.array([given.rows.count]))
    if not passing(few.targets, one, np.arange(len(few.firsts)), few.like.sizes).all():
        raise ValueError("l: even the whole table in one class does not reach it. Ask for a smaller l, or a larger c.")
    axes = [axis_of(column, trees.get(column.name)) for column in given.quasi]
    axes = [replace(axis, codes=axis.codes[few.firsts]) for axis in axes]
    found = partition(axes, few.targets, few.like.sizes)
    classes = Classes(found.ids[few.like.ids], found.sizes)
    shown = {column.name: labels_of(column, axis, found) for column, axis in zip(given.quasi, axes, strict=True)}
    texts = {name: spread(each.texts, classes.ids) for name, each in shown.items() if each is not None}
    lost = {name: 0.0 if each is None else float(found.sizes @ each.losses) for name, each in shown.items()}
    return Release({**_evened(given, np.arange(given.rows.count)), **texts}, None, classes, lost)


def by_full_domain(given: Inputs, targets: Targets, trees: Trees, suppress: Any) -> Release:
    """Choose one level for each column, and remove the rows of classes that miss a target there."""
    few, most = _few(given, targets), allowed(suppress, given.rows.count)
    mine = [trees.get(column.name) or tree_of(column) for column in given.quasi]
    codes = [column.codes[few.firsts] for column in given.quasi]
    found = generalise(codes, mine, few.targets, few.like.sizes, most)
    if found is None:
        words = f"no levels reach the targets with at most {most} of {given.rows.count} rows removed"
        raise ValueError(f"suppress: {words}. Ask for a smaller k or l, a larger t, or let more rows go.")
    rows = np.flatnonzero(found.kept[few.like.ids])
    columns = list(zip(given.quasi, mine, found.levels, strict=True))
    shown = [tree.codes[level][column.codes[rows]] for column, tree, level in columns]
    texts = {
        column.name: spread(pa.array(tree.labels[level], pa.string()), codes)
        for (column, tree, level), codes in zip(columns, shown, strict=True)
        if level
    }
    levels = {column.name: level for column, _, level in columns}
    lost = {column.name: float(tree.losses[level][column.codes[rows]].sum()) for column, tree, level in columns}
    kept = None if len(rows) == given.rows.count else rows
    return Release({**_evened(given, rows), **texts}, kept, classes_of(shown), lost, levels, found.found)


def _evened(given: Inputs, rows: np.ndarray) -> dict[str, pa.Array]:
    """Write values that count as equal alike, where they may not look so: NaN and null, -0.0 and 0.0, 1 and 1.0."""
    found = {}
    for column in given.quasi:
        if column.name in given.rows.loose:
            found[column.name] = column.values.take(pa.array(column.codes[rows]))
        elif pa.types.is_floating(column.values.type):
            raw = given.rows.column(column.name)
            if _is_uneven(raw):
                alike = column.values.take(pa.array(column.codes[rows]))
                found[column.name] = alike.cast(raw.type) if pa.types.is_floating(raw.type) else alike
    return found


def _is_uneven(reals: pa.ChunkedArray) -> bool:
    numbers = reals.drop_null().to_numpy()
    signs = np.signbit(numbers[numbers == 0])
    return bool((reals.null_count and np.isnan(numbers).any()) or (signs.any() and not signs.all()))


def allowed(suppress: Any, rows: int) -> int:
    """Return how many rows may go, from the share of them.

    >>> allowed(0.29, 100), allowed(Fraction(1, 3), 10)
    (29, 3)
    """
    if isinstance(suppress, bool) or not isinstance(suppress, Real) or not math.isfinite(suppress):
        raise TypeError(f"suppress: must be a share of the rows, such as 0.02, not {str(suppress)[:60]!r}.")
    share = Fraction(suppress) if isinstance(suppress, Rational) else Fraction(str(float(suppress)))
    if not 0 <= share < 1:
        raise ValueError(f"suppress: must be at least 0 and below 1 (0.02 is 2 %), not {suppress}.")
    return math.floor(share * rows)


def note(given: Inputs, release: Release, trees: Trees) -> str:
    """Say what the release does not protect against."""
    sizes = np.bincount(release.classes.sizes)
    prosecutor = Linkage({int(size): int(size * sizes[size]) for size in np.flatnonzero(sizes)})
    exposures = [
        exposure(
            column if release.kept is None else replace(column, codes=column.codes[release.kept]),
            release.classes,
            list(trees[column.name].codes[1:]) if column.name in trees else None,
        )
        for column in given.sensitive
    ]
    return not_protected(prosecutor, None, exposures, given.others)
