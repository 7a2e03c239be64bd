"""Where an expression above a release stands, and how it is read there: by rules, and what has no rule is refused."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from discreet.kernel.errors import Refused
from discreet.sql.after.casts import as_text, fitted
from discreet.sql.after.values import NUMBERS, Kind, Value
from discreet.sql.places import quoted, refuse, written

_LONGEST = 100_000  # characters of the SQL for one expression
_WIDEST = 20_000  # characters that a text may be made of
_CHANGING = (
    exp.Rand,
    exp.Randn,
    exp.Uuid,
    exp.CurrentDate,
    exp.CurrentDatetime,
    exp.CurrentTime,
    exp.CurrentTimestamp,
    exp.CurrentUser,
    exp.Localtime,
    exp.Localtimestamp,
)


@dataclass(frozen=True)
class Rule:
    """How a node is read, and which of its arguments may be there."""

    arguments: str
    read: Callable[[Any, "Env"], Value]


Rules = Mapping[type[exp.Expr], Rule]


@dataclass(frozen=True)
class Env:
    """The clause, the rules, and what columns, inner queries and windows mean there."""

    clause: str
    rules: Rules
    column: Callable[[exp.Column, "Env"], Value]
    query: Callable[[exp.Expr, "Env"], Value]
    known: Callable[[exp.Expr, "Env"], Value | None] = lambda *_: None
    window: Callable[[exp.Window, "Env"], Value] | None = None

    def value(self, node: exp.Expr | None) -> Value:
        """Return what an expression means; whatever has no rule is refused."""
        if node is None:
            raise refuse(None, self.clause, "a function lacks an argument", "Write all of its arguments")
        known = self.known(node, self)
        if known is not None:
            return known
        rule = self.rules.get(type(node))
        if rule is None:
            raise self.unknown(node)
        surplus = [name for name, given in node.args.items() if given and name not in rule.arguments.split()]
        if surplus:
            cause = f"{called(node)} with {surplus[0].strip('_')} is not supported"
            raise self.refuse(node, cause, "Leave that part out")
        found = rule.read(node, self)
        if len(found.sql) > _LONGEST or found.width > _WIDEST:
            raise self.refuse(node, "the expression is too large", "Compute it in fewer steps")
        return found

    def condition(self, node: exp.Expr) -> Value:
        """Return what a condition means: it must be true, false or NULL."""
        return fitted(self.value(node), Kind.BOOLEAN, node, self.clause)

    def numbers(self, nodes: Sequence[exp.Expr], values: Sequence[Value]) -> tuple[list[Value], Kind]:
        """Return values, which must be numbers, as the kind that they have together."""
        for node, each in zip(nodes, values, strict=True):
            if each.kind not in (*NUMBERS, Kind.UNKNOWN):
                raise self.refuse(node, f"{each.kind} stands where a number is needed", "Use CAST, or a number")
        kinds = [each.kind for each in values if each.kind is not Kind.UNKNOWN]
        kind = max(kinds, key=NUMBERS.index, default=Kind.INTEGER)
        return [fitted(each, kind, node, self.clause) for node, each in zip(nodes, values, strict=True)], kind

    def number(self, node: exp.Expr) -> Value:
        """Return what an expression means, which must be a number."""
        return self.numbers([node], [self.value(node)])[0][0]

    def text(self, node: exp.Expr) -> Value:
        """Return what an expression means, which must be a text."""
        found = self.value(node)
        if found.kind not in (Kind.TEXT, Kind.UNKNOWN):
            raise self.refuse(node, f"{found.kind} stands where a text is needed", "Use CAST(… AS text)")
        return as_text(found)

    def constant_text(self, node: exp.Expr) -> Value:
        """Return a string constant."""
        found = self.value(node)
        if found.literal is None:
            raise self.refuse(node, "only a constant text can stand here", "Write it between quotation marks")
        return as_text(found)

    def whole(self, node: exp.Expr | None, *, most: int) -> int:
        """Return an integer constant, which must not be larger than `most` in either direction."""
        if node is None:
            raise refuse(None, self.clause, "a function lacks an argument", "Write all of its arguments")
        inside = node.this if isinstance(node, exp.Neg) else node
        plain = isinstance(inside, exp.Literal) and not inside.is_string and inside.name.isdecimal()
        if not plain or len(inside.name) > 12:
            raise self.refuse(node, "only a whole number can stand here", "Write a constant such as 2")
        number = -int(inside.name) if isinstance(node, exp.Neg) else int(inside.name)
        if abs(number) > most:
            raise self.refuse(node, f"{number} is too large here", f"Write at most {most}")
        return number

    def refuse(self, node: exp.Expr, cause: str, way_out: str) -> Refused:
        """Return a refusal that names the clause."""
        return refuse(node, self.clause, cause, way_out)

    def unknown(self, node: exp.Expr) -> Refused:
        """Return the refusal of what has no rule."""
        if isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup):
            return self.refuse(node, f"{called(node)} cannot stand here", "Aggregate in an inner query, or use HAVING")
        if isinstance(node, _CHANGING):
            return self.refuse(node, f"{called(node)} gives another result each time", "Write the value itself")
        if isinstance(node, exp.Any | exp.All | exp.Array):
            return self.refuse(node, f"{called(node)} is not supported", "Use IN (…)")
        cause = f"{called(node)} is not on the list of what can be computed above a release"
        return self.refuse(node, cause, "Leave it out")


def called(node: exp.Expr) -> str:
    """Return what the question calls a function or an operator."""
    if isinstance(node, exp.Filter | exp.WithinGroup):
        return called(node.this)
    if isinstance(node, exp.Anonymous):
        return quoted(str(node.this))
    if isinstance(node, exp.GroupConcat):
        return "STRING_AGG"
    if isinstance(node, exp.Func):
        return str(node.meta.get("name") or node.sql_name()).upper()
    return quoted(written(node))
