"""Synthetic rows of a plan: columns as codes, the kernel's noisy tables and distances, and codes as values again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from discreet.curator.curator import Curator
from discreet.curator.prepared_queries import plan_query
from discreet.engines.row_sums import RemoteRowSource, RowSource, summable
from discreet.estimate.planned_release import ARROW_TYPES
from discreet.kernel.errors import Refused
from discreet.kernel.expr import Type
from discreet.kernel.loss import Loss
from discreet.kernel.mechanism import Gaussian
from discreet.kernel.model_release import Batch, Combine, noisy_distance, noisy_sum
from discreet.kernel.question import PublicGroups
from discreet.kernel.relation import Relation
from discreet.kernel.reservation import CLIP_RADIUS, Noise, Reservation
from discreet.policy.column_domains import Between, DeclaredColumn
from discreet.policy.declarations import DeclaredTable
from discreet.policy.problems import did_you_mean
from discreet.policy.validators import format_number
from discreet.privacy.calibration import reserved_noises
from discreet.publish.codes import CodedAxis
from discreet.publish.describe import values_text
from discreet.publish.plan import PublicationPlan
from discreet.publish.synthesis.merged_columns import ColumnSet, MergedColumn
from discreet.publish.synthesis.schedule import SynthesisSettings, release_schedule

_MAX_VALUES = 1_000  # of a column; more are put into bins
_DEFAULT_BINS = 20
_CACHED_BYTES = 1 << 31
MAX_STORED_VALUES = 6_000_000  # rows times columns, so that the ledger can store them


@dataclass(frozen=True)
class SyntheticColumn:
    """A column of synthetic rows: its axis, and the width of its bins if it is numeric and binned."""

    declared: DeclaredColumn
    axis: CodedAxis
    width: Fraction | None = None

    @property
    def is_ordered(self) -> bool:
        """Whether neighbouring values are alike."""
        return self.declared.type not in ("text", "boolean")

    @property
    def domain_text(self) -> str:
        """The values of the column in words."""
        if self.width is None:
            return values_text(self.axis.values)
        between = self.declared.domain
        assert isinstance(between, Between)
        null = ", NULL" * (None in self.axis.values)
        low, high, width = (format_number(Fraction(each)) for each in (between.low, between.high, self.width))  # type: ignore[arg-type]
        return f"{low} to {high}, uniform in bins of {width}{null}"

    def decode(self, codes: np.ndarray, generator: np.random.Generator) -> pa.Array:
        """Return the values of codes; a number in a bin is drawn uniformly from it."""
        kind = ARROW_TYPES[_TYPES[self.declared.type]]
        if self.width is None:
            return pa.array(self.axis.values, kind).take(pa.array(codes))
        between = self.declared.domain
        assert isinstance(between, Between)
        low, high = (Fraction(end) for end in (between.low, between.high))  # type: ignore[arg-type]
        bins = [None if value is None else Fraction(value) * self.width for value in self.axis.values]  # type: ignore[arg-type]
        starts = np.array([float(low if start is None else max(low, start)) for start in bins])
        ends = np.array([float(high if start is None else min(high, start + self.width)) for start in bins])
        missing = np.array([start is None for start in bins])[codes]
        if self.declared.type == "integer":
            first, last = np.ceil(starts), np.maximum(np.ceil(starts), np.ceil(ends) - (ends < float(high)))
            drawn = generator.integers(first[codes].astype(np.int64), last[codes].astype(np.int64), endpoint=True)
            return pa.array(drawn, kind, mask=missing)
        return pa.array(starts[codes] + (ends - starts)[codes] * generator.random(len(codes)), kind, mask=missing)


_TYPES = {
    "integer": Type.INTEGER,
    "real": Type.REAL,
    "decimal": Type.REAL,
    "boolean": Type.BOOLEAN,
    "text": Type.TEXT,
    "date": Type.DATE,
    "timestamp": Type.TIMESTAMP,
}


def synthetic_columns(
    curator: Curator, plan: PublicationPlan, name: str
) -> tuple[Relation, tuple[SyntheticColumn, ...]]:
    """Return the relation and the columns of synthetic rows; PolicyError with the plan's line if one has no domain."""
    entry = plan.synthetic[name]
    table = curator.policy.tables.get(entry.table)
    if table is None or table.public:
        plan.refuse(("synthetic", name, "table"), f"the policy has no private table {entry.table!r}.")
    found = [_column(curator, plan, name, table, column) for column in entry.columns]
    for unknown in entry.bins.keys() - set(entry.columns):
        plan.refuse(("synthetic", name, "bins", unknown), f"{unknown!r} is not one of the columns.")
    relations = {relation for relation, _ in found}
    assert len(relations) == 1
    return relations.pop(), tuple(column for _, column in found)


def _column(
    curator: Curator, plan: PublicationPlan, name: str, table: DeclaredTable, column_name: str
) -> tuple[Relation, SyntheticColumn]:
    path = ("synthetic", name, "columns")
    column = table.column(column_name)
    if column is None:
        plan.refuse(
            path, f"table {table.name!r} has no column {column_name!r}{did_you_mean(column_name, table.columns)}"
        )
    width = _bin_width(plan, name, column)
    quoted = '"' + column.name.replace('"', '""') + '"'
    expr = quoted if width is None else f"FLOOR({quoted} / {_decimal(width)})"
    source = '"' + table.name.replace('"', '""') + '"'
    sql = f"SELECT {expr} AS code, COUNT(*) AS n FROM {source} GROUP BY {expr}"  # noqa: S608 - declared names
    try:
        query = plan_query(curator.releases, sql)
    except Refused as refusal:
        plan.refuse(path, f"column {column.name!r}: {refusal}")
    question = query.answering[0].question
    if not isinstance(question.groups, PublicGroups):
        plan.refuse(path, f"column {column.name!r} has no public domain. Declare one with in or between in the policy.")
    (values,) = question.groups.domains
    if len(values) > _MAX_VALUES:
        hint = f"Put it into bins: bins = {{ {column.name} = … }}."
        plan.refuse(path, f"column {column.name!r} has {len(values):,} values, more than {_MAX_VALUES:,}. {hint}")
    ((_, key),) = question.by
    return question.relation, SyntheticColumn(column, CodedAxis(column.name, key, values), width)


def _bin_width(plan: PublicationPlan, name: str, column: DeclaredColumn) -> Fraction | None:
    """Return the width of a numeric column's bins: that of the plan, or a twentieth of a real column's range."""
    width = plan.synthetic[name].bins.get(column.name)
    numeric = column.type in ("integer", "real", "decimal")
    if width is not None and not (numeric and isinstance(column.domain, Between)):
        path = ("synthetic", name, "bins", column.name)
        plan.refuse(path, "bins need a numeric column with a declared range (between).")
    if width is None and numeric and isinstance(column.domain, Between):
        span = Fraction(column.domain.high) - Fraction(column.domain.low)  # type: ignore[arg-type]
        if column.type != "integer" or span >= _MAX_VALUES:
            return _round_up(span / _DEFAULT_BINS) if span else Fraction(1)
    return width


def _round_up(width: Fraction) -> Fraction:
    """Return the next larger of 1, 2 and 5 times a power of ten."""
    power = Fraction(10) ** (len(str(int(width))) - 1) if width >= 1 else Fraction(1, 10 ** len(str(int(1 / width))))
    return next(power * factor for factor in (1, 2, 5, 10, 20, 50) if power * factor >= width)


def _decimal(number: Fraction) -> str:
    return str(number.numerator) if number.denominator == 1 else f"({number.numerator} / {number.denominator}.0)"


@dataclass(frozen=True)
class CachedRows:
    """Codes of rows in memory, for the many passes of a synthesis."""

    codes: np.ndarray  # small integers, rows × columns
    units: np.ndarray | None
    low: np.ndarray
    high: np.ndarray

    @property
    def grouped(self) -> bool:
        """Whether a unit may have several rows."""
        return self.units is not None

    def batches(self, size: int) -> Iterator[Batch]:
        """Yield the rows."""
        for start in range(0, len(self.codes), size):
            part = slice(start, start + size)
            yield self.codes[part].astype(np.float64), None if self.units is None else self.units[part]


def cached(rows: RowSource) -> RowSource:
    """Return rows that are read once, if they are summed here and fit into memory."""
    if isinstance(rows, RemoteRowSource):
        return rows
    parts, units, size = [], [], 0
    for batch, numbers in rows.batches(100_000):
        parts.append(np.rint(batch).astype(np.uint16))
        units.append(numbers)
        size += batch.size * 2 + 8 * len(batch)
        if size > _CACHED_BYTES:
            return rows
    codes = np.concatenate(parts) if parts else np.zeros((0, len(rows.low)), np.uint16)
    numbers = np.concatenate(units) if rows.grouped and units else np.zeros(0, np.int64) if rows.grouped else None  # type: ignore[arg-type]
    return CachedRows(codes, numbers, rows.low, rows.high)


@dataclass(frozen=True)
class SyntheticReleases:
    """The noise of all releases of a synthesis, fixed and charged before data is read."""

    sizes: tuple[int, ...]
    settings: SynthesisSettings
    rows: int  # of a unit, before it is clipped
    noises: tuple[tuple[Noise, ...], ...]  # of each release

    @classmethod
    def within(cls, cost: Loss, sizes: Sequence[int], rows: int) -> "SyntheticReleases":
        """Divide a cost over the releases of the schedule."""
        settings = SynthesisSettings(norm=2 if cost.epsilon is None else 1)
        schedule = release_schedule(sizes, settings)
        shares = [each.share / each.count for each in schedule for _ in range(each.count)]
        noises = iter(reserved_noises(cost, shares))
        return cls(
            tuple(sizes), settings, rows, tuple(tuple(next(noises) for _ in range(each.count)) for each in schedule)
        )

    @property
    def all_noises(self) -> list[Noise]:
        """The noise of every draw, in order."""
        return [noise for release in self.noises for noise in release]


@dataclass(eq=False)
class KernelMeasurer:
    """The kernel's noisy tables and distances, drawn from a reservation in the order of the schedule."""

    releases: SyntheticReleases
    source: RowSource
    reservation: Reservation
    merged: Sequence[MergedColumn] = ()

    def merge(self, merged: Sequence[MergedColumn]) -> None:
        """Add merged columns after those of the data."""
        self.merged = merged

    @property
    def deviations(self) -> list[float]:
        """Standard deviation of the noise in each release, in rows."""
        per_row = self.releases.rows / CLIP_RADIUS
        first = [noises[0] for noises in self.releases.noises]
        return [float(each.scale) * per_row * (1 if isinstance(each, Gaussian) else 2**0.5) for each in first]

    def tables(self, tables: Sequence[tuple[int, ...]], weights: Sequence[float]) -> list[np.ndarray]:
        """Return noisy counts of rows."""
        of_columns = ColumnSet(self.releases.sizes, tuple(self.merged)).sizes
        shapes = [tuple(of_columns[column] for column in table) for table in tables]
        sizes = tuple(int(np.prod(shape, dtype=np.int64)) for shape in shapes)
        steps = np.array([max(1, int(weight * CLIP_RADIUS / self.releases.rows)) for weight in weights], np.float64)
        noisy = noisy_sum(
            summable(self.source),
            table_entries,
            self._public(tables, steps),
            size=sum(sizes),
            radius=CLIP_RADIUS,
            reservation=self.reservation,
            combine=Combine.SUM,
            blocks=sizes,
        )
        parts = np.split(noisy, np.cumsum(sizes)[:-1])
        return [part.reshape(shape) / step for part, shape, step in zip(parts, shapes, steps, strict=True)]

    def distances(self, tables: Sequence[tuple[int, ...]], models: Sequence[np.ndarray]) -> np.ndarray:
        """Return the noisy l1 distances between exact tables and integer tables of a model."""
        step = CLIP_RADIUS // self.releases.rows
        data = summable(self.source)
        return np.array(
            [
                noisy_distance(
                    data,
                    table_entries,
                    self._public([table], np.array([step], np.float64)),
                    np.ravel(model).astype(np.int64) * step,
                    radius=CLIP_RADIUS,
                    reservation=self.reservation,
                )
                / step
                for table, model in zip(tables, models, strict=True)
            ]
        )

    def _public(self, tables: Sequence[tuple[int, ...]], steps: np.ndarray) -> tuple[np.ndarray, ...]:
        """What the rule needs: strides and steps of the tables, source of each column, and codes by its source's."""
        columns = ColumnSet(self.releases.sizes, tuple(self.merged))
        sources = [*range(len(columns.data)), *(column.source for column in self.merged)]
        codes = np.zeros((len(sources), max(columns.data)), np.int64)
        for row, known in enumerate([*map(np.arange, columns.data), *(column.groups for column in self.merged)]):
            codes[row, : len(known)] = known
        return _strides(tables, columns.sizes), steps, np.array(sources, np.int64), codes


def _strides(tables: Sequence[tuple[int, ...]], sizes: Sequence[int]) -> np.ndarray:
    """Return for each table the stride of each column; 0 for columns that it does not have."""
    strides = np.zeros((len(tables), len(sizes)), np.int64)
    for row, table in enumerate(tables):
        for at, column in enumerate(table):
            strides[row, column] = np.prod([sizes[other] for other in table[at + 1 :]], dtype=np.int64)
    return strides


def table_entries(rows: np.ndarray, public: tuple[np.ndarray, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return a row's cell in every table, and what it adds there in steps (the rule of a synthesis)."""
    strides, steps, sources, codes = public
    used = np.flatnonzero(strides.any(axis=0)).tolist()
    values = {column: codes[column][np.rint(rows[:, sources[column]]).astype(np.int64)] for column in used}
    cells = np.zeros((len(strides), len(rows)), np.int64)
    for table in range(len(strides)):
        for column in np.flatnonzero(strides[table]).tolist():
            cells[table] += values[column] * strides[table, column]
    return cells.T, np.broadcast_to(steps, (len(rows), len(steps)))
