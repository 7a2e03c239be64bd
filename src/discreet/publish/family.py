"""Families: tables over the same rows, which are released together so that they add up.

rows ──► codes and values ──► one sparse vector per row: its cell in every table, times the table's scale
     ──► one vector per unit, clipped as a whole ──► sum + noise ──► least squares for each measure
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from discreet.engines.column_usage import columns_of
from discreet.engines.row_sums import RowSource, summable
from discreet.kernel.expr import Call, Constant, Expr, Type
from discreet.kernel.fingerprint import digest
from discreet.kernel.mechanism import Gaussian
from discreet.kernel.model_release import Combine, noisy_sum
from discreet.kernel.reservation import CLIP_RADIUS, Reservation
from discreet.kernel.reservation import Noise as Mechanism
from discreet.kernel.totals import Count, Sum, Total
from discreet.publish.codes import CodedRows, coded_rows
from discreet.publish.eligible import AddingTable
from discreet.publish.family_axes import FamilyAxes
from discreet.publish.marginals.axes import Axis, Table, table_shape
from discreet.publish.marginals.consistent_tables import ConsistentTables, Measurement, least_squares
from discreet.publish.marginals.covariances import Covariances, forecast
from discreet.publish.marginals.noise_margins import Noise
from discreet.publish.marginals.scales import choose_scales
from discreet.publish.marginals.whole_numbers import whole_tables

_STORED = "<f8"  # of a cell in the ledger: a double, the lowest byte first
_LEFT_OUT = re.compile(r"^Rows are left out where |\.$")  # around the clauses of a note


@dataclass(frozen=True)
class RowMeasure:
    """What a row adds to its cells: 1, or a value less its centre, of which the largest is `size`."""

    key: str
    expr: Expr | None  # None: every row adds 1
    centre: Fraction = Fraction(0)
    ends: tuple[float, float] = (0.0, 1.0)

    @property
    def size(self) -> float:
        """The largest absolute value that a row adds."""
        return max(abs(end - float(self.centre)) for end in self.ends) or 1.0


def row_measure(total: Total) -> RowMeasure:
    """Return the measure of a count or sum, in which NULL adds nothing."""
    if isinstance(total, Sum):
        centre = total.grid.offset * total.grid.step
        if total.expr.type is Type.INTEGER:
            centre = Fraction(round(centre))
        neutral = int(centre) if total.expr.type is Type.INTEGER else float(centre)
        expr = Call("coalesce", (total.expr, Constant(neutral, total.expr.type)))
        return RowMeasure(digest(total), expr, Fraction(neutral), (float(total.grid.low), float(total.grid.high)))
    assert isinstance(total, Count)
    if total.expr is None:
        return RowMeasure("rows", None)
    counted = Call("case", (Call("is_null", (total.expr,)), Constant(0, Type.INTEGER), Constant(1, Type.INTEGER)))
    return RowMeasure(digest(total), counted)


@dataclass(frozen=True)
class Block:
    """A table of one measure that is given noise; a row of the largest value adds `steps` to its cell."""

    measure: int
    table: Table
    steps: int


@dataclass(frozen=True)
class Family:
    """Tables over the same rows, with the noise of each; a unit may have `rows` rows before it is clipped."""

    tables: tuple[AddingTable, ...]
    keys: FamilyAxes
    measures: tuple[RowMeasure, ...]
    blocks: tuple[Block, ...]
    mechanism: Mechanism

    @property
    def axes(self) -> list[Axis]:
        """The axes of the tables."""
        return self.keys.axes

    @property
    def structure_digest(self) -> str:
        """A digest of all that the noisy blocks are computed from, apart from the data, and of how they are stored."""
        keys = tuple((axis.expr, axis.values, axis.required) for axis in self.keys.coded)
        levels = tuple(axis.parents for axis in self.axes)
        blocks = tuple((block.measure, block.table, block.steps) for block in self.blocks)
        measures = tuple((measure.key, measure.centre) for measure in self.measures)
        return digest((self.tables[0].relation_digest, keys, levels, measures, blocks, _STORED))

    @cached_property
    def left_out(self) -> tuple[str, ...]:
        """Which rows are in no table: those that one of the tables leaves out, because otherwise they do not add up."""
        return (f"Rows are left out where {', or '.join(self.excluded_by)}.",) if self.excluded_by else ()

    @cached_property
    def excluded_by(self) -> dict[str, list[str]]:
        """Under which conditions rows are in no table, each with the tables whose own keys exclude them."""
        clauses: dict[str, dict[str, None]] = {}
        for table in self.tables:
            for clause in (each for note in table.plan.left_out for each in _LEFT_OUT.sub("", note).split(", or ")):
                clauses.setdefault(clause, {})[table.name] = None
        keys = {table.name: {expr for _, expr in table.release.question.by} for table in self.tables}
        for axis in self.keys.coded:
            for each in axis.required:
                both = dict.fromkeys(name for name, exprs in keys.items() if {axis.expr, each.expr} <= exprs)
                clauses[f"{_name(each.expr)} is not that of {_name(axis.expr)}"] = both
        return {clause: list(names) for clause, names in clauses.items()}

    @property
    def noise(self) -> Noise:
        """The kind of noise."""
        return Noise.GAUSSIAN if isinstance(self.mechanism, Gaussian) else Noise.LAPLACE

    @cached_property
    def rows(self) -> CodedRows:
        """The rows to sum."""
        valued = [(measure.expr, measure.ends) for measure in self.measures if measure.expr is not None]
        return coded_rows(self.tables[0].release.question.relation, self.keys.coded, valued)

    def variance(self, block: Block) -> float:
        """Return the variance of the noise in each cell of a block, in the units of its measure."""
        scale = float(self.mechanism.scale) / block.steps * self.measures[block.measure].size
        return scale * scale * (1 if self.noise is Noise.GAUSSIAN else 2)

    @cached_property
    def forecasts(self) -> tuple[Covariances, ...]:
        """The covariances of each measure's tables before they are released."""
        scales: list[dict[Table, float]] = [{} for _ in self.measures]
        for block in self.blocks:
            scales[block.measure][block.table] = 1 / self.variance(block) ** 0.5
        return tuple(forecast(self.axes, of_measure, 1.0, self.noise) for of_measure in scales)

    def release(self, rows: RowSource, reservation: Reservation) -> list[np.ndarray]:
        """Release the noisy blocks, in the units of their measures."""
        sizes = self._block_sizes
        noisy = noisy_sum(
            summable(rows),
            block_entries,
            self._public,
            size=sum(sizes),
            radius=CLIP_RADIUS,
            reservation=reservation,
            combine=Combine.SUM,
            blocks=sizes,
        )
        units = [self.measures[block.measure].size / block.steps for block in self.blocks]
        return [part * unit for part, unit in zip(self._blocks_of(noisy), units, strict=True)]

    def read_blocks(self, stored: bytes) -> list[np.ndarray]:
        """Return noisy blocks that were stored by `blocks_as_bytes`."""
        return self._blocks_of(np.frombuffer(stored, _STORED))

    @cached_property
    def _block_sizes(self) -> tuple[int, ...]:
        return tuple(math.prod(table_shape(self.axes, block.table)) for block in self.blocks)

    def _blocks_of(self, cells: np.ndarray) -> list[np.ndarray]:
        """Return the cells of all blocks as their tables."""
        parts = np.split(cells, np.cumsum(self._block_sizes)[:-1])
        return [
            part.reshape(table_shape(self.axes, block.table)) for part, block in zip(parts, self.blocks, strict=True)
        ]

    def solve(self, noisy: Sequence[np.ndarray]) -> list[ConsistentTables]:
        """Return the consistent tables of each measure."""
        return [
            least_squares(self.axes, self._measurements(index, noisy), self.noise)
            for index in range(len(self.measures))
        ]

    def whole_counts(self, noisy: Sequence[np.ndarray]) -> Mapping[Table, np.ndarray]:
        """Return the counts of rows as non-negative whole numbers that add up; empty if there are too many cells."""
        index = next((at for at, measure in enumerate(self.measures) if measure.expr is None), None)
        if index is None:
            return {}
        wanted = {self.keys.table_of(table.release) for table in self.tables if self._counts_rows(table)}
        try:
            return whole_tables(self.axes, self._measurements(index, noisy), sorted(wanted))
        except ValueError:
            return {}

    def _counts_rows(self, table: AddingTable) -> bool:
        return any(isinstance(total, Count) and total.expr is None for total in table.release.question.totals)

    def _measurements(self, measure: int, noisy: Sequence[np.ndarray]) -> list[Measurement]:
        return [
            Measurement(block.table, values, self.variance(block))
            for block, values in zip(self.blocks, noisy, strict=True)
            if block.measure == measure
        ]

    @property
    def _public(self) -> tuple[np.ndarray, ...]:
        """What the rule needs: per block the stride of every axis level, the value column, its centre and its steps."""
        levels = [(axis, level) for axis, each in enumerate(self.axes) for level in range(each.total)]
        maps = [self.axes[axis].ancestors[0, level] for axis, level in levels]
        longest = max((len(codes) for codes in maps), default=1)
        links = np.zeros((len(levels), longest), np.int64)
        for row, codes in enumerate(maps):
            links[row, : len(codes)] = codes
        strides = np.zeros((len(self.blocks), len(levels)), np.int64)
        for row, block in enumerate(self.blocks):
            shape = table_shape(self.axes, block.table)
            for at, part in enumerate(block.table):
                strides[row, levels.index(part)] = np.prod(shape[at + 1 :], dtype=np.int64)
        valued = [at for at, measure in enumerate(self.measures) if measure.expr is not None]
        column = [valued.index(block.measure) if block.measure in valued else -1 for block in self.blocks]
        centres = [float(self.measures[block.measure].centre) for block in self.blocks]
        steps = [block.steps / self.measures[block.measure].size for block in self.blocks]
        return (
            np.array([axis for axis, _ in levels], np.int64),
            links,
            strides,
            np.array(column, np.int64),
            np.array(centres),
            np.array(steps),
        )


def blocks_as_bytes(noisy: Sequence[np.ndarray]) -> bytes:
    """Return noisy blocks as the ledger stores them: the numbers of all cells."""
    return b"".join(block.astype(_STORED).tobytes() for block in noisy)


def _name(expr: Expr) -> str:
    return ", ".join(sorted(columns_of(expr)))


def block_entries(rows: np.ndarray, public: tuple[np.ndarray, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return a row's cell in every block, and what it adds there in steps (the rule of a family)."""
    axis_of_level, links, strides, columns, centres, steps = public
    axes = int(axis_of_level.max(initial=-1)) + 1
    codes = np.rint(rows[:, :axes]).astype(np.int64)
    levels = [links[level][codes[:, axis]] for level, axis in enumerate(axis_of_level.tolist())]
    cells = np.zeros((len(strides), len(rows)), np.int64)
    values = np.empty((len(strides), len(rows)))
    for block in range(len(strides)):
        for level in np.flatnonzero(strides[block]).tolist():
            cells[block] += levels[level] * strides[block, level]
        value = 1.0 if columns[block] < 0 else rows[:, axes + columns[block]] - centres[block]
        values[block] = value * steps[block]
    return cells.T, values.T


def family_fingerprint(relation_digest: str, version: str) -> str:
    """Return the fingerprint by which published tables over these rows are found in the ledger."""
    return digest(("published tables", relation_digest, version))


def measures_of(tables: Sequence[AddingTable]) -> tuple[RowMeasure, ...]:
    """Return the measures of some tables, in the order in which they first occur."""
    return tuple(dict.fromkeys(row_measure(total) for table in tables for total in table.release.question.totals))


def plan_family(  # noqa: PLR0913 - tables, what they need, and their noise
    tables: Sequence[AddingTable],
    keys: FamilyAxes,
    weights: Mapping[str, Fraction],
    variances: Mapping[str, float],
    *,
    mechanism: Mechanism,
    rows: int,
) -> Family:
    """Choose the scales of a family's tables by their weights, for units with at most `rows` rows.

    `variances` has the largest variance that the counts of some tables may have; UnreachableLimits if it is too small.
    """
    axes, noise = keys.axes, Noise.GAUSSIAN if isinstance(mechanism, Gaussian) else Noise.LAPLACE
    wanted: dict[RowMeasure, dict[Table, float]] = {measure: {} for measure in measures_of(tables)}
    limits: dict[Table, float] = {}
    for table in tables:
        shown = keys.table_of(table.release)
        for total in table.release.question.totals:
            of_measure = wanted[row_measure(total)]
            of_measure[shown] = of_measure.get(shown, 0.0) + float(weights[table.name])
        if table.name in variances:
            limits[shown] = min(variances[table.name], limits.get(shown, np.inf))
    demand = {measure: sum(of_measure.values()) for measure, of_measure in wanted.items()}
    power = noise.value  # shares add up to 1 in the norm of the noise
    shares = {measure: (amount / sum(demand.values())) ** (1 / power) for measure, amount in demand.items()}
    sigma = float(mechanism.scale) * rows / CLIP_RADIUS * (1 if noise is Noise.GAUSSIAN else 2**0.5)
    blocks = []
    for index, (measure, of_measure) in enumerate(wanted.items()):
        unit = (sigma / shares[measure]) ** 2
        bounds = {table: limit / unit for table, limit in limits.items()} if measure.expr is None else None
        for shown, scale in choose_scales(axes, of_measure, limits=bounds, noise=noise).items():
            steps = int(scale * shares[measure] * CLIP_RADIUS / rows)
            blocks += [Block(index, shown, steps)] if steps else []
    return Family(tuple(tables), keys, tuple(wanted), tuple(blocks), mechanism)
