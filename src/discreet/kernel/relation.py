"""The ownership algebra: every row belongs to exactly one unit and depends only on that unit's rows and public tables.

Scan            a private table with its owner: UnitKey (columns of the row), ParentUnit (that of a parent row), EachRow
Where           the rows for which a condition is true
Derive          other columns, computed row by row
JoinPublic      a join with a public table, at most `fanout` rows of it for each row
JoinOnUnit      a join with other rows of the same unit
SemiJoinOnUnit  the rows of units that have (or do not have) a row in another relation
PerUnit         one row for each unit, or for each unit and key
Union           the rows of two relations

A node validates itself when it is created, and none can break the property: no node joins rows of two units, numbers or
sorts rows across units, or limits a relation to some of its rows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from discreet.kernel.expr import (
    Call,
    Column,
    Constant,
    Expr,
    Type,
    UnitAggregate,
    check_name,
    columns_of,
    expanded_size,
)
from discreet.kernel.numbers import as_integer

MAX_SUM = 1 << 62  # fits in 64 bits, with one to spare
_MAX_DEPTH = 60
_MAX_NODES = 300
MAX_WORK = 20_000  # operations per row
_MAX_ROWS_PER_UNIT = 1 << 22  # so that the work for one unit cannot be detected by a time limit
Schema = Mapping[str, Type]
NamedExprs = tuple[tuple[str, Expr], ...]


@dataclass(frozen=True)
class Shape:
    """Public properties of a relation."""

    schema: Schema
    unit: tuple[Type, ...] | None  # types of the unit's key; None if every row is its own unit
    max_rows_per_unit: int | None  # None if unbounded
    max_rows: int  # public bound on the number of rows
    depth: int = 1
    nodes: int = 1  # in the expanded tree
    # Sizes of the expressions of computed columns, which an engine may inline.
    column_sizes: Mapping[str, int] = field(default_factory=dict)
    work: int = 0  # total size of all expressions


class JoinKind(Enum):
    """The kind of a join."""

    INNER = "inner"
    LEFT = "left"


class SemiJoinKind(Enum):
    """Whether a unit must have a row in the other relation, or must not."""

    SEMI = "some"
    ANTI = "none"


@dataclass(frozen=True)
class UnitKey:
    """The unit is given by columns of the row: a person, or a person and a time window."""

    unit: tuple[Expr, ...]


@dataclass(frozen=True)
class EachRow:
    """Every row is its own unit (event level)."""


@dataclass(frozen=True)
class ParentUnit:
    """The owner of the parent rows whose `key` equals this row's `on`; a row with several owners is dropped.

    Such a row would belong to each of its owners and disappear with any of them. Counting it for one owner, or for
    each, would let rows inserted by one unit multiply the contribution of another.
    """

    on: str
    parent: "Scan"
    key: str


@dataclass(frozen=True)
class Scan:
    """The rows of a private table that have an owner."""

    table: str
    columns: tuple[Column, ...]
    owner: UnitKey | EachRow | ParentUnit
    max_rows: int
    shape: Shape = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_name(self.table)
        max_rows = _store_integer(self, "max_rows")
        if not all(isinstance(column, Column) for column in self.columns):
            raise TypeError("columns must contain only Column objects")
        schema = {column.name: column.type for column in self.columns}
        _check_distinct([column.name for column in self.columns])
        match self.owner:
            case UnitKey(unit):
                _require(
                    bool(unit) and all(part.type is not Type.REAL for part in unit),
                    "a unit key must have at least one column, and none of type real",
                )
                for part in unit:
                    check_columns_exist(part, schema)
                owner: tuple[Type, ...] | None = tuple(part.type for part in unit)
            case ParentUnit(on, parent, key):
                if not isinstance(parent, Scan):
                    raise TypeError("parent must be a Scan")
                matched = on in schema and schema[on] is parent.shape.schema.get(key) is not Type.REAL
                _require(
                    matched and parent.shape.unit is not None, "on and key must be columns of the same type, not real"
                )
                owner = parent.shape.unit
            case EachRow():
                owner = None
            case _:
                raise TypeError("owner must be a UnitKey, ParentUnit or EachRow")
        _set_shape(self, Shape(schema, owner, None if owner else 1, max_rows))


@dataclass(frozen=True)
class Where:
    """The rows for which the condition is true."""

    source: "Relation"
    condition: Expr
    shape: Shape = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        _check_condition(self.condition, self.source.shape.schema)
        _set_shape(self, self.source.shape, self.source, reads=(self.condition,))


@dataclass(frozen=True)
class Derive:
    """New columns, each computed from the row."""

    source: "Relation"
    columns: NamedExprs
    shape: Shape = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        shape = self.source.shape
        schema = derived_schema(self.columns, shape.schema)
        column_sizes = {name: expanded_size(expr, shape.column_sizes) for name, expr in self.columns}
        _set_shape(
            self,
            replace(shape, schema=schema, column_sizes=column_sizes),
            self.source,
            reads=[expr for _, expr in self.columns],
        )


@dataclass(frozen=True)
class PublicTable:
    """A public table; `columns` are (name in the join, column of the table), `condition` is over those names."""

    table: str
    columns: tuple[tuple[str, Column], ...]
    condition: Expr | None = None

    def __post_init__(self) -> None:
        check_name(self.table)
        derived_schema(self.columns, {column.name: column.type for _, column in self.columns})
        if self.condition is not None:
            _check_condition(self.condition, self.schema)

    @property
    def schema(self) -> Schema:
        """The columns by their names in the join."""
        return {name: column.type for name, column in self.columns}


@dataclass(frozen=True)
class JoinPublic:
    """A join with a public table: all pairs (ours, theirs) in `equal` are equal, and `condition` is true.

    Of the public rows with the same values in `equal`, the first `fanout` in the order of their values are used, so
    that a row becomes at most that many; nothing is lost if `fanout` is the true maximum.
    """

    source: "Relation"
    table: PublicTable
    equal: tuple[tuple[str, str], ...]
    condition: Expr | None
    kind: JoinKind
    fanout: int
    shape: Shape = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        shape = self.source.shape
        schema = _joined_schema(shape.schema, self.table.schema, self.condition)
        for ours, theirs in self.equal:
            same = shape.schema.get(ours) is self.table.schema.get(theirs) is not None
            _require(same, "equal must pair columns of the same type")
        fanout = _store_integer(self, "fanout")
        max_rows_per_unit = None if shape.max_rows_per_unit is None else shape.max_rows_per_unit * fanout
        joined = replace(shape, schema=schema, max_rows_per_unit=max_rows_per_unit, max_rows=shape.max_rows * fanout)
        _set_shape(self, joined, self.source, reads=(self.condition,))


@dataclass(frozen=True)
class JoinOnUnit:
    """A join of rows of the same unit; of each side, a unit's first `max_rows_per_unit` rows in the order of values."""

    left: "Relation"
    right: "Relation"
    condition: Expr | None
    kind: JoinKind
    max_rows_per_unit: int
    shape: Shape = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        left, right = self.left.shape, self.right.shape
        _check_same_unit(left, right)
        schema = _joined_schema(left.schema, right.schema, self.condition)
        column_sizes = {**left.column_sizes, **right.column_sizes}
        rows_per_side = _store_integer(self, "max_rows_per_unit")
        max_rows_per_unit = min(rows_per_side, left.max_rows_per_unit or rows_per_side) * min(
            rows_per_side, right.max_rows_per_unit or rows_per_side
        )
        joined = Shape(schema, left.unit, max_rows_per_unit, left.max_rows * rows_per_side, column_sizes=column_sizes)
        _set_shape(self, joined, self.left, self.right, reads=(self.condition,))


@dataclass(frozen=True)
class SemiJoinOnUnit:
    """The rows of units that have, or do not have, a row in another relation."""

    source: "Relation"
    other: "Relation"
    kind: SemiJoinKind
    shape: Shape = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        _check_same_unit(self.source.shape, self.other.shape)
        _set_shape(self, self.source.shape, self.source, self.other)


@dataclass(frozen=True)
class PerUnit:
    """One row for each unit and combination of its keys."""

    source: "Relation"
    keys: NamedExprs
    values: tuple[tuple[str, UnitAggregate], ...]
    shape: Shape = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        shape = self.source.shape
        _require(shape.unit is not None, "rows cannot be aggregated per unit, because every row is its own unit")
        schema = dict(derived_schema(self.keys, shape.schema))
        _check_distinct([check_name(name) for name, _ in (*self.keys, *self.values)])
        for name, aggregate in self.values:
            schema[name] = aggregate.type
            if aggregate.expr is not None:
                check_columns_exist(aggregate.expr, shape.schema)
            _require(
                aggregate.grid is None or aggregate.grid.max_abs_index * shape.max_rows < MAX_SUM,
                "the step is too small for this number of rows",
            )
        reads = [*(key for _, key in self.keys), *(folded.expr for _, folded in self.values)]
        max_rows_per_unit = shape.max_rows_per_unit if self.keys else 1
        _set_shape(
            self,
            replace(shape, schema=schema, max_rows_per_unit=max_rows_per_unit, column_sizes={}),
            self.source,
            reads=reads,
        )


@dataclass(frozen=True)
class Union:
    """The rows of two relations with the same columns."""

    left: "Relation"
    right: "Relation"
    shape: Shape = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        left, right = self.left.shape, self.right.shape
        _check_same_unit(left, right)
        _require(
            list(left.schema.items()) == list(right.schema.items()), "both sides of a union must have the same columns"
        )
        max_rows_per_unit = (
            None
            if left.max_rows_per_unit is None or right.max_rows_per_unit is None
            else left.max_rows_per_unit + right.max_rows_per_unit
        )
        column_sizes = {
            name: max(left.column_sizes.get(name, 1), right.column_sizes.get(name, 1)) for name in left.schema
        }
        _set_shape(
            self,
            replace(
                left,
                max_rows_per_unit=max_rows_per_unit,
                max_rows=left.max_rows + right.max_rows,
                column_sizes=column_sizes,
            ),
            self.left,
            self.right,
        )


Relation = Scan | Where | Derive | JoinPublic | JoinOnUnit | SemiJoinOnUnit | PerUnit | Union


def tables_of(relation: Relation) -> tuple[Scan | PublicTable, ...]:
    """Return the tables that a relation reads; parents are part of their Scan."""
    match relation:
        case Scan():
            return (relation,)
        case JoinPublic(source, table):
            return (*tables_of(source), table)
        case JoinOnUnit(left, right) | SemiJoinOnUnit(left, right) | Union(left, right):
            return (*tables_of(left), *tables_of(right))
    return tables_of(relation.source)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def _set_shape(node: "Relation", shape: Shape, *sources: "Relation", reads: Iterable[Expr | None] = ()) -> None:
    """Compute the shape of a node from its sources, whatever the caller passed; `reads` are its expressions."""
    if not all(isinstance(source, Relation) for source in sources):
        raise TypeError("a source must be a relation")
    column_sizes = {name: size for source in sources for name, size in source.shape.column_sizes.items()}
    work = sum(source.shape.work for source in sources) + sum(
        expanded_size(expr, column_sizes) for expr in reads if expr is not None
    )
    depth = 1 + max((source.shape.depth for source in sources), default=0)
    nodes = 1 + sum(source.shape.nodes for source in sources)
    shape = replace(shape, depth=depth, nodes=nodes, work=work)
    _require(nodes <= _MAX_NODES, "the query has too many parts. Simplify it.")
    _require(work <= MAX_WORK, "the query computes too much per row. Simplify it.")
    _require(
        (shape.max_rows_per_unit or 1) <= _MAX_ROWS_PER_UNIT,
        "joins could give one unit too many rows. Join fewer or smaller tables.",
    )
    _require(
        shape.max_rows < MAX_SUM,
        "the number of rows could exceed 64 bits. Lower rows_max of the table, or join fewer tables.",
    )
    _require(shape.depth <= _MAX_DEPTH, "the query is too deeply nested. Simplify it.")
    object.__setattr__(node, "shape", shape)


def _store_integer(node: "Scan | JoinPublic | JoinOnUnit", name: str) -> int:
    """Store and return a field as a Python integer: those of numpy would wrap around."""
    value = as_integer(getattr(node, name), name, minimum=1)
    object.__setattr__(node, name, value)
    return value


def _check_distinct(names: list[str]) -> None:
    """Raise ValueError if two names differ only in case, which some engines ignore."""
    _require(len({name.casefold() for name in names}) == len(names), "column names must be distinct, ignoring case")


def check_columns_exist(expr: Expr, schema: Schema) -> None:
    """Raise an error unless this is an expression that uses only existing columns."""
    if not isinstance(expr, Column | Constant | Call):
        raise TypeError(f"expected an expression, not {type(expr).__name__}")
    for name, kind in columns_of(expr).items():
        _require(schema.get(name) is kind, f"column {name!r} of type {kind.name.lower()} does not exist")


def _check_condition(condition: Expr, schema: Schema) -> None:
    _require(condition.type is Type.BOOLEAN, "a condition must be boolean")
    check_columns_exist(condition, schema)


def derived_schema(columns: NamedExprs | tuple[tuple[str, Column], ...], schema: Schema) -> Schema:
    """Check the expressions of new columns against the schema, and return their types."""
    for name, expr in columns:
        check_name(name)
        check_columns_exist(expr, schema)
    _check_distinct([name for name, _ in columns])
    return {name: expr.type for name, expr in columns}


def _joined_schema(ours: Schema, theirs: Schema, condition: Expr | None) -> Schema:
    _check_distinct([*ours, *theirs])
    if condition is not None:
        _check_condition(condition, {**ours, **theirs})
    return {**ours, **theirs}


def _check_same_unit(left: Shape, right: Shape) -> None:
    same_unit = left.unit is not None and left.unit == right.unit
    _require(same_unit, "private tables can only be joined on the privacy unit, and not if every row is its own unit")
