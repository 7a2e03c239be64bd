"""measure: disclosure risk and information loss of a table."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from discreet.anonymity.encoding.encoded_table import EncodedColumn, encode_columns, encode_table
from discreet.anonymity.encoding.equivalence_classes import EquivalenceClasses, group_equal_rows
from discreet.anonymity.encoding.table_adapters import adapt_table, resolve_column_names
from discreet.anonymity.hierarchies.hierarchy import Hierarchy
from discreet.anonymity.hierarchies.label_coverage import parse_coverage
from discreet.anonymity.hierarchies.taxonomy_tree import TaxonomyTree, build_tree, check_hierarchies
from discreet.anonymity.metrics.attribute_risk import AttributeRisk, measure_attribute_risk
from discreet.anonymity.metrics.information_loss import InformationLoss, codes_by_label, information_loss
from discreet.anonymity.metrics.linkage_risk import LinkageRisk, link_to_population
from discreet.anonymity.metrics.risk import Risk

Hierarchies = Mapping[str, Hierarchy]


def measure(  # noqa: PLR0913 - the last three are keyword-only
    table: Any,
    quasi: Any,
    sensitive: Any = None,
    *,
    original: Any = None,
    population: Any = None,
    hierarchies: Hierarchies | None = None,
) -> Risk:
    """Measure the disclosure risk of a table against an attacker who knows people's `quasi` columns.

    If `original`, the table that a release was made from, is given, the information loss is measured too. `population`
    is an attacker's list of people with the same quasi-identifying columns; they match a row by value, range or label.

    >>> import pyarrow as pa
    >>> risk = measure(pa.table({"age": ["3*", "3*", "4*", "4*"], "ill": ["flu", "flu", "flu", "no"]}), "age", "ill")
    >>> risk.k, risk.l, risk.attribute_risk("ill").exposed_rows.tolist()
    (2, 1, [0, 1])
    >>> print(risk)
    4 rows in 2 classes of 2 to 2 rows by age: 2-anonymous, 0 unique rows
    ill: l = 1, entropy l = 1, t = 0.25 (equal distance); homogeneous: 2 rows in 1 class
    prosecutor risk: at most 50 %, mean 50 %, above 20 % for 100 % of rows
    journalist and marketer risk: same as prosecutor risk (no population was given)
    Not protected against: homogeneity attack (2 rows in 1 class with a single value of 'ill'); intersection attack \
(several releases about the same people); linkage by anything else an attacker knows.
    """
    encoded = encode_table(table, quasi, sensitive)
    checked_hierarchies = check_hierarchies(hierarchies, encoded)
    classes = group_equal_rows([column.codes for column in encoded.quasi])
    sizes = np.bincount(classes.sizes)
    histogram = {int(size): int(sizes[size]) for size in np.flatnonzero(sizes)}
    prosecutor = LinkageRisk({size: size * count for size, count in histogram.items()})
    population_size, journalist = _population_linkage(encoded.quasi, classes, population, checked_hierarchies)
    return Risk(
        rows=encoded.source.row_count,
        classes=len(classes.sizes),
        k=int(classes.sizes.min()),
        unique=prosecutor.uniquely_linked_rows,
        sizes=histogram,
        quasi=tuple(column.name for column in encoded.quasi),
        other_columns=encoded.other_columns,
        sensitive=tuple(_attribute_risk(column, classes, checked_hierarchies) for column in encoded.sensitive),
        prosecutor=prosecutor,
        journalist=journalist or prosecutor,
        population=population_size,
        loss=_loss_against_original(encoded.quasi, classes, original, checked_hierarchies),
        equivalence_classes=classes,
        quasi_columns=encoded.quasi,
    )


def _attribute_risk(column: EncodedColumn, classes: EquivalenceClasses, hierarchies: Hierarchies) -> AttributeRisk:
    if column.name not in hierarchies:
        return measure_attribute_risk(column, classes)
    return measure_attribute_risk(column, classes, list(build_tree(column, hierarchies[column.name]).codes[1:]))


def _encode_other_table(
    columns: tuple[EncodedColumn, ...], table: Any, argument: str, hierarchies: Hierarchies
) -> tuple[tuple[EncodedColumn, ...], dict[str, TaxonomyTree]]:
    """Encode the same columns of another table, and apply the hierarchies to them."""
    source = adapt_table(table, argument)
    encoded = encode_columns(
        source, resolve_column_names([column.name for column in columns], argument, source), argument
    )
    return encoded, {
        other_column.name: build_tree(other_column, hierarchies[other_column.name])
        for other_column in encoded
        if other_column.name in hierarchies
    }


def _population_linkage(
    columns: tuple[EncodedColumn, ...], classes: EquivalenceClasses, population: Any, hierarchies: Hierarchies
) -> tuple[int | None, LinkageRisk | None]:
    if population is None:
        return None, None
    population_columns, trees = _encode_other_table(columns, population, "population", hierarchies)
    coverages = [
        parse_coverage(
            released_column,
            population_column,
            codes_by_label(trees[released_column.name], population_column) if released_column.name in trees else None,
        )
        for released_column, population_column in zip(columns, population_columns, strict=True)
    ]
    codes = [column.codes for column in columns]
    return len(population_columns[0].codes), link_to_population(
        classes, codes, coverages, [column.codes for column in population_columns]
    )


def _loss_against_original(
    columns: tuple[EncodedColumn, ...], classes: EquivalenceClasses, original: Any, hierarchies: Hierarchies
) -> InformationLoss | None:
    if original is None:
        return None
    original_columns, trees = _encode_other_table(columns, original, "original", hierarchies)
    return information_loss(columns, original_columns, trees, classes)
