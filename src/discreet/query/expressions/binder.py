"""Bind SQL expressions on single rows to kernel expressions, with public facts about their values.

Nodes without an entry in RULES are refused, and so are nodes with arguments that their rule does not list. To clamp
columns to their declared ranges, as inside an aggregate, the caller passes a lookup that returns clamped columns.
"""

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

from sqlglot import exp

from discreet.kernel.errors import Refused
from discreet.kernel.expr import Constant, Type
from discreet.query.expressions import functions
from discreet.query.expressions.bound_expr import BoundExpr
from discreet.query.expressions.date_functions import numeric_operation
from discreet.query.expressions.functions import Compute, sql_excerpt, unknown_function_refusal
from discreet.query.expressions.operands import (
    TYPE_NAMES,
    DeclaredLists,
    ExprReader,
    check_declared,
)
from discreet.query.expressions.text_functions import as_text, concatenate, text_part
from discreet.query.expressions.value_ranges import bound_call, bound_constant, is_null
from discreet.query.syntax.constants import FALSE_TEXTS, TRUE_TEXTS, parse_number
from discreet.query.syntax.operations import NodeRule, chain_operands, operation_rules
from discreet.query.syntax.syntax_tree import WINDOW_HINT, NestedQuery, refuse, surplus_arguments

ColumnLookup = Callable[[exp.Column], BoundExpr]


def bind_expr(
    node: exp.Expr, columns: ColumnLookup, clause: str, lists: DeclaredLists = MappingProxyType({})
) -> BoundExpr:
    """Bind an expression on single rows; `clause` is named in refusals, and `lists` has the declared values of columns.

    >>> import sqlglot
    >>> from discreet.kernel.expr import Column
    >>> age = BoundExpr(Column("age", Type.INTEGER))
    >>> bind_expr(sqlglot.parse_one("age >= 18", dialect="postgres"), lambda _: age, "WHERE").expr.op
    'at_most'
    """
    reader = ExprReader(lambda each: _bind_node(each, columns, reader), clause, lists)
    try:
        return reader.bind(node)
    except Refused:
        raise
    except Exception:  # noqa: BLE001 - every query is answered or refused
        raise refuse(node, clause, "this expression is not supported", "Simplify it.") from None


def _bind_node(node: exp.Expr, columns: ColumnLookup, reader: ExprReader) -> BoundExpr:
    if type(node) is exp.Column and not isinstance(node.this, exp.Star):
        try:
            return columns(node)
        except (ValueError, TypeError, OverflowError) as error:  # the handler below would show its message
            raise RuntimeError from error
    rule = RULES.get(type(node))
    if rule is None or surplus_arguments(node, rule.arguments):
        raise _unsupported_refusal(node, reader)
    try:
        bound: BoundExpr = rule.read(node, reader)
    except (ValueError, TypeError, OverflowError) as error:  # raised by the kernel's constructors
        raise reader.refuse(node, f"{sql_excerpt(node)}: {error}", "Rewrite it.") from None
    return bound


def _unsupported_refusal(node: exp.Expr, reader: ExprReader) -> Refused:
    """Return the refusal of a node without a rule."""
    inside = node.find(NestedQuery, exp.Query) if isinstance(node, exp.In | exp.Any | exp.All) else None
    for kinds, cause, hint in _UNSUPPORTED:
        if isinstance(inside or node, kinds):
            return reader.refuse(node, cause, hint)
    if isinstance(node, exp.Func) and type(node) not in RULES and type(node) not in _HINTS:
        return unknown_function_refusal(node, reader.clause)
    hint = _HINTS.get(type(node), "Leave it out, or rewrite it.")
    return reader.refuse(node, f"{sql_excerpt(node)} is not supported", hint)


_UNSUPPORTED: tuple[tuple[tuple[type, ...], str, str], ...] = (
    (
        (exp.Query, NestedQuery, exp.Exists),
        "a subquery is supported only as a separate condition in WHERE, combined with AND",
        "Write WHERE … AND unit IN (SELECT unit …), or use a JOIN.",
    ),
    (
        (exp.Window, exp.IgnoreNulls, exp.RespectNulls),
        "window functions are not allowed on private rows",
        WINDOW_HINT,
    ),
    (
        (exp.AggFunc, exp.WithinGroup, exp.Filter, exp.Distinct),
        "aggregate functions are not allowed here",
        "Aggregate per unit in a subquery, or use HAVING.",
    ),
    (
        (exp.Parameter, exp.Placeholder, exp.SessionParameter),
        "parameters are not supported here",
        "Write the value itself.",
    ),
    ((exp.Star, exp.Column), "* is not a value", "Name a column."),
)
_HINTS: dict[type, str] = {
    exp.Any: "Write IN (…).",
    exp.Between: "Write BETWEEN LEAST(…) AND GREATEST(…).",
    exp.In: "Write IN (…) with constants.",
    exp.Interval: "Add it to a date or timestamp, or subtract it.",
    exp.ByteString: "Write the text in single quotes.",
    exp.AtTimeZone: "Timestamps are already in the policy's time zone.",
    exp.Collate: "Leave COLLATE out: text is compared by its bytes.",
}


def _bind_literal(node: exp.Expr, reader: ExprReader) -> BoundExpr:
    if isinstance(node, exp.RawString) or node.is_string:
        return bound_constant(node.name, Type.TEXT)
    try:
        number = parse_number(node.name)
    except ValueError:
        raise reader.refuse(
            node, "this number is out of range for type double precision", "Write a smaller one."
        ) from None
    return bound_constant(number, Type.INTEGER if isinstance(number, int) else Type.REAL)


def _apply(operation: str, node: exp.Expr, reader: ExprReader, operands: Sequence[Any]) -> BoundExpr:
    """Return a shared operation: the kernel's of the same name, unless `_OPERATIONS` has it."""
    compute = _OPERATIONS.get(operation)
    return bound_call(operation, *operands) if compute is None else compute(node, reader, *operands)


def _negated(operation: str) -> Compute:
    return lambda node, reader, *operands: bound_call("not", _apply(operation, node, reader, operands))


def _is_truth(*, of: bool) -> Compute:
    no = bound_constant(value=False, kind=Type.BOOLEAN)
    return lambda _node, _reader, value: bound_call("coalesce", value if of else bound_call("not", value), no)


def _between(_node: exp.Expr, _reader: ExprReader, value: BoundExpr, low: BoundExpr, high: BoundExpr) -> BoundExpr:
    return bound_call("and", bound_call("at_most", low, value), bound_call("at_most", value, high))


def _in(node: exp.Expr, reader: ExprReader, value: BoundExpr, *others: BoundExpr) -> BoundExpr:
    constants = [other for other in others if _is_constant(other) and not is_null(other)]
    for other in constants:
        check_declared(value, other, reader.lists, node, reader.clause)
    tests = [bound_call("one_of", value, *constants)] if constants else []
    tests += [bound_call("equal", value, other) for other in others if not _is_constant(other)]
    if any(is_null(other) for other in others):
        tests.append(bound_constant(None, Type.BOOLEAN))  # x IN (1, NULL) is true or unknown, never false
    return bound_call("or", *tests) if len(tests) > 1 else tests[0]


def _is_constant(bound: BoundExpr) -> bool:
    return isinstance(bound.expr, Constant)


def _same(node: exp.Expr, reader: ExprReader, left: BoundExpr, right: BoundExpr) -> BoundExpr:
    """IS NOT DISTINCT FROM: NULL equals NULL."""
    both = bound_call("and", bound_call("is_null", left), bound_call("is_null", right))
    return bound_call("coalesce", reader.bind_equal(node, left, right), both)


def _case(node: exp.Expr, _reader: ExprReader, *parts: BoundExpr) -> BoundExpr:
    count = len(node.args["ifs"])
    conditions, values = parts[:count], parts[count:]
    otherwise = values[count] if len(values) > count else bound_constant(None, values[0].type)
    pairs = [side for pair in zip(conditions, values, strict=False) for side in pair]
    return bound_call("case", *pairs, otherwise)


def _if(node: exp.Expr, reader: ExprReader) -> BoundExpr:
    values = reader.bind_common_type(node, [node.args["true"], node.args.get("false") or exp.Null()])
    return bound_call("case", reader.bind_as(node.this, Type.BOOLEAN), *values)


def _multiply(node: exp.Expr, reader: ExprReader) -> BoundExpr:
    return numeric_operation("multiply", node, reader, reader.bind(node.this), reader.bind(node.expression))


def _divide(node: exp.Expr, reader: ExprReader) -> BoundExpr:
    left, right = reader.bind(node.this), reader.bind(node.expression)
    if left.type is right.type is Type.INTEGER and (_is_numeric(node.this) or _is_numeric(node.expression)):
        left, right = bound_call("to_real", left), bound_call("to_real", right)
    return numeric_operation("divide", node, reader, left, right)


def _is_numeric(node: exp.Expr) -> bool:
    """Return whether PostgreSQL uses numeric for an integer value: EXTRACT(…) / 10 does not truncate."""
    bare = node.unnest()
    if isinstance(bare, exp.Neg | exp.Abs):
        return _is_numeric(bare.this)
    if isinstance(bare, exp.Add | exp.Sub | exp.Mul | exp.Mod):
        return _is_numeric(bare.this) or _is_numeric(bare.expression)
    return isinstance(bare, exp.Extract)


def _modulo(node: exp.Expr, reader: ExprReader) -> BoundExpr:
    left, right = reader.bind(node.this), reader.bind(node.expression)
    if Type.REAL in (left.type, right.type):
        raise reader.refuse(node, "the remainder is supported for integers only", "Write x - y * FLOOR(x / y).")
    return numeric_operation("modulo", node, reader, left, right)


def _join(node: exp.Expr, reader: ExprReader, *operands: BoundExpr) -> BoundExpr:
    parts = zip(chain_operands(node), operands, strict=True)
    return concatenate([as_text(part, reader, operand) for part, operand in parts])


_TYPES = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), Type.INTEGER),
    **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL"), Type.REAL),
    **dict.fromkeys(("TEXT", "VARCHAR"), Type.TEXT),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPNTZ", "DATETIME"), Type.TIMESTAMP),
    "DATE": Type.DATE,
    "BOOLEAN": Type.BOOLEAN,
}
_CASTS = {
    (Type.INTEGER, Type.REAL): "to_real",
    (Type.DATE, Type.TIMESTAMP): "to_timestamp",
    (Type.REAL, Type.INTEGER): "to_integer",
    (Type.BOOLEAN, Type.INTEGER): "as_integer",
    (Type.TIMESTAMP, Type.DATE): "to_date",
}


def _cast(node: exp.Expr, reader: ExprReader) -> BoundExpr:
    to = node.args["to"]
    kind = _TYPES.get(to.this.name)
    if kind is None or (to.expressions and kind in (Type.TIMESTAMP, Type.INTEGER, Type.BOOLEAN)):
        names = "INTEGER, BIGINT, DOUBLE PRECISION, NUMERIC, TEXT, DATE, TIMESTAMP and BOOLEAN"
        raise reader.refuse(node, f"cannot cast to type {sql_excerpt(to)}", f"Supported: {names}.")
    sizes = [reader.constant_integer(expression.this) for expression in to.expressions]
    bound = _cast_value(node, reader, reader.bind(node.this), kind)
    if kind is Type.TEXT and sizes:
        return text_part(node, reader, bound, 1, sizes[0])
    if to.this is exp.DType.DECIMAL and sizes:
        return bound_call("round", bound, bound_constant(sizes[1] if len(sizes) > 1 else 0, Type.INTEGER))
    return bound


def _cast_value(node: exp.Expr, reader: ExprReader, bound: BoundExpr, kind: Type) -> BoundExpr:
    if bound.type is kind or is_null(bound) or (_is_constant(bound) and bound.type is Type.TEXT):
        return _cast_constant(node, reader, bound, kind)
    if kind is Type.TEXT:
        return as_text(node.this, reader, bound)
    if kind is Type.BOOLEAN and bound.type is Type.INTEGER:
        return bound_call("not", bound_call("equal", bound, bound_constant(0, Type.INTEGER)))
    if bound.type is Type.TEXT:
        return _parse_text(bound_call("trim", bound), kind)
    op = _CASTS.get((bound.type, kind))
    if op is None:
        raise reader.refuse(
            node, f"cannot cast type {TYPE_NAMES[bound.type]} to {TYPE_NAMES[kind]}", "Use another column or type."
        )
    return bound_call(op, bound)


def _cast_constant(node: exp.Expr, reader: ExprReader, bound: BoundExpr, kind: Type) -> BoundExpr:
    try:
        return reader.coerce(node.this, bound, kind)
    except Refused:
        if isinstance(node, exp.TryCast):
            return bound_constant(None, kind)
        raise


def _parse_text(text: BoundExpr, kind: Type) -> BoundExpr:
    """Convert text in every row as a constant would be; NULL where it is invalid."""
    match kind:
        case Type.DATE:
            return bound_call(
                "coalesce", bound_call("read_date", text), bound_call("to_date", bound_call("read_timestamp", text))
            )
        case Type.TIMESTAMP:
            return bound_call(
                "coalesce",
                bound_call("read_timestamp", text),
                bound_call("to_timestamp", bound_call("read_date", text)),
            )
        case Type.BOOLEAN:
            lower = bound_call("lower", text)
            yes, no = (
                bound_call("one_of", lower, *(bound_constant(word, Type.TEXT) for word in words))
                for words in (TRUE_TEXTS, FALSE_TEXTS)
            )
            first, second, neither = (bound_constant(value, kind) for value in (True, False, None))
            return bound_call("case", yes, first, no, second, neither)
    return bound_call("read_integer" if kind is Type.INTEGER else "read_real", text)


_OPERATIONS: dict[str, Compute] = {
    **functions.OPERATIONS,
    "equal": lambda node, reader, left, right: reader.bind_equal(node, left, right),
    "not_equal": _negated("equal"),
    "greater": lambda _node, _reader, left, right: bound_call("less", right, left),
    "at_least": lambda _node, _reader, left, right: bound_call("at_most", right, left),
    "same": _same,
    "not_same": _negated("same"),
    "between": _between,
    "in": _in,
    "is_not_null": _negated("is_null"),
    "is_true": _is_truth(of=True),
    "is_false": _is_truth(of=False),
    "is_not_true": _negated("is_true"),
    "is_not_false": _negated("is_false"),
    "case": _case,
    "join": _join,
}
RULES: dict[type, NodeRule] = {
    **operation_rules(_apply),
    **functions.RULES,
    exp.Literal: NodeRule("this is_string", _bind_literal),
    exp.RawString: NodeRule("this", _bind_literal),
    exp.Null: NodeRule("", lambda _node, _reader: bound_constant(None, Type.TEXT)),
    exp.Boolean: NodeRule("this", lambda node, _: bound_constant(bool(node.this), Type.BOOLEAN)),
    exp.If: NodeRule("this true false", _if),
    exp.Mul: NodeRule("this expression", _multiply),
    exp.Div: NodeRule("this expression typed safe", _divide),
    exp.Mod: NodeRule("this expression", _modulo),
    exp.Cast: NodeRule("this to", _cast),
    exp.TryCast: NodeRule("this to safe", _cast),
}
