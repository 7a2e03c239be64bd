"""What the columns of an answer are called: as PostgreSQL calls them, and each differently."""

from collections.abc import Sequence

from sqlglot import exp

_NONE = "?column?"
_TYPE = exp.DType
_TYPES = {
    _TYPE.BOOLEAN: "bool",
    _TYPE.SMALLINT: "int2",
    _TYPE.INT: "int4",
    _TYPE.BIGINT: "int8",
    _TYPE.DECIMAL: "numeric",
    _TYPE.FLOAT: "float4",
    _TYPE.DOUBLE: "float8",
}
_FUNCTIONS = {
    exp.TimestampTrunc: "date_trunc",
    exp.VariancePop: "var_pop",
    exp.StrPosition: "position",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
}


def spelled(identifier: exp.Expr) -> str:
    """Return what an identifier means: PostgreSQL folds it to lower case unless it is quoted."""
    return identifier.name if identifier.args.get("quoted") else identifier.name.lower()


def name_of(node: exp.Expr) -> str:
    """Return the name of an output column.

    >>> from sqlglot import parse_one
    >>> query = parse_one("SELECT a AS Total, t.b, COUNT(*), a + 1, CASE WHEN a THEN 1 END, 1::int", read="postgres")
    >>> [name_of(each) for each in query.selects]
    ['total', 'b', 'count', '?column?', 'case', 'int4']
    """
    return _named(node)[0] or _NONE


def apart(names: Sequence[str]) -> tuple[str, ...]:
    """Return names that differ: a repeated one gets a number that makes it new.

    >>> apart(["count", "count", "count_1"])
    ('count', 'count_2', 'count_1')
    """
    found: list[str] = []
    for given in names:
        name, number = given, 0
        while name in found or (number and name in names):
            number += 1
            name = f"{given}_{number}"
        found.append(name)
    return tuple(found)


def _named(node: exp.Expr | None) -> tuple[str | None, int]:  # noqa: PLR0911 - one for each kind of node
    """Return a name and how good it is: 2 for columns and functions, 1 for types and CASE, which give way to it."""
    match node:
        case exp.Alias():
            return spelled(node.args["alias"]), 2
        case exp.Column() if isinstance(node.this, exp.Identifier):
            return spelled(node.this), 2
        case exp.Paren() | exp.Window() | exp.Filter() | exp.WithinGroup():
            return _named(node.this)
        case exp.Cast() if "name" not in node.meta:
            found = _named(node.this)
            return found if found[1] > 1 else (_type(node.args["to"]), 1)
        case exp.Case():
            found = _named(node.args.get("default"))
            return found if found[1] > 1 else ("case", 1)
        case exp.Subquery() if isinstance(node.this, exp.Select) and node.this.expressions:
            return _named(node.this.expressions[0])
        case exp.Exists():
            return "exists", 2
        case exp.Interval():
            return "interval", 1
        case exp.Func() | exp.Binary():
            return (name := _function(node)), 2 if name else 0
    return None, 0


def _type(to: exp.Expr) -> str:
    return _TYPES.get(to.this, to.sql("postgres").split("(")[0].lower())


def _function(node: exp.Func | exp.Binary) -> str | None:
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    if "name" in node.meta:
        return str(node.meta["name"])
    if isinstance(node, exp.Binary | exp.Connector):
        return None
    if isinstance(node, exp.Trim):
        return {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")).upper(), "btrim")
    return _FUNCTIONS.get(type(node), node.sql_name().lower())
