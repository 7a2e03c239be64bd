"""How the parts of an expression are read: literals, casts between types, and what to say if one does not fit."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from math import isfinite

from sqlglot import exp

from discreet.kernel.errors import Refused
from discreet.kernel.expr import Constant, Type, Value
from discreet.sql.places import refuse
from discreet.sql.values.bound import Bound
from discreet.sql.values.declared import Lists, check_declared
from discreet.sql.values.ranges import call, is_null, known

INTEGER, REAL, BOOLEAN, TEXT, DATE, TIMESTAMP = Type
KINDS = {
    INTEGER: "an integer",
    REAL: "a number",
    BOOLEAN: "true or false",
    TEXT: "text",
    DATE: "a date",
    TIMESTAMP: "a timestamp",
}
_EXAMPLES = {
    INTEGER: "42",
    REAL: "4.2",
    BOOLEAN: "TRUE or FALSE",
    DATE: "'2010-01-31'",
    TIMESTAMP: "'2010-01-31 12:00:00', in local time and without an offset",
}
_WAYS = {
    (INTEGER, BOOLEAN): "Write x <> 0.",
    (REAL, BOOLEAN): "Write x <> 0.",
    (TEXT, BOOLEAN): "Compare it with something.",
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
TRUE = ("t", "tr", "tru", "true", "y", "ye", "yes", "on", "1")
FALSE = ("f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0")
_WHOLE = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII)
_MOMENT = re.compile(r"(\d{4}-\d{1,2}-\d{1,2})(?:[ t]+(\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?))?", re.ASCII)
LONGEST = 100_000  # characters of a text


@dataclass(frozen=True)
class Reader:
    """How the parts of an expression are read; `clause` is where it stands, for refusals."""

    bind: Callable[[exp.Expression], Bound]
    clause: str
    lists: Lists = field(default_factory=dict)  # declared values of columns

    def equal(self, node: exp.Expression, value: Bound, other: Bound) -> Bound:
        """Compare two parts; a constant must be a declared value of what it is compared with."""
        check_declared(value, other, self.lists, node, self.clause)
        return call("equal", value, other)

    def refuse(self, node: exp.Expression, cause: str, way_out: str) -> Refused:
        """Return the refusal of a node."""
        return refuse(node, self.clause, cause, way_out)

    def need(self, node: exp.Expression, kind: Type) -> Bound:
        """Read a part that must have this type."""
        return self.turned(node, self.bind(node), kind)

    def number(self, node: exp.Expression) -> Bound:
        """Read a part that must be an integer or a real."""
        found = self.bind(node)
        return found if found.type is INTEGER else self.turned(node, found, REAL)

    def moment(self, node: exp.Expression) -> Bound:
        """Read a part that must be a date or a timestamp."""
        return as_moment(node, self, self.bind(node))

    def constant(self, node: exp.Expression, kind: Type) -> Value:
        """Read a part that must be a constant, and not NULL."""
        found = self.need(node, kind).expr
        if not isinstance(found, Constant) or found.value is None:
            raise self.refuse(node, f"only a constant can stand here ({KINDS[kind]})", "Write the value itself.")
        return found.value

    def whole(self, node: exp.Expression | None, otherwise: int) -> int:
        """Read a part that must be a constant integer, if it is there."""
        return otherwise if node is None else int(self.constant(node, INTEGER))  # type: ignore[arg-type]

    def together(self, node: exp.Expression, parts: Iterable[exp.Expression]) -> list[Bound]:
        """Read parts that must have one type: text constants and NULL take that of the others."""
        nodes = list(parts)
        found = [self.bind(part) for part in nodes]
        kind = common(found)
        if kind is None:
            names = " and ".join(dict.fromkeys(KINDS[each.type] for each in found))
            raise self.refuse(node, f"{names} do not fit together", "Cast one to the type of the other.")
        return [self.turned(part, each, kind) for part, each in zip(nodes, found, strict=True)]

    def turned(self, node: exp.Expression, found: Bound, kind: Type) -> Bound:
        """Return a part as another type, where PostgreSQL turns it by itself."""
        try:
            turned = convert(found, kind)
        except ValueError:
            cause = f"this text cannot be read as {KINDS[kind]}"
            raise self.refuse(node, cause, f"Write it as {_EXAMPLES[kind]}.") from None
        if turned is None:
            cause = f"{KINDS[kind]} is needed here, not {KINDS[found.type]}"
            raise self.refuse(node, cause, _WAYS.get((found.type, kind), f"Use {KINDS[kind]}."))
        return turned


def as_moment(node: exp.Expression, reader: Reader, found: Bound) -> Bound:
    """Read a text as a date or timestamp where one is wanted."""
    return found if found.type is DATE else reader.turned(node, found, TIMESTAMP)


def read(text: str, kind: Type) -> Value:
    """Read a text constant as another type, as PostgreSQL does; ValueError if it cannot be.

    >>> read("2010-1-31", Type.DATE)
    datetime.date(2010, 1, 31)
    """
    bare = text.strip().lower()
    match kind:
        case Type.TEXT:
            return text
        case Type.INTEGER if _WHOLE.fullmatch(bare):
            return int(bare)
        case Type.REAL if _DECIMAL.fullmatch(bare) and isfinite(float(bare)):
            return float(bare)
        case Type.BOOLEAN if bare in (*TRUE, *FALSE):
            return bare in TRUE
        case Type.DATE | Type.TIMESTAMP if found := _MOMENT.fullmatch(bare):
            day = date(*map(int, found[1].split("-")))
            clock = time.fromisoformat(("0" if (found[2] or "")[1:2] == ":" else "") + (found[2] or "00:00"))
            if kind is TIMESTAMP:
                return datetime.combine(day, clock)
            if clock == time.min:
                return day
    raise ValueError("text must be of the wanted type")


def convert(bound: Bound, kind: Type) -> Bound | None:
    """Return an expression as another type if PostgreSQL turns it by itself; ValueError if its text cannot be read."""
    expr = bound.expr
    if bound.type is kind:
        return bound
    if isinstance(expr, Constant) and _yields(bound):
        return known(None if expr.value is None else read(str(expr.value), kind), kind)
    wider = {(INTEGER, REAL): "to_real", (DATE, TIMESTAMP): "to_timestamp"}.get((bound.type, kind))
    return call(wider, bound) if wider else None


def common(bounds: Sequence[Bound]) -> Type | None:
    """Return the type that several expressions take together; None if there is none."""
    firm = {each.type for each in bounds if not _yields(each)} or {each.type for each in bounds} - {TEXT} or {TEXT}
    for pair, wider in (({INTEGER, REAL}, REAL), ({DATE, TIMESTAMP}, TIMESTAMP)):
        firm = {wider} if firm == pair else firm
    return firm.pop() if len(firm) == 1 else None


def _yields(bound: Bound) -> bool:
    """Tell whether an expression takes the type of what it meets: NULL, and a text constant."""
    return is_null(bound) or (isinstance(bound.expr, Constant) and bound.type is TEXT)


Handler = Callable[[exp.Expression, Reader], Bound]
