"""Which tables of a plan can add up: counts, sums and means of rows by public keys, over the same rows."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from discreet.engines.reference.evaluate import evaluate
from discreet.estimate.planned_release import (
    Mean,
    Measure,
    NoisyCount,
    NoisySum,
    PlannedRelease,
    QueryPlan,
    release_schema,
)
from discreet.kernel.expr import Call, Column, Expr, Value
from discreet.kernel.fingerprint import digest
from discreet.kernel.question import PublicGroups
from discreet.kernel.totals import Count, Sum
from discreet.postprocess import plan as postprocess
from discreet.postprocess.sql_expression import ColumnOrigin
from discreet.publish.codes import CodedAxis
from discreet.publish.marginals.axes import Axis, Table


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


def adding_table(name: str, plan: QueryPlan) -> AddingTable | None:
    """Return a table that can add up with others; None if the query asks for anything else."""
    if len(plan.answering) != 1 or plan.pending:
        return None
    (release,) = plan.answering
    question, origins = release.question, plan.postprocess.origins
    if (
        not isinstance(question.groups, PublicGroups)
        or release.grouping_sets
        or release.sample
        or plan.postprocess.selected_by
        or not all(
            isinstance(total, Count) or (isinstance(total, Sum) and total.power == 1) for total in question.totals
        )
        or not all(isinstance(measure.estimator, NoisyCount | NoisySum | Mean) for measure in release.measures)
        or not all(isinstance(origin, ColumnOrigin) for origin in origins)
    ):
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
    domains = public_domains(release)
    sizes = [len(domain) for domain in domains]
    count = math.prod(sizes)
    # The groups are sorted by the keys as the analyst wrote them, which ORDER BY may change.
    groups = np.arange(count).reshape(sizes).transpose(release.key_order).ravel()
    if plan.postprocess.keeps_rows:
        return groups if _shows_numbers(plan, release) else None
    grid = np.indices(sizes).reshape(len(sizes), count)
    keys = {
        name: [domain[code] for code in codes[groups]]
        for name, domain, codes in zip(release.keys, domains, grid, strict=True)
    }
    first = _shown_places(plan, release, keys, np.arange(count))
    second = _shown_places(plan, release, keys, np.roll(np.arange(count)[::-1], count // 3))
    if first is None or second is None or not np.array_equal(first, second):
        return None
    return np.asarray(groups[first], np.int64)


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
    shown = postprocess.run(plan.postprocess, {release.name: pa.Table.from_arrays(columns, schema=schema)})
    sources = [origin.column for origin in plan.postprocess.origins if isinstance(origin, ColumnOrigin)]
    place_of = np.argsort(numbers)
    found = [
        place_of[np.asarray(shown.column(at).to_numpy(), np.int64)]
        for at, name in enumerate(sources)
        if name not in keys
    ]
    if not found or any(not np.array_equal(each, found[0]) for each in found):
        return None
    if not np.array_equal(np.sort(found[0]), np.arange(len(numbers))):
        return None
    own = {name: pa.array(values, schema.field(name).type).take(pa.array(found[0])) for name, values in keys.items()}
    if any(shown.column(at).combine_chunks() != own[name] for at, name in enumerate(sources) if name in keys):
        return None
    return np.asarray(found[0])


@dataclass
class FamilyAxes:
    """The axes of a family: the keys of its tables, where a key that is a function of another is a coarser level."""

    coded: list[CodedAxis] = field(default_factory=list)
    levels: list[list[tuple[Value, ...]]] = field(default_factory=list)  # the values of each level
    exprs: list[list[Expr]] = field(default_factory=list)
    parents: list[list[tuple[int, ...]]] = field(default_factory=list)  # for each coarser level, by code of the finest

    def add(self, name: str, expr: Expr, values: tuple[Value, ...]) -> None:
        """Add a key; keys with more values come first, so that coarser levels find their axis."""
        if self.find(expr, values) is not None:
            return
        for axis, levels in enumerate(self.levels):
            codes = self._coarse_codes(axis, expr, values)
            if codes is not None and self._is_coarser(axis, codes):
                levels.append(values)
                self.exprs[axis].append(expr)
                self.parents[axis].append(codes)
                return
        self.coded.append(CodedAxis(name, expr, values))
        self.levels.append([values])
        self.exprs.append([expr])
        self.parents.append([])

    def find(self, expr: Expr, values: tuple[Value, ...]) -> tuple[int, int] | None:
        """Return the axis and the level of a key; None if it is not an axis yet."""
        for axis, (exprs, levels) in enumerate(zip(self.exprs, self.levels, strict=True)):
            for level, known in enumerate(zip(exprs, levels, strict=True)):
                if known == (expr, values):
                    return axis, level
        return None

    def table_of(self, release: PlannedRelease) -> Table:
        """Return the axes and levels of a release's keys, sorted."""
        return tuple(sorted(part for part, _ in self.key_order(release)))

    def key_order(self, release: PlannedRelease) -> list[tuple[tuple[int, int], int]]:
        """Return the axis and level of each key, with the index of the key, in the order of the axes."""
        domains = public_domains(release)
        parts = [self.find(expr, values) for (_, expr), values in zip(release.question.by, domains, strict=True)]
        return sorted((part, index) for index, part in enumerate(parts) if part is not None)

    def as_axes(self) -> list[Axis]:
        """Return the axes as tables are computed with."""
        return [
            Axis(coded.name, coded.size, tuple(parents))
            for coded, parents in zip(self.coded, self.parents, strict=True)
        ]

    def _coarse_codes(self, axis: int, expr: Expr, values: tuple[Value, ...]) -> tuple[int, ...] | None:
        """Return the coarse code of every value of an axis, if a key is a function of the axis' own expression."""
        fine = self.coded[axis]
        placeholder = Column("x", fine.expr.type)
        replaced = _replace(expr, fine.expr, placeholder)
        if expr == fine.expr or _reads_other_columns(replaced, placeholder):
            return None
        codes = {value: code for code, value in enumerate(values)}
        found = [codes.get(evaluate(replaced, {"x": value})) for value in fine.values]
        used = {code for code in found if code is not None}
        return None if None in found or len(used) < len(values) else tuple(found)  # type: ignore[arg-type]

    def _is_coarser(self, axis: int, codes: tuple[int, ...]) -> bool:
        """Return whether codes are a function of the axis' coarsest level."""
        last = self.parents[axis][-1] if self.parents[axis] else range(len(codes))
        return len(set(zip(last, codes, strict=True))) == len(set(last))


def family_axes(releases: Iterable[PlannedRelease]) -> FamilyAxes:
    """Return the axes of the tables of a family."""
    keys = [
        (name, expr, values)
        for release in releases
        for name, (_, expr), values in zip(release.keys, release.question.by, public_domains(release), strict=True)
    ]
    axes = FamilyAxes()
    for name, expr, values in sorted(keys, key=lambda key: -len(key[2])):
        axes.add(name, expr, values)
    return axes


def _replace(expr: Expr, part: Expr, new: Column) -> Expr:
    if expr == part:
        return new
    return Call(expr.op, tuple(_replace(arg, part, new) for arg in expr.args)) if isinstance(expr, Call) else expr


def _reads_other_columns(expr: Expr, allowed: Column) -> bool:
    if isinstance(expr, Call):
        return any(_reads_other_columns(arg, allowed) for arg in expr.args)
    return isinstance(expr, Column) and expr != allowed
