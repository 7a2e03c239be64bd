"""Column names and name resolution over released tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar

from sqlglot import exp

from discreet.kernel.errors import Refused
from discreet.policy.problems import did_you_mean
from discreet.postprocess.sql_expression import Origin, SqlExpr, SqlType, shift_slots
from discreet.query.syntax.source_position import quote_name, refuse

_UNNAMED = "?column?"
_TYPE = exp.DType
_TYPE_NAMES = {
    _TYPE.BOOLEAN: "bool",
    _TYPE.SMALLINT: "int2",
    _TYPE.INT: "int4",
    _TYPE.BIGINT: "int8",
    _TYPE.DECIMAL: "numeric",
    _TYPE.FLOAT: "float4",
    _TYPE.DOUBLE: "float8",
}
_FUNCTION_NAMES = {
    exp.TimestampTrunc: "date_trunc",
    exp.VariancePop: "var_pop",
    exp.StrPosition: "position",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
}


def identifier_name(identifier: exp.Expr) -> str:
    """Return the name of an identifier, folded to lower case unless it is quoted, as in PostgreSQL."""
    return identifier.name if identifier.args.get("quoted") else identifier.name.lower()


def output_name(node: exp.Expr) -> str:
    """Return the name of an output column: as the query writes it, or else PostgreSQL's.

    >>> from sqlglot import parse_one
    >>> query = parse_one("SELECT a AS Total, t.b, COUNT(*), a + 1, CASE WHEN a THEN 1 END, 1::int", read="postgres")
    >>> [output_name(each) for each in query.selects]
    ['Total', 'b', 'count', '?column?', 'case', 'int4']
    """
    return _ranked_name(node)[0] or _UNNAMED


def make_unique(names: Sequence[str]) -> tuple[str, ...]:
    """Return distinct names, with numbers appended to repeated ones.

    >>> make_unique(["count", "count", "count_1"])
    ('count', 'count_2', 'count_1')
    """
    unique: list[str] = []
    for given in names:
        name, number = given, 0
        while name in unique or (number and name in names):
            number += 1
            name = f"{given}_{number}"
        unique.append(name)
    return tuple(unique)


def _ranked_name(node: exp.Expr | None) -> tuple[str | None, int]:  # noqa: PLR0911 - one for each kind of node
    """Return a name and its rank: 2 for columns and functions, which take precedence over 1 for types and CASE."""
    match node:
        case exp.Alias():
            return node.args["alias"].name, 2
        case exp.Column() if isinstance(node.this, exp.Identifier):
            return node.this.name, 2
        case exp.Paren() | exp.Window() | exp.Filter() | exp.WithinGroup():
            return _ranked_name(node.this)
        case exp.Cast() if "name" not in node.meta:
            inner = _ranked_name(node.this)
            return inner if inner[1] > 1 else (_type_name(node.args["to"]), 1)
        case exp.Case():
            inner = _ranked_name(node.args.get("default"))
            return inner if inner[1] > 1 else ("case", 1)
        case exp.Subquery() if isinstance(node.this, exp.Select) and node.this.expressions:
            return _ranked_name(node.this.expressions[0])
        case exp.Exists():
            return "exists", 2
        case exp.Interval():
            return "interval", 1
        case exp.Func() | exp.Binary():
            return (name := _function_name(node)), 2 if name else 0
    return None, 0


def _type_name(to: exp.Expr) -> str:
    return _TYPE_NAMES.get(to.this, to.sql("postgres").split("(")[0].lower())


def _function_name(node: exp.Func | exp.Binary) -> str | None:
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    if "name" in node.meta:
        return str(node.meta["name"])
    if isinstance(node, exp.Binary | exp.Connector):
        return None
    if isinstance(node, exp.Trim):
        return {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")).upper(), "btrim")
    return _FUNCTION_NAMES.get(type(node), node.sql_name().lower())


@dataclass(frozen=True)
class PlannedColumn:
    """A column of a planned query."""

    name: str
    kind: SqlType
    origin: Origin
    width: int = 0


@dataclass(frozen=True)
class PlannedRelation:
    """A planned query or table.

    Its columns are c0, c1 …; hidden columns h0, h1 … hold the row numbers of the tables in `slots`, and hidden column w
    numbers the rows if `is_ordered`. `is_single_row`: there is at most one row.
    """

    sql: str
    fields: tuple[PlannedColumn, ...]
    slots: tuple[str, ...] = ()
    is_ordered: bool = False
    is_single_row: bool = False


@dataclass(frozen=True)
class PlannedSource:
    """A source of FROM: its alias in the query, its name in the SQL, and the hidden columns before its own."""

    alias: str | None
    ref: str
    relation: PlannedRelation
    slot_offset: int

    def column_expr(self, index: int) -> SqlExpr:
        """Return a column of the source as an expression."""
        field = self.relation.fields[index]
        return SqlExpr(f"{self.ref}.c{index}", field.kind, shift_slots(field.origin, self.slot_offset), field.width)


@dataclass(frozen=True)
class NamedColumn:
    """A column that the query can name; `from_using` columns are unqualified."""

    name: str
    value: SqlExpr
    source: str | None
    from_using: bool = False


@dataclass(frozen=True)
class Scope:
    """The columns of FROM, in the order of *; `behind_using` are those merged by USING."""

    sources: tuple[PlannedSource, ...] = ()
    columns: tuple[NamedColumn, ...] = ()
    behind_using: tuple[NamedColumn, ...] = ()

    @property
    def slots(self) -> tuple[str, ...]:
        """The tables that have row numbers."""
        return tuple(table for source in self.sources for table in source.relation.slots)

    @property
    def row_numbers(self) -> list[str]:
        """The SQL of the row numbers."""
        return [f"{source.ref}.h{index}" for source in self.sources for index in range(len(source.relation.slots))]

    def find_columns(self, node: exp.Column) -> list[NamedColumn]:
        """Return the columns that match a name."""
        table, name = node.args.get("table"), node.this.name.lower()
        candidates = list(self._by_name.get(name, ()))
        if table is not None:
            candidates = [
                named
                for named in [*candidates, *self.behind_using]
                if named.source is not None and matches_name(table, named.source)
            ]
        return matching(node.this, candidates)

    @cached_property
    def _by_name(self) -> dict[str, list[NamedColumn]]:
        by_name: dict[str, list[NamedColumn]] = {}
        for named in self.columns:
            by_name.setdefault(named.name.lower(), []).append(named)
        return by_name

    def expand_star(self, node: exp.Expr, clause: str) -> list[NamedColumn]:
        """Return the columns of * or source.*."""
        table = node.args.get("table")
        if table is None:
            return list(self.columns)
        aliases = [
            source.alias for source in self.sources if source.alias is not None and matches_name(table, source.alias)
        ]
        if not aliases:
            raise refuse(
                node,
                clause,
                f"missing FROM-clause entry for table {quote_name(table.name)}",
                "Use the names or aliases of FROM",
            )
        inside = [named for named in (*self.columns, *self.behind_using) if named.source == aliases[0]]
        by_sql = {named.value.sql: named for named in inside}
        source = next(each for each in self.sources if each.alias == aliases[0])
        return [by_sql[source.column_expr(index).sql] for index in range(len(source.relation.fields))]

    def missing_column_refusal(self, node: exp.Column, clause: str) -> Refused:
        """Return the refusal of an unknown column."""
        table = node.args.get("table")
        if table is not None and not any(matches_name(table, source.alias or "") for source in self.sources):
            return refuse(
                node,
                clause,
                f"missing FROM-clause entry for table {quote_name(table.name)}",
                "Use the names or aliases of FROM",
            )
        close = did_you_mean(node.name, [named.name for named in self.columns])
        hint = "Use the columns of FROM" if close == "." else close.removeprefix("; ").capitalize()
        return refuse(node, clause, f"column {quote_name(node.name)} does not exist", hint)


def matches_name(identifier: exp.Expr, name: str) -> bool:
    """Return whether an identifier matches a name, ignoring case unless it is quoted.

    Names are kept as they are written, and PostgreSQL folds those without quotes, so "total" also matches Total.

    >>> [matches_name(exp.to_identifier(text, quoted=True), "Total") for text in ("Total", "total", "TOTAL")]
    [True, True, False]
    """
    if identifier.args.get("quoted"):
        return identifier.name in (name, name.lower())
    return identifier.name.lower() == name.lower()


class HasName(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str:
        """The name."""


Named = TypeVar("Named", bound=HasName)


def matching(identifier: exp.Expr, candidates: Sequence[Named]) -> list[Named]:
    """Return the candidates that an identifier matches; if it is quoted, those with the same spelling first of all."""
    matches = [each for each in candidates if matches_name(identifier, each.name)]
    same = [each for each in matches if identifier.args.get("quoted") and each.name == identifier.name]
    return same or matches


def add_source(scope: Scope, alias: str | None, ref: str, relation: PlannedRelation) -> Scope:
    """Return a scope with one more source."""
    source = PlannedSource(alias, ref, relation, len(scope.slots))
    columns = tuple(
        NamedColumn(field.name, source.column_expr(index), alias) for index, field in enumerate(relation.fields)
    )
    return Scope((*scope.sources, source), (*scope.columns, *columns), scope.behind_using)


def merge_using(scope: Scope, joined: Sequence[tuple[NamedColumn, NamedColumn, SqlExpr]]) -> Scope:
    """Return a scope in which the pairs of USING are merged."""
    replaced = [named for left, right, _ in joined for named in (left, right)]
    fronts = tuple(NamedColumn(left.name, value, None, from_using=True) for left, _, value in joined)
    others = tuple(named for named in scope.columns if named not in replaced)
    behind = tuple(named for named in replaced if not named.from_using)
    return Scope(scope.sources, (*fronts, *others), (*scope.behind_using, *behind))


def rename_columns(relation: PlannedRelation, columns: Sequence[exp.Expr], node: exp.Expr) -> PlannedRelation:
    """Return a relation with the column names of AS t(a, b)."""
    if len(columns) > len(relation.fields):
        raise refuse(
            node,
            "FROM",
            f"the table has {len(relation.fields)} columns, but {len(columns)} names were given",
            "Give as many names, or fewer",
        )
    names = [column.name for column in columns]
    fields = [
        PlannedColumn(names[index] if index < len(names) else field.name, field.kind, field.origin, field.width)
        for index, field in enumerate(relation.fields)
    ]
    return PlannedRelation(relation.sql, tuple(fields), relation.slots, relation.is_ordered, relation.is_single_row)
