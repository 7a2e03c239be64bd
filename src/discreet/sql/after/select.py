# ruff: noqa: S608 - to write SQL is what this module is for; every part of it is our own
"""A query over released tables, written anew for DuckDB: every name is ours, and every row keeps its number.

A plain SELECT carries the row numbers of its sources along in hidden columns, so that margins find their rows again
after WHERE, ORDER BY and LIMIT, and so that equal rows always come in the same order.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from sqlglot import exp

from discreet.sql.after.aggregates import own_aggregates
from discreet.sql.after.casts import finite, unified
from discreet.sql.after.clauses import check_arguments, is_distinct, named_windows, ordering, slice_of, terms_of
from discreet.sql.after.env import Env
from discreet.sql.after.functions import RULES
from discreet.sql.after.groups import Groups, Plain
from discreet.sql.after.lists import Item, items_of, keys_of, order_of, place_of
from discreet.sql.after.names import spelled
from discreet.sql.after.scope import Field, Relation, Scope, renamed
from discreet.sql.after.tables import From, Names, Table
from discreet.sql.after.values import Constant, Kind, Mixed, Origin, Value, counts, mixed, reads
from discreet.sql.after.windows import window
from discreet.sql.places import quoted, refuse

_CLAUSES = "with_ expressions distinct from_ joins where group having qualify windows order limit offset"
_MOST_TABLES = 100


@dataclass(frozen=True)
class Context:
    """Where a query stands: the tables and queries that it can name, and the expression around it."""

    names: Names
    outer: Env | None = None
    outermost: bool = False


class Planner:
    """Writes queries anew; its state is how many names are taken, and how many tables are read."""

    def __init__(self) -> None:
        self._names = self._tables = 0

    def query(self, node: exp.Expr, context: Context) -> Relation:
        """Plan a SELECT or a set operation."""
        match node:
            case exp.Subquery() if isinstance(node.this, exp.Query):
                check_arguments(node, "this with_ alias", "FROM")
                texts, context = self._with(node, context)
                return _after(texts, self.query(node.this, context))
            case exp.Select():
                check_arguments(node, _CLAUSES, "SELECT")
                texts, context = self._with(node, context)
                return _after(texts, self._select(node, context))
            case exp.SetOperation():
                check_arguments(node, "with_ this expression distinct order limit offset", "SELECT")
                texts, context = self._with(node, context)
                return _after(texts, self._combined(node, context))
        raise refuse(node, "FROM", "this is not a SELECT", "Write SELECT …")

    def _ref(self) -> str:
        """Return a name that nothing has yet."""
        self._names += 1
        return f"s{self._names}"

    def _source(self, node: exp.Expr, tables: int) -> str:
        """Return a name for a source that reads so many tables; the engine may write out WITH wherever it is used."""
        self._tables += tables
        if self._tables > _MOST_TABLES:
            cause = f"the query reads more than {_MOST_TABLES} tables, with what WITH names written out"
            raise refuse(node, "FROM", cause, "Use fewer sources")
        return self._ref()

    def _with(self, node: exp.Expr, context: Context) -> tuple[list[str], Context]:
        clause = node.args.get("with_")
        if clause is None:
            return [], context
        check_arguments(clause, "expressions", "WITH")
        texts, names = [], dict(context.names)
        for each in clause.expressions:
            check_arguments(each, "this alias materialized", "WITH")
            before = self._tables
            found = self.query(each.this, Context(names))
            ref, alias = self._ref(), each.args["alias"]
            texts.append(f"{ref} AS MATERIALIZED ({found.sql})")
            names.pop(spelled(alias.this), None)  # the last of a name is found first
            names[spelled(alias.this)] = Table(ref, renamed(found, alias.columns, each), max(1, self._tables - before))
        return texts, replace(context, names=names)

    def _env(self, scope: Scope, context: Context) -> Env:
        def column(node: exp.Column, env: Env) -> Value:
            found = scope.find(node)
            if len(found) == 1:
                return found[0].value
            if found:
                raise env.refuse(node, f"{quoted(node.name)} is ambiguous", "Write the name of its table before it")
            if context.outer is None or isinstance(node.this, exp.Star):
                raise scope.missing(node, env.clause)
            outside = context.outer.value(node)
            return replace(outside, origin=_untracked(outside.origin))

        return Env("SELECT", RULES, column, partial(self._inner, names=context.names))

    def _inner(self, node: exp.Expr, env: Env, names: Names) -> Value:
        """Plan a query inside an expression: EXISTS (…), IN (…), or one value."""
        context = Context(names, env)
        if isinstance(node, exp.Exists):
            return mixed(f"EXISTS ({self.query(node.this, context).sql})", Kind.BOOLEAN)
        inner = node.args["query"] if isinstance(node, exp.In) else node
        found, ref = self.query(inner, context), self._ref()
        if len(found.fields) != 1:
            raise env.refuse(node, f"the inner query has {len(found.fields)} columns", "Select one")
        (given,) = found.fields
        part = Value(f"{ref}.c0", given.kind, Mixed(reads([given.origin])), given.width)
        if isinstance(node, exp.In):
            (one, other), _ = unified([env.value(node.this), part], node, env.clause)
            return mixed(f"({one.sql} IN (SELECT {other.sql} FROM ({found.sql}) AS {ref}))", Kind.BOOLEAN, one, other)
        if not found.single:
            cause = "the inner query may give more than one row"
            raise env.refuse(node, cause, "Aggregate it without GROUP BY, or add LIMIT 1")
        return mixed(f"(SELECT {part.sql} FROM ({found.sql}) AS {ref})", part.kind, part, width=part.width)

    def _select(self, node: exp.Select, context: Context) -> Relation:
        inner = partial(self.query, context=Context(context.names))
        scope, begin = From(context.names, inner, self._source, partial(self._env, context=context)).read(node)
        items = items_of(node, scope)
        rows = self._rows(node, items, Plain(self._env(scope, context), begin, scope))
        distinct = is_distinct(node)
        env = replace(rows.env, window=partial(window, named=named_windows(node)))
        values = [
            rows.starred(item.column, node) if item.column is not None else finite(env.value(item.node))
            for item in items
        ]
        order = order_of(node, items, values, env, distinct=distinct) or rows.order
        last = _tested(node, "qualify", env)
        hidden = [] if distinct else rows.hidden
        columns = [f"{value.sql} AS c{place}" for place, value in enumerate(values)]
        columns += [f"{sql} AS h{place}" for place, sql in enumerate(hidden)]
        word = "SELECT DISTINCT" if distinct else "SELECT"
        sql = f"{word} {', '.join(columns)}{rows.sql}" + (f" QUALIFY {last[0]}" if last else "")
        origins = [_untracked(value.origin) if distinct else value.origin for value in values]
        fields = [
            Field(item.name, value.kind, origin, value.width)
            for item, value, origin in zip(items, values, origins, strict=True)
        ]
        relation = Relation(sql, tuple(fields), () if distinct else rows.slots, single=rows.single)
        return self._cut(relation, node, order, hidden, outermost=context.outermost)

    def _rows(self, node: exp.Select, items: Sequence[Item], rows: Plain) -> Plain | Groups:
        """Return what a SELECT list is computed from: the rows that meet WHERE, or groups of them."""
        rows = replace(rows, tests=_tested(node, "where", rows.env))
        group, having = node.args.get("group"), node.args.get("having")
        places = [node.args[name] for name in ("having", "order", "qualify") if node.args.get(name) is not None]
        places += [item.node for item in items if item.node is not None]
        if group is None and having is None and not any(own_aggregates(each) for each in places):
            return rows
        groups = Groups(self._ref(), tuple(keys_of(group, items, rows)), rows)
        return replace(groups, tests=_tested(node, "having", groups.env))

    def _combined(self, node: exp.SetOperation, context: Context) -> Relation:
        """Plan UNION, INTERSECT and EXCEPT."""
        sides = [self.query(each, replace(context, outermost=False)) for each in (node.this, node.expression)]
        if len({len(side.fields) for side in sides}) != 1:
            raise refuse(node, "SELECT", "the two sides have different numbers of columns", "Select as many on both")
        refs = [self._ref(), self._ref()]
        columns, fields = [], []
        for place, pair in enumerate(zip(*(side.fields for side in sides), strict=True)):
            given = [
                Value(f"{ref}.c{place}", each.kind, Mixed(reads([each.origin]), counts(each.origin)), each.width)
                for ref, each in zip(refs, pair, strict=True)
            ]
            values, kind = unified(given, node, "SELECT")
            columns.append(values)
            origin = Mixed(reads(value.origin for value in given), any(counts(each.origin) for each in pair))
            fields.append(Field(pair[0].name, kind, origin, max(each.width for each in pair)))
        texts = [
            f"SELECT {', '.join(f'{values[side].sql} AS c{place}' for place, values in enumerate(columns))} "
            f"FROM ({sides[side].sql}) AS {refs[side]}"
            for side in (0, 1)
        ]
        word = f"{node.key.upper()}{'' if node.args.get('distinct') else ' ALL'}"
        relation = Relation(f"SELECT * FROM ({texts[0]} {word} {texts[1]}) AS {self._ref()}", tuple(fields))
        order = [f"{place_of(each.this, fields)} {ordering(each)}" for each in terms_of(node)]
        return self._cut(relation, node, order, [], outermost=context.outermost)

    def _cut(
        self, relation: Relation, node: exp.Expr, order: Sequence[str], hidden: Sequence[str], *, outermost: bool
    ) -> Relation:
        """Put rows in order where that can be seen: in the answer, where LIMIT cuts, and in a query around this one."""
        part, sql = slice_of(node), relation.sql
        terms = [*order, *hidden] if outermost or part or order else []
        sql += f" ORDER BY {', '.join(terms)}" if terms else ""
        sql += part.sql
        single = relation.single or (part.limit is not None and part.limit <= 1)
        if order and not outermost:
            sql = f"SELECT *, row_number() OVER () AS w FROM ({sql}) AS {self._ref()}"
        return replace(relation, sql=sql, single=single, ordered=bool(order) and not outermost)


def _after(texts: Sequence[str], relation: Relation) -> Relation:
    return replace(relation, sql=f"WITH {', '.join(texts)} {relation.sql}") if texts else relation


def _tested(node: exp.Expr, clause: str, env: Env) -> tuple[str, ...]:
    given = node.args.get(clause)
    return () if given is None else (replace(env, clause=clause.upper()).condition(given.this).sql,)


def _untracked(origin: Origin) -> Origin:
    """Return the origin of a value whose row is no longer known."""
    return origin if isinstance(origin, Constant) else Mixed(reads([origin]), counts(origin))
