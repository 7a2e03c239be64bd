"""Which tables of a plan can add up: counts, sums and means of rows by public keys, over the same rows."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from discreet import postprocess
from discreet.estimate.planned_release import (
    Mean,
    Measure,
    NoisyCount,
    NoisySum,
    PlannedRelease,
    QueryPlan,
    release_schema,
)
from discreet.kernel.expr import Value
from discreet.kernel.fingerprint import digest
from discreet.kernel.question import PublicGroups
from discreet.kernel.totals import Count, Sum
from discreet.postprocess.sql_expression import ColumnOrigin


@dataclass(frozen=True)
class AddingTable:
    """A table of a plan that can add up: its release, and where the columns and rows of the answer come from.

    `columns` names the key or measure of the release behind each column; `rows` are the groups in their final order.
    """

    name: str
    plan: QueryPlan
    release: PlannedRelease
    columns: Mapping[str, str]
    rows: np.ndarray

    @property
    def measures(self) -> dict[str, Measure]:
        """The measures of the release by name."""
        return {measure.name: measure for measure in self.release.measures}

    @property
    def relation_digest(self) -> str:
        """A digest of the rows that are counted."""
        return digest(self.release.question.relation)


def public_domains(release: PlannedRelease) -> tuple[tuple[Value, ...], ...]:
    """Return the public values of each key."""
    assert isinstance(release.question.groups, PublicGroups)
    return release.question.groups.domains


def key_codes(release: PlannedRelease, groups: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the code of each key in some groups, given by their numbers."""
    sizes = [len(domain) for domain in public_domains(release)]
    return np.unravel_index(groups, sizes) if sizes else ()


def adding_release(plan: QueryPlan) -> PlannedRelease | None:
    """Return the release of a query that shows columns of counts, sums and means by public keys; None for others."""
    if len(plan.answering) != 1 or plan.pending:
        return None
    (release,) = plan.answering
    question = release.question
    adds_up = (
        isinstance(question.groups, PublicGroups)
        and not release.grouping_sets
        and not release.sample
        and all(isinstance(total, Count) or (isinstance(total, Sum) and total.power == 1) for total in question.totals)
        and all(isinstance(measure.estimator, NoisyCount | NoisySum | Mean) for measure in release.measures)
        and all(isinstance(origin, ColumnOrigin) for origin in plan.postprocess.origins)
    )
    return release if adds_up else None


def released_table(plan: QueryPlan, release: PlannedRelease) -> AddingTable:
    """Return the table that a query is computed from: all keys and measures, with the groups in the query's order."""
    names = [*release.keys, *(measure.name for measure in release.measures)]
    return AddingTable("answer", plan, release, dict(zip(names, names, strict=True)), _groups_in_order(release))


def adding_table(name: str, plan: QueryPlan) -> AddingTable | None:
    """Return a table that can add up with others; None if the query asks for anything else."""
    release, origins = adding_release(plan), plan.postprocess.origins
    if release is None or plan.postprocess.selected_by or not _shows_numbers(plan, release):
        return None
    columns = {column: origin.column for column, origin in zip(plan.postprocess.names, origins, strict=True)}  # type: ignore[union-attr]
    rows = _final_order(plan, release)
    return None if rows is None else AddingTable(name, plan, release, columns, rows)


def _final_order(plan: QueryPlan, release: PlannedRelease) -> np.ndarray | None:
    """Return the groups in the order of the answer; None if the query does more than show and sort them by keys.

    Unless it just shows them, the query is run twice on tables whose numbers name their groups in different ways. Each
    row must have the numbers and the keys of one group, and the groups must come in the same order, whatever the
    numbers are.
    """
    domains, groups = public_domains(release), _groups_in_order(release)
    count = len(groups)
    if plan.postprocess.keeps_rows:
        return groups
    keys = {
        name: [domain[code] for code in codes]
        for name, domain, codes in zip(release.keys, domains, key_codes(release, groups), strict=True)
    }
    first = _shown_places(plan, release, keys, np.arange(count))
    second = _shown_places(plan, release, keys, np.roll(np.arange(count)[::-1], count // 3))
    if first is None or second is None or not np.array_equal(first, second):
        return None
    return np.asarray(groups[first], np.int64)


def _groups_in_order(release: PlannedRelease) -> np.ndarray:
    """Return the groups sorted by the keys as the analyst wrote them."""
    sizes = [len(domain) for domain in public_domains(release)]
    return np.arange(math.prod(sizes)).reshape(sizes).transpose(release.key_order).ravel()


def _shows_numbers(plan: QueryPlan, release: PlannedRelease) -> bool:
    names = {origin.column for origin in plan.postprocess.origins if isinstance(origin, ColumnOrigin)}
    return not names <= set(release.keys)


def _shown_places(
    plan: QueryPlan, release: PlannedRelease, keys: Mapping[str, list[Value]], numbers: np.ndarray
) -> np.ndarray | None:
    """Run the query on groups with these numbers; return the place of each row's group, None if a row mixes groups."""
    schema = release_schema(release)
    columns = [
        pa.array(keys[field.name], field.type) if field.name in keys else pa.array(numbers).cast(field.type)
        for field in schema
    ]
    table = pa.Table.from_arrays(columns, schema=schema)
    result = postprocess.run_with_margins(plan.postprocess, {release.name: table}, {}, lambda _: {})
    first, *others = result.source_rows.values()
    every_group = np.array_equal(np.sort(first), np.arange(len(numbers)))
    return first if every_group and all(np.array_equal(first, each) for each in others) else None
