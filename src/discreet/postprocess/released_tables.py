# ruff: noqa: S608 - this module generates SQL from its own templates
"""FROM over released tables: tables, subqueries, VALUES, and their joins."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from discreet.postprocess.clauses import check_arguments
from discreet.postprocess.environment import Env
from discreet.postprocess.name_resolution import (
    NamedColumn,
    PlannedColumn,
    PlannedRelation,
    Scope,
    add_source,
    identifier_name,
    matches_name,
    merge_using,
    rename_columns,
)
from discreet.postprocess.sql_expression import ColumnOrigin, MixedOrigin, SqlExpr, SqlType, compose_expr
from discreet.postprocess.type_conversion import coerce_together
from discreet.query.syntax.source_position import quote_name, refuse

_RELEASED_TEXT_WIDTH = 100  # assumed characters of a released text, to bound the length of concatenations
_MAX_VALUES = 10_000


@dataclass(frozen=True)
class FromTable:
    """A table that FROM can name: its name in the SQL, its columns, and the number of tables it reads."""

    sql: str
    relation: PlannedRelation
    table_count: int = 1


TablesByName = Mapping[str, FromTable]


def released_table(index: int, name: str, schema: pa.Schema) -> FromTable:
    """Return a released table, named t0, t1 … in the SQL, with row numbers in hidden column h0."""
    fields = [
        PlannedColumn(field.name, _sql_type(field), ColumnOrigin(0, name, field.name, f"c{at}"), _RELEASED_TEXT_WIDTH)
        for at, field in enumerate(schema)
    ]
    return FromTable(f"t{index}", PlannedRelation("", tuple(fields), (name,)))


def _sql_type(field: pa.Field) -> SqlType:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    for check, sql_type in _SQL_TYPES:
        if check(kind):
            return sql_type
    raise TypeError(f"column {field.name!r} has type {field.type}, which is not supported on aggregated results")


_SQL_TYPES: tuple[tuple[Callable[[pa.DataType], bool], SqlType], ...] = (
    (pa.types.is_boolean, SqlType.BOOLEAN),
    (pa.types.is_integer, SqlType.INTEGER),
    (pa.types.is_floating, SqlType.REAL),
    (pa.types.is_decimal, SqlType.NUMERIC),
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), SqlType.TEXT),
    (pa.types.is_date, SqlType.DATE),
    (lambda kind: pa.types.is_timestamp(kind) and kind.tz is None, SqlType.TIMESTAMP),
)


@dataclass(frozen=True)
class FromClause:
    """Plans the sources and joins of one FROM."""

    tables: TablesByName
    plan_query: Callable[[exp.Expr], PlannedRelation]
    new_name: Callable[[exp.Expr, int], str]
    make_env: Callable[[Scope], Env]

    def plan(self, node: exp.Select) -> tuple[Scope, str]:
        """Return the scope and the SQL of a FROM."""
        begin = node.args.get("from_")
        if begin is None:
            return Scope(), ""
        check_arguments(begin, "this", "FROM")
        scope, text = self._add_source(begin.this, Scope())
        for join in node.args.get("joins") or ():
            scope, text = self._add_join(join, scope, text)
        return scope, f" FROM {text}"

    def _add_source(self, node: exp.Expr, scope: Scope) -> tuple[Scope, str]:
        """Add one source to a scope."""
        alias, tables = node.args.get("alias"), 0
        match node:
            case exp.Table() if isinstance(node.this, exp.Identifier):
                check_arguments(node, "this alias", "FROM")
                table = self._table_named(node.this)
                name: str | None = identifier_name(node.this)
                text, relation, tables = table.sql, table.relation, table.table_count
            case exp.Subquery() if isinstance(node.this, exp.Query):
                relation, name = self.plan_query(node), None
                text = f"({relation.sql})"
            case exp.Values():
                check_arguments(node, "expressions alias", "FROM")
                relation, name = self._plan_values(node), None
                text = f"({relation.sql})"
            case _:
                cause = "FROM supports only tables, subqueries and VALUES"
                raise refuse(node, "FROM", cause, "Leave out table functions, LATERAL and joins in parentheses")
        if alias is not None:
            check_arguments(alias, "this columns", "FROM")
            name = identifier_name(alias.this) if alias.args.get("this") is not None else name
            relation = rename_columns(relation, alias.columns, node)
        if name is not None and any(name == source.alias for source in scope.sources):
            raise refuse(
                node,
                "FROM",
                f"table name {quote_name(name)} specified more than once",
                "Give one of them another alias",
            )
        ref = self.new_name(node, tables)
        return add_source(scope, name, ref, relation), f"{text} AS {ref}"

    def _table_named(self, node: exp.Identifier) -> FromTable:
        for name in reversed(list(self.tables)):
            if matches_name(node, name):
                return self.tables[name]
        raise refuse(node, "FROM", f"table {quote_name(node.name)} does not exist", "Use the tables of the query")

    def _plan_values(self, node: exp.Values) -> PlannedRelation:
        rows = [expression.expressions for expression in node.expressions if isinstance(expression, exp.Tuple)]
        if len(rows) != len(node.expressions) or len({len(row) for row in rows}) != 1 or len(rows) > _MAX_VALUES:
            raise refuse(
                node,
                "VALUES",
                "the VALUES lists differ in length, or there are too many",
                "Write (…), (…) of equal length",
            )
        env = replace(self.make_env(Scope()), clause="VALUES")
        columns = [
            coerce_together([env.translate(each) for each in column], node, "VALUES")
            for column in zip(*rows, strict=True)
        ]
        texts = [
            f"({', '.join(value.sql for value in row)})" for row in zip(*(each for each, _ in columns), strict=True)
        ]
        names = ", ".join(f"c{index}" for index in range(len(columns)))
        fields = [
            PlannedColumn(f"column{place + 1}", kind, MixedOrigin(frozenset()), max(value.width for value in values))
            for place, (values, kind) in enumerate(columns)
        ]
        return PlannedRelation(f"SELECT * FROM (VALUES {', '.join(texts)}) AS v({names})", tuple(fields))

    def _add_join(self, join: exp.Expr, scope: Scope, text: str) -> tuple[Scope, str]:
        check_arguments(join, "this side kind on using", "JOIN")
        side, kind = (str(join.args.get(name) or "").upper() for name in ("side", "kind"))
        if side not in ("", "LEFT", "RIGHT", "FULL") or kind not in ("", "INNER", "OUTER", "CROSS"):
            raise refuse(join, "JOIN", f"{side} {kind} JOIN is not supported", "Use JOIN, LEFT JOIN or CROSS JOIN")
        wider, right = self._add_source(join.this, scope)
        on, using = join.args.get("on"), join.args.get("using")
        if using:
            wider, condition = self._join_using(join, scope, wider, side)
        elif on is not None:
            condition = replace(self.make_env(wider), clause="JOIN").condition(on).sql
        elif side or kind in ("INNER", "OUTER"):
            raise refuse(join, "JOIN", "the JOIN has no condition", "Add ON … or USING (…), or write CROSS JOIN")
        else:
            return wider, f"{text} CROSS JOIN {right}"
        return wider, f"{text} {side or 'INNER'} JOIN {right} ON {condition}"

    def _join_using(self, join: exp.Expr, left: Scope, wider: Scope, side: str) -> tuple[Scope, str]:
        pairs = []
        for name in join.args["using"]:
            column = exp.Column(this=name.copy())
            one = _only_column(left.find_columns(column), name)
            other = _only_column(
                [each for each in wider.columns[len(left.columns) :] if matches_name(name, each.name)], name
            )
            (first, second), _ = coerce_together([one.value, other.value], join, "JOIN")
            pairs.append((one, other, first, second))
        joined = [(one, other, _using_expr(first, second, side)) for one, other, first, second in pairs]
        tests = [compose_expr("({0} = {1})", SqlType.BOOLEAN, first, second).sql for _, _, first, second in pairs]
        return merge_using(wider, joined), " AND ".join(tests)


def _only_column(columns: list[NamedColumn], name: exp.Expr) -> NamedColumn:
    if len(columns) != 1:
        cause = (
            f"column {quote_name(name.name)} in USING does not exist on both sides"
            if not columns
            else f"column reference {quote_name(name.name)} is ambiguous"
        )
        raise refuse(name, "JOIN", cause, "Use ON with qualified column names")
    return columns[0]


def _using_expr(first: SqlExpr, second: SqlExpr, side: str) -> SqlExpr:
    """Return the merged column of USING."""
    if side == "FULL":
        return compose_expr("coalesce({0}, {1})", first.kind, first, second)
    return second if side == "RIGHT" else first
