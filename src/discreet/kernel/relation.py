"""The ownership algebra: every row belongs to exactly one unit and depends only on that unit's rows and public tables.

A unit is a tuple of key values, the same in every table. A relation *preserves ownership* if removing a unit's rows
from the private tables removes this unit's rows from the relation and changes no other row, and if a unit has at most
`shape.max_rows_per_unit` rows in it. A node validates itself when it is created, and none can break the property: no
node joins rows of two units, numbers or sorts rows across units, or limits a relation to some rows of all units.
"""

from dataclasses import dataclass, field, replace
from enum import Enum

from discreet.kernel.errors import require
from discreet.kernel.expr import (
    Column,
    Expr,
    NamedExprs,
    Schema,
    Type,
    UnitAggregate,
    check_columns_exist,
    check_condition,
    check_name,
    derived_schema,
    schema_of,
)
from discreet.kernel.numbers import check_type, store_integer

MAX_SUM = 1 << 62  # fits in 64 bits, with one to spare
_MAX_ROWS_PER_UNIT = 1 << 22  # so that the work for one unit cannot be detected by a time limit
_MAX_TABLES = 200  # each as often as it is read: WITH queries that read another one twice would grow for ever


@dataclass(frozen=True)
class Shape:
    """Public properties of a relation."""

    schema: Schema
    unit: tuple[Type, ...] | None  # types of the unit's key; None if every row is its own unit
    max_rows_per_unit: int | None  # None if unbounded
    max_rows: int  # public bound on the number of rows
    tables: tuple["Scan | PublicTable", ...]  # each as often as it is read; parents are part of their Scan

    def __post_init__(self) -> None:
        require(
            (self.max_rows_per_unit or 1) <= _MAX_ROWS_PER_UNIT,
            "joins could give one unit too many rows. Join fewer or smaller tables.",
        )
        require(
            self.max_rows < MAX_SUM,
            "the number of rows could exceed 64 bits. Lower rows_max of the table, or join fewer tables.",
        )
        require(len(self.tables) <= _MAX_TABLES, "the query reads too many tables. Simplify it.")


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

    Counting such a row for one owner, or for each, would let one unit's rows multiply the contribution of another.
    """

    on: str
    parent: "Scan"
    key: str


@dataclass(frozen=True)
class Scan:
    """The rows of a private table that have an owner.

    Claim: preserves ownership.
    Proof: the owner of a row is computed from the row (UnitKey), is the row itself (EachRow), or is the only owner of
        the parent rows that it refers to (ParentUnit). Neighbours differ by all rows that a unit owns, alone or with
        others; so a row with several owners, which is dropped, never becomes a row of one of them. A unit that is a
        row has one row; any other may have any number (None).
    Needs: _unit_types, UnitKey, EachRow, ParentUnit, check_columns_exist, Call; `max_rows` is public.
    Checked by: test_each_node_preserves_ownership, test_an_invalid_owner_is_not_treated_as_row_level,
        test_each_row_that_is_a_unit_depends_on_itself_alone
    """

    table: str
    columns: tuple[Column, ...]
    owner: UnitKey | EachRow | ParentUnit
    max_rows: int
    shape: Shape = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_name(self.table)
        schema = schema_of((check_type(Column, column, "columns").name, column.type) for column in self.columns)
        unit = _unit_types(self.owner, schema)
        vars(self)["shape"] = Shape(schema, unit, None if unit else 1, store_integer(self, "max_rows"), (self,))


def _unit_types(owner: UnitKey | EachRow | ParentUnit, schema: Schema) -> tuple[Type, ...] | None:
    """Return the types of the unit's key; an error unless the owner of each row of this schema is well defined."""
    match owner:
        case UnitKey(unit):
            types = tuple(check_columns_exist(part, schema) for part in unit)
            require(bool(types) and Type.REAL not in types, "a unit key must have columns, and none of type real")
            return types
        case ParentUnit(on, Scan(shape=parent), key):
            same_type = on in schema and schema[on] is parent.schema.get(key) is not Type.REAL
            require(same_type and parent.unit is not None, "on and key must be columns of the same type, not real")
            return parent.unit
        case EachRow():
            return None
    raise TypeError("owner must be a UnitKey, ParentUnit or EachRow, and a parent must be a Scan")


@dataclass(frozen=True)
class Where:
    """The rows for which the condition is true.

    Claim: preserves ownership.
    Proof: whether a row stays depends on that row alone, which depends on its unit's rows; no row is added.
    Needs: check_condition, Call.
    Checked by: test_each_node_preserves_ownership
    """

    source: "Relation"
    condition: Expr
    shape: Shape = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        shape = vars(self)["shape"] = _shape_of(self.source)
        check_condition(self.condition, shape.schema)


@dataclass(frozen=True)
class Derive:
    """New columns, each computed from the row.

    Claim: preserves ownership.
    Proof: each row becomes one row of the same unit, whose values are functions of that row alone.
    Needs: derived_schema, Call.
    Checked by: test_each_node_preserves_ownership
    """

    source: "Relation"
    columns: NamedExprs
    shape: Shape = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        shape = _shape_of(self.source)
        vars(self)["shape"] = replace(shape, schema=derived_schema(self.columns, shape.schema))


@dataclass(frozen=True)
class PublicTable:
    """A public table; `columns` are (name in the join, column of the table), `condition` is over those names.

    Claim: its rows depend on no unit.
    Proof: they are the rows of one table, with columns and a condition over this table's columns. Before a release, it
        is checked that the owner declared this table and these columns public.
    Needs: check_condition, Call, Catalog.check.
    Checked by: test_a_hostile_reader_cannot_choose_who_is_protected, test_each_node_preserves_ownership
    """

    table: str
    columns: tuple[tuple[str, Column], ...]
    condition: Expr | None = None

    def __post_init__(self) -> None:
        check_name(self.table)
        check_condition(self.condition, self.schema)

    @property
    def schema(self) -> Schema:
        """The columns by their names in the join."""
        return schema_of((name, check_type(Column, column, "columns").type) for name, column in self.columns)


@dataclass(frozen=True)
class JoinPublic:
    """A join with a public table: all pairs (ours, theirs) in `equal` are equal, and `condition` is true.

    Of the public rows with the same values in `equal`, the first `fanout` in the order of their values are used.

    Claim: preserves ownership.
    Proof: a row becomes the pairs of it with at most `fanout` public rows, or one row without a partner, all of its
        unit; which ones depends on the row and on the public table. So `max_rows_per_unit` is multiplied by `fanout`.
    Needs: PublicTable, store_integer, check_condition, Call.
    Checked by: test_each_node_preserves_ownership
    """

    source: "Relation"
    table: PublicTable
    equal: tuple[tuple[str, str], ...]
    condition: Expr | None
    kind: JoinKind
    fanout: int
    shape: Shape = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        shape, public = _shape_of(self.source), check_type(PublicTable, self.table, "table").schema
        schema = check_condition(self.condition, schema_of((*shape.schema.items(), *public.items())))
        require(
            all(shape.schema.get(ours) is public.get(theirs) is not None for ours, theirs in self.equal),
            "equal must pair columns of the same type",
        )
        fanout, tables = store_integer(self, "fanout"), (*shape.tables, self.table)
        per_unit = shape.max_rows_per_unit and shape.max_rows_per_unit * fanout
        vars(self)["shape"] = Shape(schema, shape.unit, per_unit, shape.max_rows * fanout, tables)


@dataclass(frozen=True)
class JoinOnUnit:
    """A join of rows of the same unit; of each side, a unit's first `max_rows_per_unit` rows in the order of values.

    Claim: preserves ownership.
    Proof: a row is a pair of rows of one unit, or a row of the left side without a partner, and belongs to this unit.
        Which rows of a side come first depends on this unit's rows. Of two sides with at most a >= 1 and b >= 1 rows
        of the unit come at most a·b pairs and rows without a partner.
    Needs: _shapes_of_same_unit, store_integer, check_condition, Call.
    Checked by: test_each_node_preserves_ownership, test_only_rows_of_the_same_kind_of_unit_are_joined
    """

    left: "Relation"
    right: "Relation"
    condition: Expr | None
    kind: JoinKind
    max_rows_per_unit: int
    shape: Shape = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        left, right = _shapes_of_same_unit(self.left, self.right)
        schema = check_condition(self.condition, schema_of((*left.schema.items(), *right.schema.items())))
        most, tables = store_integer(self, "max_rows_per_unit"), left.tables + right.tables
        per_unit = min(most, left.max_rows_per_unit or most) * min(most, right.max_rows_per_unit or most)
        vars(self)["shape"] = Shape(schema, left.unit, per_unit, left.max_rows * most, tables)


@dataclass(frozen=True)
class SemiJoinOnUnit:
    """The rows of units that have, or do not have, a row in another relation.

    Claim: preserves ownership.
    Proof: whether a unit's rows stay depends on whether this unit has rows in `other`, and these are its own.
    Needs: _shapes_of_same_unit.
    Checked by: test_each_node_preserves_ownership, test_only_rows_of_the_same_kind_of_unit_are_joined
    """

    source: "Relation"
    other: "Relation"
    kind: SemiJoinKind
    shape: Shape = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        shape, other = _shapes_of_same_unit(self.source, self.other)
        vars(self)["shape"] = replace(shape, tables=shape.tables + other.tables)


@dataclass(frozen=True)
class PerUnit:
    """One row for each unit and combination of its keys.

    Claim: preserves ownership.
    Proof: a row aggregates rows of one unit, and belongs to it. Each has at least one of its rows, so there are no more
        of them than before; without keys there is one. No aggregate exceeds 64 bits: those of a grid by `max_rows`.
    Needs: UnitAggregate, check_columns_exist, derived_schema, Call, Grid.max_abs_index.
    Checked by: test_each_node_preserves_ownership, test_a_grid_too_fine_for_so_many_rows_is_refused
    """

    source: "Relation"
    keys: NamedExprs
    values: tuple[tuple[str, UnitAggregate], ...]
    shape: Shape = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        shape = _shape_of(self.source)
        require(shape.unit is not None, "rows cannot be aggregated per unit, because every row is its own unit")
        for _, aggregate in self.values:
            if (expr := check_type(UnitAggregate, aggregate, "values").expr) is not None:
                check_columns_exist(expr, shape.schema)
            steps = aggregate.grid.max_abs_index if aggregate.grid else 0
            require(steps * shape.max_rows < MAX_SUM, "the step is too small for this number of rows")
        keys = derived_schema(self.keys, shape.schema).items()
        schema = schema_of((*keys, *((name, aggregate.type) for name, aggregate in self.values)))
        per_unit = shape.max_rows_per_unit if self.keys else 1
        vars(self)["shape"] = replace(shape, schema=schema, max_rows_per_unit=per_unit)


@dataclass(frozen=True)
class NumberRows:
    """The rows with their numbers within their unit and `keys`, as column `name`; only up to number `last`, if given.

    They are numbered in an order that names all columns, each perhaps descending; NULL comes last.

    Claim: preserves ownership.
    Proof: the number of a row, and whether it stays, depends on its unit's rows. Rows that tie are equal in all
        columns, a zero's sign apart, so it does not matter which comes first. No row becomes several; without keys a
        unit has one row for each number, so at most `last`.
    Needs: check_columns_exist, store_integer, schema_of, Call.
    Checked by: test_each_node_preserves_ownership, test_rows_are_numbered_within_a_unit_only,
        test_rows_are_numbered_in_an_order_of_all_columns
    """

    source: "Relation"
    name: str
    keys: tuple[Expr, ...]
    order: tuple[tuple[Expr, bool], ...]  # expressions, and whether they are descending
    last: int | None = None
    shape: Shape = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        shape = _shape_of(self.source)
        require(shape.unit is not None, "rows cannot be numbered, because every row is its own unit")
        for expr in (*self.keys, *dict(self.order)):
            check_columns_exist(expr, shape.schema)
        require({Column(*each) for each in shape.schema.items()} <= {*dict(self.order)}, "order must name all columns")
        last = None if self.last is None else store_integer(self, "last")
        vars(self)["shape"] = replace(
            shape,
            schema=schema_of((*shape.schema.items(), (self.name, Type.INTEGER))),
            max_rows_per_unit=min(last, shape.max_rows_per_unit or last)
            if last and not self.keys
            else shape.max_rows_per_unit,
        )


@dataclass(frozen=True)
class Union:
    """The rows of two relations with the same columns.

    Claim: preserves ownership.
    Proof: each row is a row of one side and keeps its unit; a unit has at most the sum of its rows on both sides.
    Needs: _shapes_of_same_unit.
    Checked by: test_each_node_preserves_ownership, test_only_rows_of_the_same_kind_of_unit_are_joined
    """

    left: "Relation"
    right: "Relation"
    shape: Shape = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        left, right = _shapes_of_same_unit(self.left, self.right)
        require([*left.schema.items()] == [*right.schema.items()], "both sides of a union must have the same columns")
        one, other = left.max_rows_per_unit, right.max_rows_per_unit
        per_unit = one + other if one and other else None
        rows, tables = left.max_rows + right.max_rows, left.tables + right.tables
        vars(self)["shape"] = Shape(left.schema, left.unit, per_unit, rows, tables)


Relation = Scan | Where | Derive | JoinPublic | JoinOnUnit | SemiJoinOnUnit | PerUnit | NumberRows | Union


def _shape_of(source: "Relation") -> Shape:
    """Return the shape of a source, which must be a relation: what only has a shape could be anything."""
    if not isinstance(source, Relation):
        raise TypeError("a source must be a relation")
    return source.shape


def _shapes_of_same_unit(left: "Relation", right: "Relation") -> tuple[Shape, Shape]:
    """Return both shapes; ValueError unless their keys have the same types: equal keys are the same unit."""
    one, other = _shape_of(left), _shape_of(right)
    require(
        one.unit is not None and one.unit == other.unit,
        "private tables can only be joined on the privacy unit, and not if every row is its own unit",
    )
    return one, other
