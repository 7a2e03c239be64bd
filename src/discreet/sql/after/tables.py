# ruff: noqa: S608 - to write SQL is what this module is for; every part of it is our own
"""FROM above a release: released and public tables, inner queries, lists of values, and their joins."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from discreet.sql.after.casts import unified
from discreet.sql.after.clauses import check_arguments
from discreet.sql.after.env import Env
from discreet.sql.after.names import spelled
from discreet.sql.after.scope import Field, Named, Relation, Scope, merged, renamed, same, with_source
from discreet.sql.after.values import Carried, Kind, Mixed, Value, made
from discreet.sql.places import quoted, refuse

_LETTERS = 100  # how long a released text is taken to be, when texts are joined to longer ones
_MOST_VALUES = 10_000


@dataclass(frozen=True)
class Table:
    """Something that FROM can name: its name in the SQL, its columns, and how many tables it reads."""

    sql: str
    relation: Relation
    tables: int = 1


Names = Mapping[str, Table]


def stored_table(place: int, name: str, schema: pa.Schema) -> Table:
    """Return a released table, which the SQL calls t0, t1 …; its hidden column h0 numbers the rows."""
    fields = [
        Field(field.name, _kind(field), Carried(0, name, field.name, f"c{at}"), _LETTERS)
        for at, field in enumerate(schema)
    ]
    return Table(f"t{place}", Relation("", tuple(fields), (name,)))


def _kind(field: pa.Field) -> Kind:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    for check, found in _KINDS:
        if check(kind):
            return found
    raise TypeError(f"column {field.name!r} has type {field.type}, which cannot be computed with above a release")


_KINDS: tuple[tuple[Callable[[pa.DataType], bool], Kind], ...] = (
    (pa.types.is_boolean, Kind.BOOLEAN),
    (pa.types.is_integer, Kind.INTEGER),
    (pa.types.is_floating, Kind.REAL),
    (pa.types.is_decimal, Kind.NUMERIC),
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), Kind.TEXT),
    (pa.types.is_date, Kind.DATE),
    (lambda kind: pa.types.is_timestamp(kind) and kind.tz is None, Kind.TIMESTAMP),
)


@dataclass(frozen=True)
class From:
    """How the sources of one FROM are read: by name, as inner queries, with conditions between them."""

    names: Names
    query: Callable[[exp.Expr], Relation]
    ref: Callable[[exp.Expr, int], str]
    env: Callable[[Scope], Env]

    def read(self, node: exp.Select) -> tuple[Scope, str]:
        """Return the scope of a FROM, and its SQL."""
        begin = node.args.get("from_")
        if begin is None:
            return Scope(), ""
        check_arguments(begin, "this", "FROM")
        scope, text = self._source(begin.this, Scope())
        for join in node.args.get("joins") or ():
            scope, text = self._join(join, scope, text)
        return scope, f" FROM {text}"

    def _source(self, node: exp.Expr, scope: Scope) -> tuple[Scope, str]:
        """Add one source to a scope."""
        alias, tables = node.args.get("alias"), 0
        match node:
            case exp.Table() if isinstance(node.this, exp.Identifier):
                check_arguments(node, "this alias", "FROM")
                table = self._named(node.this)
                name: str | None = spelled(node.this)
                text, relation, tables = table.sql, table.relation, table.tables
            case exp.Subquery() if isinstance(node.this, exp.Query):
                relation, name = self.query(node), None
                text = f"({relation.sql})"
            case exp.Values():
                check_arguments(node, "expressions alias", "FROM")
                relation, name = self._values(node), None
                text = f"({relation.sql})"
            case _:
                cause = "only tables, inner queries and VALUES can stand here"
                raise refuse(node, "FROM", cause, "Leave out table functions, LATERAL and joins in parentheses")
        if alias is not None:
            check_arguments(alias, "this columns", "FROM")
            name = spelled(alias.this) if alias.args.get("this") is not None else name
            relation = renamed(relation, alias.columns, node)
        if name is not None and any(name == source.alias for source in scope.sources):
            raise refuse(node, "FROM", f"two sources are called {quoted(name)}", "Give one of them another alias")
        ref = self.ref(node, tables)
        return with_source(scope, name, ref, relation), f"{text} AS {ref}"

    def _named(self, node: exp.Identifier) -> Table:
        for name in reversed(list(self.names)):
            if same(node, name):
                return self.names[name]
        raise refuse(node, "FROM", f"there is no table {quoted(node.name)} here", "Use the tables of the query")

    def _values(self, node: exp.Values) -> Relation:
        rows = [each.expressions for each in node.expressions if isinstance(each, exp.Tuple)]
        if len(rows) != len(node.expressions) or len({len(row) for row in rows}) != 1 or len(rows) > _MOST_VALUES:
            raise refuse(node, "VALUES", "the rows differ in length, or are too many", "Write (…), (…) of equal length")
        env = replace(self.env(Scope()), clause="VALUES")
        columns = [unified([env.value(each) for each in column], node, "VALUES") for column in zip(*rows, strict=True)]
        texts = [
            f"({', '.join(value.sql for value in row)})" for row in zip(*(each for each, _ in columns), strict=True)
        ]
        names = ", ".join(f"c{place}" for place in range(len(columns)))
        fields = [
            Field(f"column{place + 1}", kind, Mixed(frozenset()), max(value.width for value in values))
            for place, (values, kind) in enumerate(columns)
        ]
        return Relation(f"SELECT * FROM (VALUES {', '.join(texts)}) AS v({names})", tuple(fields))

    def _join(self, join: exp.Expr, scope: Scope, text: str) -> tuple[Scope, str]:
        check_arguments(join, "this side kind on using", "JOIN")
        side, kind = (str(join.args.get(name) or "").upper() for name in ("side", "kind"))
        if side not in ("", "LEFT", "RIGHT", "FULL") or kind not in ("", "INNER", "OUTER", "CROSS"):
            raise refuse(join, "JOIN", f"{side} {kind} JOIN is not supported", "Use JOIN, LEFT JOIN or CROSS JOIN")
        wider, right = self._source(join.this, scope)
        on, using = join.args.get("on"), join.args.get("using")
        if using:
            wider, condition = self._using(join, scope, wider, side)
        elif on is not None:
            condition = replace(self.env(wider), clause="JOIN").condition(on).sql
        elif side or kind in ("INNER", "OUTER"):
            raise refuse(join, "JOIN", "there is no condition", "Add ON … or USING (…), or write CROSS JOIN")
        else:
            return wider, f"{text} CROSS JOIN {right}"
        return wider, f"{text} {side or 'INNER'} JOIN {right} ON {condition}"

    def _using(self, join: exp.Expr, left: Scope, wider: Scope, side: str) -> tuple[Scope, str]:
        pairs = []
        for name in join.args["using"]:
            column = exp.Column(this=name.copy())
            one = _one(left.find(column), name)
            other = _one([each for each in wider.columns[len(left.columns) :] if same(name, each.name)], name)
            (first, second), _ = unified([one.value, other.value], join, "JOIN")
            pairs.append((one, other, first, second))
        joined = [(one, other, _met(first, second, side)) for one, other, first, second in pairs]
        tests = [made("({0} = {1})", Kind.BOOLEAN, first, second).sql for _, _, first, second in pairs]
        return merged(wider, joined), " AND ".join(tests)


def _one(found: list[Named], name: exp.Expr) -> Named:
    if len(found) != 1:
        cause = (
            f"{quoted(name.name)} is not a column of both sides" if not found else f"{quoted(name.name)} is ambiguous"
        )
        raise refuse(name, "JOIN", cause, "Use ON with the names of both tables")
    return found[0]


def _met(first: Value, second: Value, side: str) -> Value:
    """Return what a column of USING holds."""
    if side == "FULL":
        return made("coalesce({0}, {1})", first.kind, first, second)
    return second if side == "RIGHT" else first
