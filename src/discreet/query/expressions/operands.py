"""Operands: constants, implicit casts, and refusals of types that do not match and of values that are not declared.

Only lists of declared values (`in = […]`) are checked. Stored numbers may lie outside a range (`between`), and
conditions see the stored values: `age = 999` may select rows whose age is unknown.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from math import prod
from typing import Any

from sqlglot import exp

from discreet.engines.column_usage import columns_of
from discreet.engines.reference.evaluate import evaluate
from discreet.kernel.errors import Refused
from discreet.kernel.expr import Call, Column, Constant, Expr, Type, Value
from discreet.policy.problems import shorten
from discreet.query.expressions.bound_expr import BoundExpr
from discreet.query.expressions.public_domains import domain_of
from discreet.query.expressions.value_ranges import bound_call, bound_constant, is_null
from discreet.query.syntax.constants import parse_constant
from discreet.query.syntax.operations import Operand
from discreet.query.syntax.syntax_tree import refuse, sql_of

INTEGER, REAL, BOOLEAN, TEXT, DATE, TIMESTAMP = Type
TYPE_NAMES = {
    INTEGER: "integer",
    REAL: "double precision",
    BOOLEAN: "boolean",
    TEXT: "text",
    DATE: "date",
    TIMESTAMP: "timestamp",
}
_EXAMPLES = {
    INTEGER: "42",
    REAL: "4.2",
    BOOLEAN: "TRUE or FALSE",
    DATE: "'2010-01-31'",
    TIMESTAMP: "'2010-01-31 12:00:00', in local time and without an offset",
}
_CAST_HINTS = {
    (INTEGER, BOOLEAN): "Write x <> 0.",
    (REAL, BOOLEAN): "Write x <> 0.",
    (TEXT, BOOLEAN): "Compare it with a value.",
    (BOOLEAN, INTEGER): "Write CASE WHEN x THEN 1 ELSE 0 END.",
    (BOOLEAN, REAL): "Write CASE WHEN x THEN 1 ELSE 0 END.",
    (DATE, INTEGER): "Write EXTRACT(YEAR FROM x), or subtract another date.",
    (TIMESTAMP, INTEGER): "Write EXTRACT(YEAR FROM x).",
    (REAL, INTEGER): "Write CAST(x AS INTEGER), or FLOOR(x).",
    (REAL, TEXT): "Write CAST(CAST(x AS INTEGER) AS TEXT).",
    **dict.fromkeys(((INTEGER, TEXT), (DATE, TEXT), (BOOLEAN, TEXT)), "Write CAST(x AS TEXT)."),
    **dict.fromkeys(((TEXT, INTEGER), (TEXT, REAL)), "Write CAST(x AS DOUBLE PRECISION)."),
    **dict.fromkeys(((TEXT, DATE), (TIMESTAMP, DATE)), "Write CAST(x AS DATE)."),
    (TEXT, TIMESTAMP): "Write CAST(x AS TIMESTAMP).",
}
_DECIMAL_COMMA = re.compile(r"[+-]?\d{1,15},(?!\d{3}$)\d{1,15}", re.ASCII)  # 1,000 may be a thousand
MAX_TEXT_LENGTH = 100_000  # characters

DeclaredLists = Mapping[str, Collection[Value]]  # by column name in the relation


@dataclass(frozen=True)
class ExprReader:
    """Binds the operands of an expression; `clause` is named in refusals."""

    bind: Callable[[exp.Expr], BoundExpr]
    clause: str
    lists: DeclaredLists = field(default_factory=dict)  # declared values of columns

    def bind_equal(self, node: exp.Expr, value: BoundExpr, other: BoundExpr) -> BoundExpr:
        """Return left = right; a constant must be a declared value of the other side."""
        check_declared(value, other, self.lists, node, self.clause)
        return bound_call("equal", value, other)

    def read(self, node: exp.Expr, kind: Operand) -> Any:
        """Return an operand; Refused if it is not of this kind."""
        return _READERS[kind](self, node)

    def refuse(self, node: exp.Expr, cause: str, hint: str) -> Refused:
        """Return the refusal of a node."""
        return refuse(node, self.clause, cause, hint)

    def bind_as(self, node: exp.Expr, kind: Type) -> BoundExpr:
        """Bind an operand that must have this type."""
        return self.coerce(node, self.bind(node), kind)

    def bind_number(self, node: exp.Expr) -> BoundExpr:
        """Bind an operand that must be a number."""
        bound = self.bind(node)
        return bound if bound.type is INTEGER else self.coerce(node, bound, REAL)

    def bind_moment(self, node: exp.Expr) -> BoundExpr:
        """Bind an operand that must be a date or a timestamp."""
        return self.to_moment(node, self.bind(node))

    def to_moment(self, node: exp.Expr, bound: BoundExpr) -> BoundExpr:
        """Return a date unchanged, and anything else as a timestamp."""
        return bound if bound.type is DATE else self.coerce(node, bound, TIMESTAMP)

    def constant_value(self, node: exp.Expr, kind: Type) -> Value:
        """Return the value of an operand that must be a constant other than NULL."""
        expr = self.bind_as(node, kind).expr
        if not isinstance(expr, Constant) or expr.value is None:
            raise self.refuse(node, f"expected a constant of type {TYPE_NAMES[kind]}", "Write the value itself.")
        return expr.value

    def constant_text(self, node: exp.Expr) -> str:
        """Return the value of an operand that must be a text constant."""
        return str(self.constant_value(node, TEXT))

    def constant_integer(self, node: exp.Expr) -> int:
        """Return the value of an operand that must be an integer constant."""
        return int(self.constant_value(node, INTEGER))  # type: ignore[arg-type]

    def bind_common_type(self, node: exp.Expr, parts: Sequence[exp.Expr]) -> list[BoundExpr]:
        """Bind operands and convert them to their common type."""
        return self.to_common_type(node, parts, [self.bind(part) for part in parts])

    def to_common_type(self, node: exp.Expr, parts: Sequence[exp.Expr], values: Sequence[BoundExpr]) -> list[BoundExpr]:
        """Convert operands to their common type, which text constants and NULL adopt."""
        kind = common_type(values)
        if kind is None:
            types = list(dict.fromkeys(operand.type for operand in values))
            first, *others = (TYPE_NAMES[each] for each in types)
            cause = (
                f"cannot compare {first} with {' and '.join(others)}"
                if isinstance(node, exp.Predicate)
                else f"types {' and '.join((first, *others))} cannot be matched"
            )
            dates = [text for part in parts if {DATE, TIMESTAMP}.intersection(types) and (text := _unquoted_date(part))]
            hint = "Cast one to the type of the other."
            if BOOLEAN in types:
                hint = "Write TRUE or FALSE, or CASE WHEN … THEN 1 ELSE 0 END."
            elif dates:
                hint = f"Quote the date: '{dates[0]}'."
            elif {TEXT, INTEGER, REAL}.issuperset(types) and (
                numbers := [part.name for part in parts if part.is_number]
            ):
                hint = f"Quote the text: '{numbers[0]}'."
            raise self.refuse(node, f"{cause}: {shorten(sql_of(node))}", hint)
        return [self.coerce(part, each, kind) for part, each in zip(parts, values, strict=True)]

    def coerce(self, node: exp.Expr, bound: BoundExpr, kind: Type) -> BoundExpr:
        """Cast an operand implicitly, as PostgreSQL does, or refuse it."""
        try:
            coerced = implicit_cast(bound, kind)
        except ValueError:
            cause = f"invalid input syntax for type {TYPE_NAMES[kind]}"
            raise self.refuse(node, *_invalid_constant(cause, bound, kind)) from None
        if coerced is None:
            cause = f"expected {TYPE_NAMES[kind]}, not {TYPE_NAMES[bound.type]}: {shorten(sql_of(node))}"
            raise self.refuse(
                node, cause, _CAST_HINTS.get((bound.type, kind), f"Use a value of type {TYPE_NAMES[kind]}.")
            )
        return coerced


def _unquoted_date(node: exp.Expr) -> str:
    """Return the date that a query wrote without quotes, as in day > 2026-02-01; "" if this is none."""
    parts = [node.this.this, node.this.expression, node.expression] if _is_difference_of_three(node) else []
    text = "-".join(part.name for part in parts if isinstance(part, exp.Literal) and not part.is_string)
    try:
        parse_constant(text, DATE)
    except ValueError:
        return ""
    return text


def _is_difference_of_three(node: exp.Expr) -> bool:
    return isinstance(node, exp.Sub) and isinstance(node.this, exp.Sub)


def _invalid_constant(cause: str, bound: BoundExpr, kind: Type) -> tuple[str, str]:
    """Return the cause and the hint of the refusal of a text constant that is not of a type."""
    text = str(bound.expr.value).strip() if isinstance(bound.expr, Constant) else ""
    cause = f"{cause}: '{shorten(text)}'"
    if kind is DATE:
        return f"{cause} is not a date", f"Write YYYY-MM-DD, such as {_EXAMPLES[DATE]}."
    if kind is REAL and _DECIMAL_COMMA.fullmatch(text):
        return cause, f"Write a decimal point: {text.replace(',', '.')}."
    return cause, f"Write a value such as {_EXAMPLES[kind]}."


def implicit_cast(bound: BoundExpr, kind: Type) -> BoundExpr | None:
    """Cast as PostgreSQL does implicitly; None if there is no such cast, ValueError if a text constant is invalid."""
    expr = bound.expr
    if bound.type is kind:
        return bound
    if isinstance(expr, Constant) and _adopts_type(bound):
        return bound_constant(None if expr.value is None else parse_constant(str(expr.value), kind), kind)
    wider = {(INTEGER, REAL): "to_real", (DATE, TIMESTAMP): "to_timestamp"}.get((bound.type, kind))
    return bound_call(wider, bound) if wider else None


def common_type(bounds: Sequence[BoundExpr]) -> Type | None:
    """Return the common type of several expressions; None if there is none."""
    types = (
        {bound.type for bound in bounds if not _adopts_type(bound)}
        or {bound.type for bound in bounds} - {TEXT}
        or {TEXT}
    )
    for pair, wider in (({INTEGER, REAL}, REAL), ({DATE, TIMESTAMP}, TIMESTAMP)):
        types = {wider} if types == pair else types
    return types.pop() if len(types) == 1 else None


def _adopts_type(bound: BoundExpr) -> bool:
    """Return whether an expression adopts the type of the others: NULL or a text constant."""
    return is_null(bound) or (isinstance(bound.expr, Constant) and bound.type is TEXT)


_READERS: dict[Operand, Callable[[ExprReader, exp.Expr], Any]] = {
    Operand.VALUE: lambda reader, node: reader.bind(node),
    Operand.CONDITION: lambda reader, node: reader.bind_as(node, BOOLEAN),
    Operand.NUMBER: lambda reader, node: reader.bind_number(node),
    Operand.REAL: lambda reader, node: reader.bind_as(node, REAL),
    Operand.TEXT: lambda reader, node: reader.bind_as(node, TEXT),
    **dict.fromkeys((Operand.PART, Operand.CONSTANT_TEXT), lambda reader, node: reader.constant_text(node)),
    **dict.fromkeys((Operand.DIGITS, Operand.CONSTANT_INTEGER), lambda reader, node: reader.constant_integer(node)),
}


_MAX_COMPUTED = 100  # values of an expression, computed for each comparison
_MAX_DEPTH = 5
_MAX_COMPARED = 1_000  # values searched for a close match
_MAX_SHOWN = 10


class UndeclaredValue(Refused):
    """A comparison with a value that a column or expression never has."""


def check_declared(value: BoundExpr, other: BoundExpr, lists: DeclaredLists, node: exp.Expr, clause: str) -> None:
    """Refuse an equality with a constant that is not among the declared values of an expression."""
    if isinstance(value.expr, Constant):
        value, other = other, value
    if isinstance(value.expr, Constant) or not isinstance(other.expr, Constant) or other.expr.value is None:
        return
    declared = _possible_values(value.expr, lists)
    if declared is not None and other.expr.value not in declared:
        cause = f"{_format_value(other.expr.value)} is not a declared value of {_compared_sql(node)}"
        raise _undeclared_refusal(node, clause, cause, _nearest_hint(other.expr.value, declared))


def check_pattern(value: BoundExpr, pattern: Expr, lists: DeclaredLists, node: exp.Expr, clause: str) -> None:
    """Refuse LIKE with a pattern that no declared value matches; slow patterns are not checked."""
    declared = _possible_values(value.expr, lists) if isinstance(value.expr, Column) else None
    if declared is None or len(declared) > _MAX_COMPUTED or not isinstance(pattern, Call):
        return
    pattern_text = pattern.args[1]
    if (
        not isinstance(pattern_text, Constant) or str(pattern_text.value).count("%") > 2
    ):  # a regular expression with more wildcards is slow
        return
    if not any(evaluate(pattern, {value.expr.name: text}) for text in declared):  # type: ignore[union-attr]
        cause = f"no declared value of {_compared_sql(node)} matches {_format_value(pattern_text.value)}"
        raise _undeclared_refusal(node, clause, cause, _nearest_hint(str(pattern_text.value).strip("%"), declared))


def _undeclared_refusal(node: exp.Expr, clause: str, cause: str, hint: str) -> UndeclaredValue:
    return UndeclaredValue(str(refuse(node, clause, cause, hint)))


def _possible_values(expr: Expr, lists: DeclaredLists) -> Collection[Value] | None:
    """Return all possible values of an expression; None if they are not declared, or too many."""
    if isinstance(expr, Call) and expr.op == "clip" and isinstance(expr.args[0], Column):
        expr = expr.args[0]
    if isinstance(expr, Column):
        return lists.get(expr.name)
    names = columns_of(expr)
    if expr.type is Type.BOOLEAN or not names or not all(name in lists for name in names) or expr.depth > _MAX_DEPTH:
        return None
    if prod(len(lists[name]) + 1 for name in names) > _MAX_COMPUTED:
        return None
    bounds = {name: BoundExpr(Column(name, kind), domain=tuple(lists[name])) for name, kind in names.items()}
    return domain_of(expr, bounds)


def _compared_sql(node: exp.Expr) -> str:
    """Return the SQL of the compared expression."""
    sides = [side for side in (node.args.get("this"), node.args.get("expression")) if isinstance(side, exp.Expr)]
    named = next((side for side in sides if side.find(exp.Column) is not None), node)
    return shorten(sql_of(named))


def _format_value(value: Value) -> str:
    return f"'{shorten(value)}'" if isinstance(value, str) else str(value)


def _nearest_hint(value: Value, declared: Collection[Value]) -> str:
    texts = {str(each).lower(): _format_value(each) for each in declared if each is not None}
    close = get_close_matches(str(value)[:100].lower(), texts, n=1, cutoff=0.6) if len(texts) <= _MAX_COMPARED else []
    if close:
        return f"Did you mean {texts[close[0]]}?"
    first = ", ".join(list(texts.values())[:_MAX_SHOWN])
    return f"The declared values are {first}{', …' if len(texts) > _MAX_SHOWN else ''}."
