"""The types of parameters that a client leaves open, from where they stand in the statement.

A parameter that is compared with a column has its type. An example of such a value stands in for the parameter when
the columns of an answer are described, before there are values.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from discreet.dbapi.parameters import numbered_placeholders
from discreet.server.pgwire.catalog.rewriting import type_name
from discreet.server.pgwire.catalog.type_rows import type_numbers
from discreet.server.pgwire.parameter_values import BY_OID
from discreet.server.pgwire.pg_types import TEXT

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Like, exp.ILike, exp.NullSafeEQ, exp.NullSafeNEQ)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_TEXT_FUNCTIONS = (exp.Lower, exp.Upper, exp.Trim, exp.Substring, exp.Concat, exp.DPipe)
_COUNTS = (exp.Limit, exp.Offset, exp.Count, exp.Length, exp.Extract, exp.Round)
_EXAMPLES: Mapping[str, Any] = {"bool": True, "text": "", **dict.fromkeys(("int2", "int4", "int8", "oid"), 1)}
_LONG_NAMES = {"int": "integer", "double": "double precision", "decimal": "numeric", "float": "real", "char": "text"}
_REAL, _INTEGER = "double precision", "bigint"
_RESULTS = {_TEXT_FUNCTIONS: "text", _COUNTS: _INTEGER, (exp.AggFunc,): _REAL}
_OTHER_EXAMPLES = {
    "float4": 1.5,
    "float8": 1.5,
    "numeric": 1.5,
    "date": "2020-01-01",
    "timestamp": "2020-01-01 00:00:00",
    "timestamptz": "2020-01-01 00:00:00",
}


@dataclass(frozen=True)
class KnownColumn:
    """A column that parameters may be compared with: its table, its type as the catalog writes it, and an example."""

    table: str
    type_text: str
    example: Any = None


@dataclass(frozen=True)
class ParameterType:
    """The number of a parameter's type, and a value that may stand in for it."""

    oid: int
    example: Any


def infer_types(
    text: str, tree: exp.Expr | None, given: tuple[int, ...], columns: Mapping[str, tuple[KnownColumn, ...]]
) -> tuple[ParameterType, ...]:
    """Return the type of each parameter: as given by the client, or else by the column that it is compared with.

    >>> columns = {"age": (KnownColumn("visits", "bigint", 7),)}
    >>> from discreet.query.syntax.parse import parse_query
    >>> sql = "SELECT COUNT(*) FROM visits WHERE age > $1"
    >>> infer_types(sql, parse_query(sql).query, (), columns)
    (ParameterType(oid=20, example=7),)
    """
    places = numbered_placeholders(text)
    count = max([len(given), *(int(place.key) for place in places)])
    if count == 0:
        return ()
    found = {} if tree is None else _inferred(tree, columns)
    types = []
    for number in range(1, count + 1):
        kind = found.get(number, ParameterType(TEXT.oid, ""))
        oid = given[number - 1] if number <= len(given) else 0
        types.append(kind if oid in (0, kind.oid) else ParameterType(oid, _example_of(oid)))
    return tuple(types)


def _inferred(tree: exp.Expr, columns: Mapping[str, tuple[KnownColumn, ...]]) -> dict[int, ParameterType]:
    tables = {table.name.lower() for table in tree.find_all(exp.Table)}
    found: dict[int, ParameterType] = {}
    for node in tree.find_all(exp.Parameter):
        if node.this and node.name.isdecimal():
            found.setdefault(int(node.name), _type_at(node, columns, tables))
    return found


def _type_at(node: exp.Expr, columns: Mapping[str, tuple[KnownColumn, ...]], tables: set[str]) -> ParameterType:
    """Return the type of a parameter from what surrounds it."""
    parent, is_array = node.parent, False
    while isinstance(parent, exp.Paren | exp.Neg | exp.Any | exp.Tuple):
        is_array = is_array or isinstance(parent, exp.Any)
        node, parent = parent, parent.parent
    if isinstance(parent, exp.Cast):
        return _named(_cast_name(parent.to))
    if isinstance(parent, _COUNTS):
        return _named(_INTEGER)
    if isinstance(parent, exp.Between | exp.In):
        return _type_of(parent.this, columns, tables)
    if isinstance(parent, (*_COMPARISONS, *_ARITHMETIC)):
        other = parent.expression if node.arg_key == "this" else parent.this
        kind = _type_of(other, columns, tables)
        return _named(f"{_long_name(kind.oid)}[]") if is_array else kind
    for other in parent.find_all(exp.Column) if isinstance(parent, exp.Func) else ():
        return _type_of(other, columns, tables)
    return ParameterType(TEXT.oid, "")


def _type_of(node: exp.Expr, columns: Mapping[str, tuple[KnownColumn, ...]], tables: set[str]) -> ParameterType:
    """Return the type of an expression, as far as it is plain to see."""
    match node:
        case exp.Column():
            known = columns.get(node.name.lower(), ())
            best = next((column for column in known if column.table in tables), known[0] if known else None)
            return ParameterType(TEXT.oid, "") if best is None else _named(best.type_text, best.example)
        case exp.Literal():
            return _named("text" if node.is_string else _INTEGER if node.name.isdecimal() else _REAL)
        case exp.Cast():
            return _named(_cast_name(node.to))
    plain = next((name for classes, name in _RESULTS.items() if isinstance(node, classes)), None)
    inner = next((each for each in node.find_all(exp.Column) if each is not node), None)
    return _named(plain or "text") if plain or inner is None else _type_of(inner, columns, tables)


def _cast_name(kind: exp.Expr) -> str:
    if isinstance(kind, exp.DataType) and kind.expressions and type_name(kind) in ("array", "list"):
        return f"{type_name(kind.expressions[0])}[]"
    return type_name(kind)


def _named(name: str, example: Any = None) -> ParameterType:
    is_array, short = name.endswith("[]"), name.removesuffix("[]")
    base = type_numbers().get(_LONG_NAMES.get(short, short), TEXT.oid)
    if is_array:
        return ParameterType(BY_OID[base].array_oid if base in BY_OID else TEXT.array_oid, None)
    return ParameterType(base, _example_of(base) if example is None else example)


def _long_name(oid: int) -> str:
    return next((name for name, number in type_numbers().items() if number == oid), "text")


def _example_of(oid: int) -> Any:
    kind = BY_OID.get(oid, TEXT)
    text = _OTHER_EXAMPLES.get(kind.name)
    if isinstance(text, str):
        return kind.from_text(text.encode())
    return _EXAMPLES.get(kind.name, text)
