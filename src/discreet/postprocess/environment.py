"""Translate expressions over released tables by rules; nodes without a rule are refused."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlglot import exp

from discreet.kernel.errors import Refused
from discreet.postprocess.sql_expression import NUMERIC_TYPES, SqlExpr, SqlType
from discreet.postprocess.type_conversion import as_text, coerce, coerce_together
from discreet.query.syntax.operations import VOLATILE, NodeRule, Operand, function_hint
from discreet.query.syntax.syntax_tree import function_name, refuse, surplus_arguments

_MAX_SQL_LENGTH = 100_000  # characters of the SQL for one expression
_MAX_TEXT_WIDTH = 20_000  # maximum characters of a computed text
_MAX_POSITION = 1_000_000  # in a text
_MAX_DIGITS = 15
Rules = Mapping[type[exp.Expr], NodeRule]


@dataclass(frozen=True)
class Env:
    """The rules for a clause, and how columns, subqueries and windows are translated in it.

    `draw` is the SQL of the number of the draw, if the tables have the rows of several.
    """

    clause: str
    rules: Rules
    column: Callable[[exp.Column, "Env"], SqlExpr]
    subquery: Callable[[exp.Expr, "Env"], SqlExpr]
    replacement: Callable[[exp.Expr, "Env"], SqlExpr | None] = lambda *_: None
    window: Callable[[exp.Window, "Env"], SqlExpr] | None = None
    draw: str | None = None

    def translate(self, node: exp.Expr | None) -> SqlExpr:
        """Translate an expression; nodes without a rule are refused."""
        if node is None:
            raise refuse(None, self.clause, "a function call is incomplete", "Write all of its operands")
        replacement = self.replacement(node, self)
        if replacement is not None:
            return replacement
        rule = self.rules.get(type(node))
        if rule is None:
            raise self.unknown_refusal(node)
        self.check_arguments(node, rule.arguments)
        expr: SqlExpr = rule.read(node, self)
        if len(expr.sql) > _MAX_SQL_LENGTH or expr.width > _MAX_TEXT_WIDTH:
            raise self.refuse(node, "the expression is too large", "Simplify it")
        return expr

    def check_arguments(self, node: exp.Expr, allowed: str) -> None:
        """Refuse a node with arguments that are not allowed."""
        for name in surplus_arguments(node, allowed):
            cause = f"{function_name(node)} with {name.strip('_')} is not supported"
            raise self.refuse(node, cause, "Leave that part out")

    def read(self, node: exp.Expr, kind: Operand) -> Any:
        """Translate an operand; Refused if it is not of this kind."""
        return _READERS[kind](self, node)

    def to_common_type(self, node: exp.Expr, _parts: Sequence[exp.Expr], values: Sequence[SqlExpr]) -> list[SqlExpr]:
        """Return values converted to their common type."""
        return coerce_together(values, node, self.clause)[0]

    def condition(self, node: exp.Expr) -> SqlExpr:
        """Translate a boolean expression."""
        return coerce(self.translate(node), SqlType.BOOLEAN, node, self.clause)

    def common_numbers(self, nodes: Sequence[exp.Expr], values: Sequence[SqlExpr]) -> tuple[list[SqlExpr], SqlType]:
        """Return numbers converted to their common type."""
        for node, expr in zip(nodes, values, strict=True):
            if expr.kind not in (*NUMERIC_TYPES, SqlType.UNKNOWN):
                raise self.refuse(node, f"expected a number, not {expr.kind}", "Use CAST, or a number")
        kinds = [value.kind for value in values if value.kind is not SqlType.UNKNOWN]
        kind = max(kinds, key=NUMERIC_TYPES.index, default=SqlType.INTEGER)
        return [coerce(each, kind, node, self.clause) for node, each in zip(nodes, values, strict=True)], kind

    def number(self, node: exp.Expr) -> SqlExpr:
        """Translate a numeric expression."""
        return self.common_numbers([node], [self.translate(node)])[0][0]

    def text(self, node: exp.Expr) -> SqlExpr:
        """Translate a text expression."""
        expr = self.translate(node)
        if expr.kind not in (SqlType.TEXT, SqlType.UNKNOWN):
            raise self.refuse(node, f"expected text, not {expr.kind}", "Use CAST(… AS text)")
        return as_text(expr)

    def constant_text(self, node: exp.Expr) -> str:
        """Return a string constant."""
        literal = self.translate(node).literal
        if literal is None:
            raise self.refuse(node, "expected a text constant", "Write it in single quotes")
        return literal

    def constant_integer(self, node: exp.Expr | None, *, most: int) -> int:
        """Return an integer constant of absolute value at most `most`."""
        if node is None:
            raise refuse(None, self.clause, "a function call is incomplete", "Write all of its operands")
        inside = node.this if isinstance(node, exp.Neg) else node
        plain = isinstance(inside, exp.Literal) and not inside.is_string and inside.name.isdecimal()
        if not plain or len(inside.name) > 12:
            raise self.refuse(node, "expected an integer constant", "Write a number such as 2")
        number = -int(inside.name) if isinstance(node, exp.Neg) else int(inside.name)
        if abs(number) > most:
            raise self.refuse(node, f"{number} is out of range", f"Write at most {most}")
        return number

    def refuse(self, node: exp.Expr, cause: str, hint: str) -> Refused:
        """Return a refusal that names the clause."""
        return refuse(node, self.clause, cause, hint)

    def unknown_refusal(self, node: exp.Expr) -> Refused:
        """Return the refusal of a node without a rule."""
        if isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup):
            return self.refuse(
                node, f"{function_name(node)} is not allowed here", "Aggregate in a subquery, or use HAVING"
            )
        if isinstance(node, (*VOLATILE, exp.CurrentUser)):
            return self.refuse(
                node,
                f"{function_name(node)} is not supported: its result changes from call to call",
                "Write the value itself",
            )
        in_list = isinstance(node, exp.Any | exp.All | exp.Array)
        hint = "Use IN (…)" if in_list else function_hint(function_name(node)) or "Leave it out"
        return self.refuse(node, f"{function_name(node)} is not supported", hint)


_READERS: dict[Operand, Callable[[Env, exp.Expr], Any]] = {
    **dict.fromkeys((Operand.VALUE, Operand.REAL), Env.translate),
    Operand.CONDITION: Env.condition,
    Operand.NUMBER: Env.number,
    **dict.fromkeys((Operand.TEXT, Operand.PART), Env.text),
    Operand.CONSTANT_TEXT: Env.constant_text,
    Operand.CONSTANT_INTEGER: partial(Env.constant_integer, most=_MAX_POSITION),
    Operand.DIGITS: partial(Env.constant_integer, most=_MAX_DIGITS),
}
