"""measure: how well a table hides the people in it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from discreet.anonymity.coding.classes import Classes, classes_of
from discreet.anonymity.coding.columns import Column
from discreet.anonymity.coding.inputs import Inputs, coded, inputs
from discreet.anonymity.coding.tables import names, read
from discreet.anonymity.labels.hierarchy import Hierarchy
from discreet.anonymity.labels.reading import read_cover
from discreet.anonymity.labels.tree import Tree, tree_of
from discreet.anonymity.measuring.exposure import Exposure, exposure
from discreet.anonymity.measuring.linkage import Linkage, linked
from discreet.anonymity.measuring.loss import InformationLoss, information_loss, labels_of
from discreet.anonymity.measuring.risk import Risk

Hierarchies = Mapping[str, Hierarchy]


def measure(  # noqa: PLR0913 - the last three by name only
    table: Any,
    quasi: Any,
    sensitive: Any = None,
    *,
    original: Any = None,
    population: Any = None,
    hierarchies: Hierarchies | None = None,
) -> Risk:
    """Measure how well a table hides people from those who know the `quasi` columns about them.

    The `original` is the table from which a release was made: it tells what was lost. The `population` is what an
    attacker may have: a table of people with the same quasi-identifying columns, matched by value, range or label.

    >>> import pyarrow as pa
    >>> risk = measure(pa.table({"age": ["3*", "3*", "4*", "4*"], "ill": ["flu", "flu", "flu", "no"]}), "age", "ill")
    >>> risk.k, risk.l, risk.sensitive[0].exposed.tolist()
    (2, 1, [0, 1])
    >>> print(risk)
    4 rows in 2 classes of 2 to 2 by age: 2-anonymous, 0 rows alone
    ill: l = 1, entropy l = 1, t = 0.25 (equal distance); of one value only: 2 rows in 1 class
    prosecutor: at most 50 %, mean 50 %, above 20 % for 100 % of the rows
    journalist and marketer: as the prosecutor, for no population was given
    Not protected against: homogeneity attack (2 rows in 1 class with one 'ill' only); intersection attack (two \
releases of the same people); linkage by what else an attacker knows.
    """
    given = inputs(table, quasi, sensitive)
    checked = _checked(hierarchies or {}, given)
    classes = classes_of([column.codes for column in given.quasi])
    sizes = np.bincount(classes.sizes)
    histogram = {int(size): int(sizes[size]) for size in np.flatnonzero(sizes)}
    prosecutor = Linkage({size: size * count for size, count in histogram.items()})
    people, journalist = _people(given.quasi, classes, population, checked)
    return Risk(
        rows=given.rows.count,
        classes=len(classes.sizes),
        k=int(classes.sizes.min()),
        unique=prosecutor.single,
        sizes=histogram,
        quasi=tuple(column.name for column in given.quasi),
        others=given.others,
        sensitive=tuple(_exposed(column, classes, checked) for column in given.sensitive),
        prosecutor=prosecutor,
        journalist=journalist or prosecutor,
        population=people,
        loss=_lost(given.quasi, classes, original, checked),
        members=classes,
        columns=given.quasi,
    )


def _checked(hierarchies: Hierarchies, given: Inputs) -> Hierarchies:
    used = [column.name for column in (*given.quasi, *given.sensitive)]
    for name, hierarchy in hierarchies.items():
        if name not in used:
            words = f"Those columns are: {', '.join(used)[:200]}."
            raise ValueError(f"hierarchies: {name[:60]!r} is neither quasi-identifying nor sensitive. {words}")
        if not isinstance(hierarchy, Hierarchy):
            raise TypeError(
                f"hierarchies: {name[:60]!r} has a {type(hierarchy).__name__}. "
                "Make one with read_hierarchy, intervals or prefixes."
            )
    return hierarchies


def _exposed(column: Column, classes: Classes, hierarchies: Hierarchies) -> Exposure:
    if column.name not in hierarchies:
        return exposure(column, classes)
    return exposure(column, classes, list(tree_of(column, hierarchies[column.name]).codes[1:]))


def _others(
    columns: tuple[Column, ...], table: Any, argument: str, hierarchies: Hierarchies
) -> tuple[tuple[Column, ...], dict[str, Tree]]:
    """Code the same columns of another table, and find their trees."""
    rows = read(table, argument)
    found = coded(rows, names([column.name for column in columns], argument, rows), argument)
    return found, {each.name: tree_of(each, hierarchies[each.name]) for each in found if each.name in hierarchies}


def _people(
    columns: tuple[Column, ...], classes: Classes, population: Any, hierarchies: Hierarchies
) -> tuple[int | None, Linkage | None]:
    if population is None:
        return None, None
    theirs, trees = _others(columns, population, "population", hierarchies)
    covers = [
        read_cover(mine, other, labels_of(trees[mine.name], other) if mine.name in trees else None)
        for mine, other in zip(columns, theirs, strict=True)
    ]
    codes = [column.codes for column in columns]
    return len(theirs[0].codes), linked(classes, codes, covers, [column.codes for column in theirs])


def _lost(
    columns: tuple[Column, ...], classes: Classes, original: Any, hierarchies: Hierarchies
) -> InformationLoss | None:
    if original is None:
        return None
    theirs, trees = _others(columns, original, "original", hierarchies)
    return information_loss(columns, theirs, trees, classes)
