"""The axes of a family of tables: its keys, of which some are coarser levels of others."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from discreet.engines.reference.evaluate import evaluate
from discreet.estimate.planned_release import PlannedRelease
from discreet.kernel.expr import Call, Column, Expr, Value
from discreet.publish.codes import CodedAxis, Requirement
from discreet.publish.declared_levels import DeclaredParents
from discreet.publish.eligible import key_codes, public_domains
from discreet.publish.marginals.axes import Axis, Table, table_shape


def nothing_declared(fine: Expr, coarse: Expr) -> None:
    """Declare no hierarchy."""


@dataclass
class _AxisLevels:
    """A key, and its coarser levels: of each level its expression and values, and the codes by code of the finest."""

    name: str
    exprs: list[Expr]
    values: list[tuple[Value, ...]]
    codes: list[tuple[int, ...]]
    required: list[Requirement] = field(default_factory=list)

    def add(self, expr: Expr, values: tuple[Value, ...], declared: DeclaredParents) -> bool:
        """Add a key if it is a coarser level, by its expression or by declaration."""
        for level, fine in enumerate(self.exprs):
            computed, parents = _computed_from(expr, fine), declared(fine, expr)
            if computed is not None:
                found = [evaluate(computed, {"x": value}) for value in self.values[level]]
            elif parents is not None:
                found = [parents.get(value) for value in self.values[level]]
            else:
                continue
            codes = _coarse_codes(found, values, self.codes[level])
            if codes is not None and _is_coarser(self.codes[-1], codes):
                self.exprs.append(expr)
                self.values.append(values)
                self.codes.append(codes)
                if computed is None:
                    self.required.append(Requirement(expr, tuple(values[code] for code in codes)))
                return True
        return False

    def as_axis(self) -> Axis:
        """Return the axis as tables are computed with."""
        return Axis(self.name, len(self.values[0]), tuple(self.codes[1:]))

    def as_coded(self) -> CodedAxis:
        """Return the axis as rows are coded."""
        return CodedAxis(self.name, self.exprs[0], self.values[0], tuple(self.required))


@dataclass(frozen=True)
class FamilyAxes:
    """The axes of a family: the keys of its tables, where a key that is a function of another is a coarser level.

    So is a key that the policy declares to be one. Then rows must have the value that is declared for their finer one.
    """

    levels: tuple[_AxisLevels, ...]

    @cached_property
    def coded(self) -> list[CodedAxis]:
        """The finest level of each axis, as rows are coded."""
        return [axis.as_coded() for axis in self.levels]

    @cached_property
    def axes(self) -> list[Axis]:
        """The axes as tables are computed with."""
        return [axis.as_axis() for axis in self.levels]

    @cached_property
    def _places(self) -> dict[Expr, list[tuple[tuple[Value, ...], tuple[int, int]]]]:
        """The values, axis and level of the keys with an expression."""
        places: dict[Expr, list[tuple[tuple[Value, ...], tuple[int, int]]]] = {}
        for index, axis in enumerate(self.levels):
            for level, (expr, values) in enumerate(zip(axis.exprs, axis.values, strict=True)):
                places.setdefault(expr, []).append((values, (index, level)))
        return places

    def parts_of(self, release: PlannedRelease) -> list[tuple[int, int] | None]:
        """Return the axis and level of each key of a release; None for a key that is none."""
        keys = zip(release.question.by, public_domains(release), strict=True)
        return [
            next((place for known, place in self._places.get(expr, ()) if known == values), None)
            for (_, expr), values in keys
        ]

    def table_of(self, release: PlannedRelease) -> Table:
        """Return the axes of a release's keys, each at the finest of their levels."""
        finest: dict[int, int] = {}
        for axis, level in filter(None, self.parts_of(release)):
            finest[axis] = min(level, finest.get(axis, level))
        return tuple(sorted(finest.items()))

    def cells_of(self, release: PlannedRelease, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return which groups are possible, and the cell of each of these in the table of the release.

        A group is possible if its values of an axis belong to one another, such as a town and its own region.
        """
        codes = key_codes(release, groups)
        table, parts = self.table_of(release), self.parts_of(release)
        finest = {part: codes[key] for key, part in enumerate(parts) if part in table}
        possible = np.ones(len(groups), bool)
        for key, part in enumerate(parts):
            if part is not None and part not in table:
                axis, level = part
                own = dict(table)[axis]
                possible &= self.axes[axis].ancestors[own, level][finest[axis, own]] == codes[key]
        shape = table_shape(self.axes, table)
        cells = np.ravel_multi_index([finest[part] for part in table], shape) if table else np.zeros_like(groups)
        return groups[possible], np.asarray(cells)[possible]


def family_axes(releases: Iterable[PlannedRelease], declared: DeclaredParents = nothing_declared) -> FamilyAxes:
    """Return the axes of the tables of a family."""
    keys = [
        (name, expr, values)
        for release in releases
        for name, (_, expr), values in zip(release.keys, release.question.by, public_domains(release), strict=True)
    ]
    found: list[_AxisLevels] = []
    for name, expr, values in sorted(keys, key=lambda key: -len(key[2])):  # so that coarser levels find their axis
        known = any((expr, values) in zip(axis.exprs, axis.values, strict=True) for axis in found)
        if not known and not any(axis.add(expr, values, declared) for axis in found):
            found.append(_AxisLevels(name, [expr], [values], [tuple(range(len(values)))]))
    return FamilyAxes(tuple(found))


def _coarse_codes(found: list[Value], values: tuple[Value, ...], codes: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the coarse code of every finest code, if all values of a level have one, and all coarse values occur."""
    code_of = {value: code for code, value in enumerate(values)}
    coarse = [code_of.get(value) for value in found]
    return None if set(coarse) != set(code_of.values()) else tuple(coarse[code] for code in codes)  # type: ignore[misc]


def _is_coarser(last: tuple[int, ...], codes: tuple[int, ...]) -> bool:
    """Return whether codes are a function of those of the coarsest level so far."""
    return len(set(zip(last, codes, strict=True))) == len(set(last))


def _computed_from(expr: Expr, fine: Expr) -> Expr | None:
    """Return an expression as a function of "x", in place of a finer one; None if it reads anything else."""
    placeholder = Column("x", fine.type)
    replaced = _replace(expr, fine, placeholder)
    return None if expr == fine or _reads_other_columns(replaced, placeholder) else replaced


def _replace(expr: Expr, part: Expr, new: Column) -> Expr:
    if expr == part:
        return new
    return Call(expr.op, tuple(_replace(arg, part, new) for arg in expr.args)) if isinstance(expr, Call) else expr


def _reads_other_columns(expr: Expr, allowed: Column) -> bool:
    if isinstance(expr, Call):
        return any(_reads_other_columns(arg, allowed) for arg in expr.args)
    return isinstance(expr, Column) and expr != allowed
