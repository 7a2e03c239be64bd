"""Rows that one unit owns: each belongs to exactly one unit and depends only on that unit's rows and on public tables.

Scan        a private table with its owner: Own (columns of the row), Through (the owner of a parent row), EachRow
Where       the rows for which a condition is true
Derive      other columns, computed row by row
JoinPublic  with the rows of a public table, at most `fanout` for each row
JoinOwn     with other rows of the same unit
SemiOwn     the rows of units that have (or do not have) a row elsewhere
PerUnit     one row for each unit, or for each unit and key
Union       the rows of two relations, one after the other

A node checks itself when it is made, and there is none that could break the property: none joins rows of two units,
numbers or sorts rows across units, or cuts a relation to some of its rows.
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

MAX_SUM = 1 << 62  # what 64 bits hold, with one to spare
_MAX_DEPTH = 60
_MAX_NODES = 300
MAX_WORK = 20_000  # so many operations in all, for a row
_MAX_ROWS_PER_UNIT = 1 << 22  # of one unit: the work for it stays below what a time limit could tell
Schema = Mapping[str, Type]
NamedExprs = tuple[tuple[str, Expr], ...]


@dataclass(frozen=True)
class Shape:
    """What is known of a relation before any data is read."""

    schema: Schema
    unit: tuple[Type, ...] | None  # the types of the unit's key; None if every row is a unit of its own
    max_rows_per_unit: int | None  # at most so many rows belong to one unit; None if nobody knows
    max_rows: int  # a public bound of all rows
    depth: int = 1
    nodes: int = 1  # as often as they are written out
    column_sizes: Mapping[str, int] = field(
        default_factory=dict
    )  # of columns that were computed; an engine may copy them
    work: int = 0  # of all expressions together


class JoinKind(Enum):
    """Which rows of the left side a join keeps: those with a partner, or all of them."""

    INNER = "inner"
    LEFT = "left"


class SemiJoinKind(Enum):
    """Whether a unit must have a row elsewhere, or must not."""

    SEMI = "some"
    ANTI = "none"


@dataclass(frozen=True)
class UnitKey:
    """The row's own columns name its unit: a person, or a person and a window of time."""

    unit: tuple[Expr, ...]


@dataclass(frozen=True)
class EachRow:
    """Every row is a unit of its own."""


@dataclass(frozen=True)
class ParentUnit:
    """The owner of the parent rows whose `key` equals this row's `on`; with several owners, the row is left out.

    A row with several owners belongs to each of them and goes with any of them. Left out, it depends on nobody: to
    count it for one of its owners, or for each, would let rows that somebody plants multiply another one's weight.
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
            raise TypeError("columns must be Columns")
        schema = {column.name: column.type for column in self.columns}
        _check_distinct([column.name for column in self.columns])
        match self.owner:
            case UnitKey(unit):
                _require(bool(unit) and all(part.type is not Type.REAL for part in unit), "a unit's key holds no real")
                for part in unit:
                    check_columns_exist(part, schema)
                owner: tuple[Type, ...] | None = tuple(part.type for part in unit)
            case ParentUnit(on, parent, key):
                if not isinstance(parent, Scan):
                    raise TypeError("parent must be a Scan")
                matched = on in schema and schema[on] is parent.shape.schema.get(key) is not Type.REAL
                _require(matched and parent.shape.unit is not None, "on and key must be columns of one type, not reals")
                owner = parent.shape.unit
            case EachRow():
                owner = None
            case _:
                raise TypeError("owner must be Own, Through or EachRow")
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
    """Other columns, each computed from the row."""

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
    """Each row with its partners in a public table: equal in all pairs (ours, theirs), and true in `condition`.

    Of the public rows with the same values in `equal`, the first `fanout` in the order of their values are used, so
    that a row becomes at most that many; a question that names the true number loses nothing.
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
            _require(same, "equal must pair columns of one type")
        fanout = _store_integer(self, "fanout")
        max_rows_per_unit = None if shape.max_rows_per_unit is None else shape.max_rows_per_unit * fanout
        joined = replace(shape, schema=schema, max_rows_per_unit=max_rows_per_unit, max_rows=shape.max_rows * fanout)
        _set_shape(self, joined, self.source, reads=(self.condition,))


@dataclass(frozen=True)
class JoinOnUnit:
    """Pairs of rows of the same unit; of each side, a unit's first `most` rows in the order of their values."""

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
    """The rows of units that have a row in another relation, or that have none."""

    source: "Relation"
    other: "Relation"
    kind: SemiJoinKind
    shape: Shape = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        _check_same_unit(self.source.shape, self.other.shape)
        _set_shape(self, self.source.shape, self.source, self.other)


@dataclass(frozen=True)
class PerUnit:
    """One row for each unit and combination of keys that it has."""

    source: "Relation"
    keys: NamedExprs
    values: tuple[tuple[str, UnitAggregate], ...]
    shape: Shape = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        shape = self.source.shape
        _require(shape.unit is not None, "every row is a unit of its own here: there is nothing to gather")
        schema = dict(derived_schema(self.keys, shape.schema))
        _check_distinct([check_name(name) for name, _ in (*self.keys, *self.values)])
        for name, aggregate in self.values:
            schema[name] = aggregate.type
            if aggregate.expr is not None:
                check_columns_exist(aggregate.expr, shape.schema)
            _require(
                aggregate.grid is None or aggregate.grid.max_abs_index * shape.max_rows < MAX_SUM,
                "the grid is too fine for so many rows",
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
        _require(list(left.schema.items()) == list(right.schema.items()), "the two sides must have the same columns")
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
    """Return every table that a relation reads; a table's parents are part of it."""
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
    """Give a node its shape, once: what a caller says of it does not count. `reads` are the expressions in it."""
    if not all(isinstance(source, Relation) for source in sources):
        raise TypeError("a source must be a relation")
    column_sizes = {name: size for source in sources for name, size in source.shape.column_sizes.items()}
    work = sum(source.shape.work for source in sources) + sum(
        expanded_size(expr, column_sizes) for expr in reads if expr is not None
    )
    depth = 1 + max((source.shape.depth for source in sources), default=0)
    nodes = 1 + sum(source.shape.nodes for source in sources)
    shape = replace(shape, depth=depth, nodes=nodes, work=work)
    _require(nodes <= _MAX_NODES, "the relation has too many parts: write it in fewer steps")
    _require(work <= MAX_WORK, "there is too much to compute for each row: write less")
    _require(
        (shape.max_rows_per_unit or 1) <= _MAX_ROWS_PER_UNIT,
        "one unit could become too many rows: join fewer or smaller tables",
    )
    _require(shape.max_rows < MAX_SUM, "so many rows could not be counted: lower the table's rows_max, or join less")
    _require(shape.depth <= _MAX_DEPTH, "the relation is too deeply nested: write it in fewer steps")
    object.__setattr__(node, "shape", shape)


def _store_integer(node: "Scan | JoinPublic | JoinOnUnit", name: str) -> int:
    """Keep a number as a Python integer: numpy's would wrap around in what is computed from it."""
    value = as_integer(getattr(node, name), name, minimum=1)
    object.__setattr__(node, name, value)
    return value


def _check_distinct(names: list[str]) -> None:
    """Stop if two names are one to an engine that does not tell upper case from lower."""
    _require(len({name.casefold() for name in names}) == len(names), "names must differ, also in lower case")


def check_columns_exist(expr: Expr, schema: Schema) -> None:
    """Stop unless this is an expression, and reads only columns that are there."""
    if not isinstance(expr, Column | Constant | Call):
        raise TypeError(f"expected an expression, not {type(expr).__name__}")
    for name, kind in columns_of(expr).items():
        _require(schema.get(name) is kind, f"there is no column {name!r} of type {kind.name.lower()}")


def _check_condition(condition: Expr, schema: Schema) -> None:
    _require(condition.type is Type.BOOLEAN, "a condition must be boolean")
    check_columns_exist(condition, schema)


def derived_schema(columns: NamedExprs | tuple[tuple[str, Column], ...], schema: Schema) -> Schema:
    """Check new columns against those that they are computed from, and return their types."""
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
    _require(same_unit, "private rows meet on the whole unit only, and rows that are units of their own do not meet")
