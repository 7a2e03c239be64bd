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

from discreet.kernel.exact import whole
from discreet.kernel.expr import Call, Column, Constant, Expr, Type, check_name, columns_of, weigh
from discreet.kernel.fold import Folded

MOST = 1 << 62  # what 64 bits hold, with one to spare
_DEEPEST = 60
_MOST_NODES = 300
MOST_WORK = 20_000  # so many operations in all, for a row
_MOST_COPIES = 1 << 22  # of one unit: the work for it stays below what a time limit could tell
Schema = Mapping[str, Type]
Named = tuple[tuple[str, Expr], ...]


@dataclass(frozen=True)
class Shape:
    """What is known of a relation before any data is read."""

    schema: Schema
    unit: tuple[Type, ...] | None  # the types of the unit's key; None if every row is a unit of its own
    copies: int | None  # at most so many rows belong to one unit; None if nobody knows
    rows: int  # a public bound of all rows
    depth: int = 1
    nodes: int = 1  # as often as they are written out
    weights: Mapping[str, int] = field(default_factory=dict)  # of columns that were computed; an engine may copy them
    work: int = 0  # of all expressions together


class Keep(Enum):
    """Which rows of the left side a join keeps: those with a partner, or all of them."""

    MATCHED = "inner"
    ALL = "left"


class Has(Enum):
    """Whether a unit must have a row elsewhere, or must not."""

    SOME = "some"
    NONE = "none"


@dataclass(frozen=True)
class Own:
    """The row's own columns name its unit: a person, or a person and a window of time."""

    unit: tuple[Expr, ...]


@dataclass(frozen=True)
class EachRow:
    """Every row is a unit of its own."""


@dataclass(frozen=True)
class Through:
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
    owner: Own | EachRow | Through
    most: int
    shape: Shape = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_name(self.table)
        rows = _stored(self, "most")
        if not all(isinstance(column, Column) for column in self.columns):
            raise TypeError("columns must be Columns")
        schema = {column.name: column.type for column in self.columns}
        _check_distinct([column.name for column in self.columns])
        match self.owner:
            case Own(unit):
                _check(bool(unit) and all(part.type is not Type.REAL for part in unit), "a unit's key holds no real")
                for part in unit:
                    check_reads(part, schema)
                owner: tuple[Type, ...] | None = tuple(part.type for part in unit)
            case Through(on, parent, key):
                if not isinstance(parent, Scan):
                    raise TypeError("parent must be a Scan")
                matched = on in schema and schema[on] is parent.shape.schema.get(key) is not Type.REAL
                _check(matched and parent.shape.unit is not None, "on and key must be columns of one type, not reals")
                owner = parent.shape.unit
            case EachRow():
                owner = None
            case _:
                raise TypeError("owner must be Own, Through or EachRow")
        _set(self, Shape(schema, owner, None if owner else 1, rows))


@dataclass(frozen=True)
class Where:
    """The rows for which the condition is true."""

    source: "Relation"
    condition: Expr
    shape: Shape = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        _check_condition(self.condition, self.source.shape.schema)
        _set(self, self.source.shape, self.source, reads=(self.condition,))


@dataclass(frozen=True)
class Derive:
    """Other columns, each computed from the row."""

    source: "Relation"
    columns: Named
    shape: Shape = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        shape = self.source.shape
        schema = checked(self.columns, shape.schema)
        weights = {name: weigh(expr, shape.weights) for name, expr in self.columns}
        _set(
            self, replace(shape, schema=schema, weights=weights), self.source, reads=[expr for _, expr in self.columns]
        )


@dataclass(frozen=True)
class PublicTable:
    """A public table; `columns` are (name in the join, column of the table), `condition` is over those names."""

    table: str
    columns: tuple[tuple[str, Column], ...]
    condition: Expr | None = None

    def __post_init__(self) -> None:
        check_name(self.table)
        checked(self.columns, {column.name: column.type for _, column in self.columns})
        if self.condition is not None:
            _check_condition(self.condition, self.schema)

    @property
    def schema(self) -> Schema:
        """The columns by their names in the join."""
        return {name: column.type for name, column in self.columns}


@dataclass(frozen=True)
class JoinPublic:
    """Each row with its partners in a public table: equal in all pairs (ours, theirs), and true in `also`.

    Of the public rows with the same values in `equal`, the first `fanout` in the order of their values are used, so
    that a row becomes at most that many; a question that names the true number loses nothing.
    """

    source: "Relation"
    table: PublicTable
    equal: tuple[tuple[str, str], ...]
    also: Expr | None
    keep: Keep
    fanout: int
    shape: Shape = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        shape = self.source.shape
        schema = _together(shape.schema, self.table.schema, self.also)
        for ours, theirs in self.equal:
            same = shape.schema.get(ours) is self.table.schema.get(theirs) is not None
            _check(same, "equal must pair columns of one type")
        fanout = _stored(self, "fanout")
        copies = None if shape.copies is None else shape.copies * fanout
        found = replace(shape, schema=schema, copies=copies, rows=shape.rows * fanout)
        _set(self, found, self.source, reads=(self.also,))


@dataclass(frozen=True)
class JoinOwn:
    """Pairs of rows of the same unit; of each side, a unit's first `most` rows in the order of their values."""

    left: "Relation"
    right: "Relation"
    also: Expr | None
    keep: Keep
    most: int
    shape: Shape = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        left, right = self.left.shape, self.right.shape
        _check_same_unit(left, right)
        schema = _together(left.schema, right.schema, self.also)
        weights = {**left.weights, **right.weights}
        most = _stored(self, "most")
        copies = min(most, left.copies or most) * min(most, right.copies or most)
        found = Shape(schema, left.unit, copies, left.rows * most, weights=weights)
        _set(self, found, self.left, self.right, reads=(self.also,))


@dataclass(frozen=True)
class SemiOwn:
    """The rows of units that have a row in another relation, or that have none."""

    source: "Relation"
    other: "Relation"
    has: Has
    shape: Shape = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        _check_same_unit(self.source.shape, self.other.shape)
        _set(self, self.source.shape, self.source, self.other)


@dataclass(frozen=True)
class PerUnit:
    """One row for each unit and combination of keys that it has."""

    source: "Relation"
    keys: Named
    values: tuple[tuple[str, Folded], ...]
    shape: Shape = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        shape = self.source.shape
        _check(shape.unit is not None, "every row is a unit of its own here: there is nothing to gather")
        schema = dict(checked(self.keys, shape.schema))
        _check_distinct([check_name(name) for name, _ in (*self.keys, *self.values)])
        for name, folded in self.values:
            schema[name] = folded.type
            if folded.expr is not None:
                check_reads(folded.expr, shape.schema)
            _check(folded.grid is None or folded.grid.size * shape.rows < MOST, "the grid is too fine for so many rows")
        reads = [*(key for _, key in self.keys), *(folded.expr for _, folded in self.values)]
        copies = shape.copies if self.keys else 1
        _set(self, replace(shape, schema=schema, copies=copies, weights={}), self.source, reads=reads)


@dataclass(frozen=True)
class Union:
    """The rows of two relations with the same columns."""

    left: "Relation"
    right: "Relation"
    shape: Shape = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        left, right = self.left.shape, self.right.shape
        _check_same_unit(left, right)
        _check(list(left.schema.items()) == list(right.schema.items()), "the two sides must have the same columns")
        copies = None if left.copies is None or right.copies is None else left.copies + right.copies
        weights = {name: max(left.weights.get(name, 1), right.weights.get(name, 1)) for name in left.schema}
        _set(self, replace(left, copies=copies, rows=left.rows + right.rows, weights=weights), self.left, self.right)


Relation = Scan | Where | Derive | JoinPublic | JoinOwn | SemiOwn | PerUnit | Union


def tables_of(relation: Relation) -> tuple[Scan | PublicTable, ...]:
    """Return every table that a relation reads; a table's parents are part of it."""
    match relation:
        case Scan():
            return (relation,)
        case JoinPublic(source, table):
            return (*tables_of(source), table)
        case JoinOwn(left, right) | SemiOwn(left, right) | Union(left, right):
            return (*tables_of(left), *tables_of(right))
    return tables_of(relation.source)


def _check(fits: bool, otherwise: str) -> None:
    if not fits:
        raise ValueError(otherwise)


def _set(node: "Relation", shape: Shape, *sources: "Relation", reads: Iterable[Expr | None] = ()) -> None:
    """Give a node its shape, once: what a caller says of it does not count. `reads` are the expressions in it."""
    if not all(isinstance(source, Relation) for source in sources):
        raise TypeError("a source must be a relation")
    below = {name: weight for source in sources for name, weight in source.shape.weights.items()}
    work = sum(source.shape.work for source in sources) + sum(weigh(expr, below) for expr in reads if expr is not None)
    depth = 1 + max((source.shape.depth for source in sources), default=0)
    nodes = 1 + sum(source.shape.nodes for source in sources)
    shape = replace(shape, depth=depth, nodes=nodes, work=work)
    _check(nodes <= _MOST_NODES, "the relation has too many parts: write it in fewer steps")
    _check(work <= MOST_WORK, "there is too much to compute for each row: write less")
    _check((shape.copies or 1) <= _MOST_COPIES, "one unit could become too many rows: join fewer or smaller tables")
    _check(shape.rows < MOST, "so many rows could not be counted: lower the table's rows_max, or join less")
    _check(shape.depth <= _DEEPEST, "the relation is too deeply nested: write it in fewer steps")
    object.__setattr__(node, "shape", shape)


def _stored(node: "Scan | JoinPublic | JoinOwn", name: str) -> int:
    """Keep a number as a Python integer: numpy's would wrap around in what is computed from it."""
    value = whole(getattr(node, name), name, least=1)
    object.__setattr__(node, name, value)
    return value


def _check_distinct(names: list[str]) -> None:
    """Stop if two names are one to an engine that does not tell upper case from lower."""
    _check(len({name.casefold() for name in names}) == len(names), "names must differ, also in lower case")


def check_reads(expr: Expr, schema: Schema) -> None:
    """Stop unless this is an expression, and reads only columns that are there."""
    if not isinstance(expr, Column | Constant | Call):
        raise TypeError(f"expected an expression, not {type(expr).__name__}")
    for name, kind in columns_of(expr).items():
        _check(schema.get(name) is kind, f"there is no column {name!r} of type {kind.name.lower()}")


def _check_condition(condition: Expr, schema: Schema) -> None:
    _check(condition.type is Type.BOOLEAN, "a condition must be boolean")
    check_reads(condition, schema)


def checked(columns: Named | tuple[tuple[str, Column], ...], schema: Schema) -> Schema:
    """Check new columns against those that they are computed from, and return their types."""
    for name, expr in columns:
        check_name(name)
        check_reads(expr, schema)
    _check_distinct([name for name, _ in columns])
    return {name: expr.type for name, expr in columns}


def _together(ours: Schema, theirs: Schema, also: Expr | None) -> Schema:
    _check_distinct([*ours, *theirs])
    if also is not None:
        _check_condition(also, {**ours, **theirs})
    return {**ours, **theirs}


def _check_same_unit(left: Shape, right: Shape) -> None:
    meet = left.unit is not None and left.unit == right.unit
    _check(meet, "private rows meet on the whole unit only, and rows that are units of their own do not meet")
