"""Names as in PostgreSQL: which identifier means which name, and what the columns of a result are called."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Protocol, TypeVar

from sqlglot import exp

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


def same_name(identifier: exp.Expr, name: str) -> bool:
    """Return whether an identifier means a name, ignoring case unless it is quoted.

    Names are kept as they are written, and PostgreSQL folds those without quotes, so "total" also means Total.

    >>> [same_name(exp.to_identifier(text, quoted=True), "Total") for text in ("Total", "total", "TOTAL")]
    [True, True, False]
    """
    if identifier.args.get("quoted"):
        return identifier.name in (name, name.lower())
    return identifier.name.lower() == name.lower()


def folded_name(identifier: exp.Expr) -> str:
    """Return the name of an identifier as PostgreSQL stores it: in lower case unless it is quoted."""
    name: str = identifier.name
    return name if identifier.args.get("quoted") else name.lower()


class HasName(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str:
        """The name."""


Named = TypeVar("Named", bound=HasName)


def matching(identifier: exp.Expr, candidates: Sequence[Named]) -> list[Named]:
    """Return the candidates that an identifier means; if it is quoted, those with the same spelling first of all."""
    matches = [each for each in candidates if same_name(identifier, each.name)]
    same = [each for each in matches if identifier.args.get("quoted") and each.name == identifier.name]
    return same or matches


def name_hint(name: str, names: Sequence[str]) -> str:
    """Return a hint for an unknown name: similar names, or all of them."""
    lower = {each.lower(): each for each in names}
    close = get_close_matches(name.lower(), lower, n=3, cutoff=0.6)
    if close:
        return f"Did you mean {' or '.join(lower[each] for each in close)}?"
    return f"Available: {', '.join(names[:20])}{', …' if len(names) > 20 else ''}." if names else "None are available."


def distinct_names(names: Sequence[tuple[str, bool]]) -> list[str]:
    """Return names that differ not only in case, with numbers appended to repeated ones; aliases keep theirs.

    >>> distinct_names([("count", False), ("Count", False), ("count_1", True)])
    ['count', 'Count_2', 'count_1']
    """
    distinct: dict[int, str] = {}
    used: set[str] = set()
    numbers: dict[str, int] = {}
    for index in sorted(range(len(names)), key=lambda place: not names[place][1]):
        written = names[index][0]
        name, number = written, numbers.get(written.lower(), 0)
        while name.lower() in used:
            number += 1
            name = f"{written}_{number}"
        numbers[written.lower()] = number
        used.add(name.lower())
        distinct[index] = name
    return [distinct[place] for place in range(len(names))]


def output_name(node: exp.Expr) -> str:
    """Return the name of an output column: as the query writes it, or else PostgreSQL's.

    >>> from sqlglot import parse_one
    >>> query = parse_one("SELECT a AS Total, t.b, COUNT(*), a + 1, CASE WHEN a THEN 1 END, 1::int", read="postgres")
    >>> [output_name(each) for each in query.selects]
    ['Total', 'b', 'count', '?column?', 'case', 'int4']
    """
    return _ranked_name(node)[0] or _UNNAMED


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
