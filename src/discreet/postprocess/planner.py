# ruff: noqa: S608 - this module generates SQL from its own templates
"""Translate a query over released tables to DuckDB, with generated names and tracked row numbers.

A SELECT without grouping keeps the row numbers of its sources in hidden columns, so that margins can be assigned after
WHERE, ORDER BY and LIMIT, and ties are ordered deterministically.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from sqlglot import exp

from discreet.postprocess.allow_list import RULES
from discreet.postprocess.clauses import (
    OutputItem,
    check_arguments,
    group_key_exprs,
    is_distinct,
    named_windows,
    order_nodes,
    order_position,
    order_terms,
    output_items,
    row_limit_of,
    sort_direction,
)
from discreet.postprocess.environment import Env
from discreet.postprocess.group_by import PlainRows, RowGroups, aggregates_in
from discreet.postprocess.name_resolution import PlannedColumn, PlannedRelation, Scope, identifier_name, rename_columns
from discreet.postprocess.released_tables import FromClause, FromTable, TablesByName
from discreet.postprocess.sql_expression import (
    ConstantOrigin,
    MixedOrigin,
    Origin,
    SqlExpr,
    SqlType,
    columns_read,
    depends_on_rows,
    mixed_expr,
)
from discreet.postprocess.type_conversion import coerce_together, null_unless_finite
from discreet.postprocess.window_functions import window_expr
from discreet.query.syntax.source_position import quote_name, refuse

_SELECT_ARGUMENTS = "with_ expressions distinct from_ joins where group having qualify windows order limit offset"
_MAX_TABLES = 100


@dataclass(frozen=True)
class QueryContext:
    """The tables and queries that a query can name, and the enclosing expression."""

    tables: TablesByName
    outer: Env | None = None
    outermost: bool = False


class Planner:
    """Translates queries; counts the generated names and the tables read."""

    def __init__(self) -> None:
        self._names = self._tables = 0

    def plan(self, node: exp.Expr, context: QueryContext) -> PlannedRelation:
        """Plan a SELECT or a set operation."""
        match node:
            case exp.Subquery() if isinstance(node.this, exp.Query):
                check_arguments(node, "this with_ alias", "FROM")
                texts, context = self._plan_with(node, context)
                return _prepend_with(texts, self.plan(node.this, context))
            case exp.Select():
                check_arguments(node, _SELECT_ARGUMENTS, "SELECT")
                texts, context = self._plan_with(node, context)
                return _prepend_with(texts, self._plan_select(node, context))
            case exp.SetOperation():
                check_arguments(node, "with_ this expression distinct order limit offset", "SELECT")
                texts, context = self._plan_with(node, context)
                return _prepend_with(texts, self._plan_set_operation(node, context))
        raise refuse(node, "FROM", "this is not a SELECT", "Write SELECT …")

    def _new_name(self) -> str:
        """Return an unused name."""
        self._names += 1
        return f"s{self._names}"

    def _new_source_name(self, node: exp.Expr, tables: int) -> str:
        """Return a name for a source that reads this many tables; DuckDB may inline WITH wherever it is used."""
        self._tables += tables
        if self._tables > _MAX_TABLES:
            cause = f"the query reads more than {_MAX_TABLES} tables, counting each use of a WITH query"
            raise refuse(node, "FROM", cause, "Use fewer tables")
        return self._new_name()

    def _plan_with(self, node: exp.Expr, context: QueryContext) -> tuple[list[str], QueryContext]:
        clause = node.args.get("with_")
        if clause is None:
            return [], context
        check_arguments(clause, "expressions", "WITH")
        texts, names = [], dict(context.tables)
        for cte in clause.expressions:
            check_arguments(cte, "this alias materialized", "WITH")
            before = self._tables
            planned = self.plan(cte.this, QueryContext(names))
            ref, alias = self._new_name(), cte.args["alias"]
            texts.append(f"{ref} AS MATERIALIZED ({planned.sql})")
            names.pop(identifier_name(alias.this), None)  # so that the new one comes last
            names[identifier_name(alias.this)] = FromTable(
                ref, rename_columns(planned, alias.columns, cte), max(1, self._tables - before)
            )
        return texts, replace(context, tables=names)

    def _environment(self, scope: Scope, context: QueryContext) -> Env:
        def column(node: exp.Column, env: Env) -> SqlExpr:
            columns = scope.find_columns(node)
            if len(columns) == 1:
                return columns[0].value
            if columns:
                raise env.refuse(
                    node,
                    f"column reference {quote_name(node.name)} is ambiguous",
                    "Qualify it with the name of its table",
                )
            if context.outer is None or isinstance(node.this, exp.Star):
                raise scope.missing_column_refusal(node, env.clause)
            outer_expr = context.outer.translate(node)
            return replace(outer_expr, origin=_untracked_origin(outer_expr.origin))

        return Env("SELECT", RULES, column, partial(self._plan_subquery, names=context.tables))

    def _plan_subquery(self, node: exp.Expr, env: Env, names: TablesByName) -> SqlExpr:
        """Plan a subquery in an expression: EXISTS (…), IN (…), or a scalar."""
        context = QueryContext(names, env)
        if isinstance(node, exp.Exists):
            return mixed_expr(f"EXISTS ({self.plan(node.this, context).sql})", SqlType.BOOLEAN)
        inner = node.args["query"] if isinstance(node, exp.In) else node
        planned, ref = self.plan(inner, context), self._new_name()
        if len(planned.fields) != 1:
            raise env.refuse(node, f"the subquery must return one column, not {len(planned.fields)}", "Select one")
        (field,) = planned.fields
        column = SqlExpr(f"{ref}.c0", field.kind, MixedOrigin(columns_read([field.origin])), field.width)
        if isinstance(node, exp.In):
            (one, other), _ = coerce_together([env.translate(node.this), column], node, env.clause)
            return mixed_expr(
                f"({one.sql} IN (SELECT {other.sql} FROM ({planned.sql}) AS {ref}))", SqlType.BOOLEAN, one, other
            )
        if not planned.is_single_row:
            cause = "the subquery may return more than one row"
            raise env.refuse(node, cause, "Aggregate it without GROUP BY, or add LIMIT 1")
        return mixed_expr(
            f"(SELECT {column.sql} FROM ({planned.sql}) AS {ref})", column.kind, column, width=column.width
        )

    def _plan_select(self, node: exp.Select, context: QueryContext) -> PlannedRelation:
        inner = partial(self.plan, context=QueryContext(context.tables))
        scope, begin = FromClause(
            context.tables, inner, self._new_source_name, partial(self._environment, context=context)
        ).plan(node)
        items = output_items(node, scope)
        rows = self._plan_rows(node, items, PlainRows(self._environment(scope, context), begin, scope))
        distinct = is_distinct(node)
        env = replace(rows.env, window=partial(window_expr, named=named_windows(node)))
        values = [
            rows.star_column(item.column, node)
            if item.column is not None
            else null_unless_finite(env.translate(item.node))
            for item in items
        ]
        order = order_terms(node, items, values, env, distinct=distinct) or rows.order
        last = _condition_sql(node, "qualify", env)
        hidden = [] if distinct else rows.row_numbers
        columns = [f"{value.sql} AS c{index}" for index, value in enumerate(values)]
        columns += [f"{sql} AS h{place}" for place, sql in enumerate(hidden)]
        word = "SELECT DISTINCT" if distinct else "SELECT"
        sql = f"{word} {', '.join(columns)}{rows.sql}" + (f" QUALIFY {last[0]}" if last else "")
        origins = [_untracked_origin(value.origin) if distinct else value.origin for value in values]
        fields = [
            PlannedColumn(item.name, value.kind, origin, value.width)
            for item, value, origin in zip(items, values, origins, strict=True)
        ]
        relation = PlannedRelation(sql, tuple(fields), () if distinct else rows.slots, is_single_row=rows.is_single_row)
        return self._order_and_limit(relation, node, order, hidden, outermost=context.outermost)

    def _plan_rows(self, node: exp.Select, items: Sequence[OutputItem], rows: PlainRows) -> PlainRows | RowGroups:
        """Return the input of the SELECT list: rows, or groups of rows."""
        rows = replace(rows, conditions=_condition_sql(node, "where", rows.env))
        group, having = node.args.get("group"), node.args.get("having")
        clauses = [node.args[name] for name in ("having", "order", "qualify") if node.args.get(name) is not None]
        clauses += [item.node for item in items if item.node is not None]
        if group is None and having is None and not any(aggregates_in(clause) for clause in clauses):
            return rows
        groups = RowGroups(self._new_name(), tuple(group_key_exprs(group, items, rows)), rows)
        return replace(groups, conditions=_condition_sql(node, "having", groups.env))

    def _plan_set_operation(self, node: exp.SetOperation, context: QueryContext) -> PlannedRelation:
        """Plan UNION, INTERSECT and EXCEPT."""
        sides = [self.plan(each, replace(context, outermost=False)) for each in (node.this, node.expression)]
        if len({len(side.fields) for side in sides}) != 1:
            raise refuse(node, "SELECT", "both sides must have the same number of columns", "Select as many on both")
        refs = [self._new_name(), self._new_name()]
        columns, fields = [], []
        for index, pair in enumerate(zip(*(side.fields for side in sides), strict=True)):
            operands = [
                SqlExpr(
                    f"{ref}.c{index}",
                    each.kind,
                    MixedOrigin(columns_read([each.origin]), depends_on_rows(each.origin)),
                    each.width,
                )
                for ref, each in zip(refs, pair, strict=True)
            ]
            values, kind = coerce_together(operands, node, "SELECT")
            columns.append(values)
            origin = MixedOrigin(
                columns_read(value.origin for value in operands), any(depends_on_rows(each.origin) for each in pair)
            )
            fields.append(PlannedColumn(pair[0].name, kind, origin, max(each.width for each in pair)))
        texts = [
            f"SELECT {', '.join(f'{values[side].sql} AS c{place}' for place, values in enumerate(columns))} "
            f"FROM ({sides[side].sql}) AS {refs[side]}"
            for side in (0, 1)
        ]
        word = f"{node.key.upper()}{'' if node.args.get('distinct') else ' ALL'}"
        relation = PlannedRelation(f"SELECT * FROM ({texts[0]} {word} {texts[1]}) AS {self._new_name()}", tuple(fields))
        order = [f"{order_position(term.this, fields)} {sort_direction(term)}" for term in order_nodes(node)]
        return self._order_and_limit(relation, node, order, [], outermost=context.outermost)

    def _order_and_limit(
        self, relation: PlannedRelation, node: exp.Expr, order: Sequence[str], hidden: Sequence[str], *, outermost: bool
    ) -> PlannedRelation:
        """Add ORDER BY where it matters: in the outermost query, before LIMIT, or if an outer query depends on it."""
        row_limit, sql = row_limit_of(node), relation.sql
        terms = [*order, *hidden] if outermost or row_limit or order else []
        sql += f" ORDER BY {', '.join(terms)}" if terms else ""
        sql += row_limit.sql
        single = relation.is_single_row or (row_limit.limit is not None and row_limit.limit <= 1)
        if order and not outermost:
            sql = f"SELECT *, row_number() OVER () AS w FROM ({sql}) AS {self._new_name()}"
        return replace(relation, sql=sql, is_single_row=single, is_ordered=bool(order) and not outermost)


def _prepend_with(texts: Sequence[str], relation: PlannedRelation) -> PlannedRelation:
    return replace(relation, sql=f"WITH {', '.join(texts)} {relation.sql}") if texts else relation


def _condition_sql(node: exp.Expr, clause: str, env: Env) -> tuple[str, ...]:
    argument = node.args.get(clause)
    return () if argument is None else (replace(env, clause=clause.upper()).condition(argument.this).sql,)


def _untracked_origin(origin: Origin) -> Origin:
    """Return the origin of a value whose row is no longer tracked."""
    return (
        origin if isinstance(origin, ConstantOrigin) else MixedOrigin(columns_read([origin]), depends_on_rows(origin))
    )
