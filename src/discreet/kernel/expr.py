"""Row-wise, *total* expressions: an allow-list, each operation with the types that it takes and gives.

Total means: whatever the row holds, the expression has a value or is NULL, and never raises. Nothing but a row's own
columns and constants can be written here; there is no clock, no chance, no other row.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import Enum
from math import isfinite

from discreet.kernel.event import bounded_text
from discreet.kernel.pattern import check_pattern

Value = int | float | bool | str | date | datetime | None

_INT64 = 1 << 63
_HEAVIEST = 5_000  # an expression's size when it is written out: its parts times the places where they appear
_DEEPEST = 200
LONGEST_TEXT = 2_000  # characters of a constant, of joined texts, and of what LOOKS: work for a row is bounded


class Type(Enum):
    """What a column or an expression holds; each may be NULL."""

    INTEGER = "i"
    REAL = "r"
    BOOLEAN = "b"
    TEXT = "t"
    DATE = "d"
    TIMESTAMP = "s"


_CLASSES: dict[Type, type] = {
    Type.INTEGER: int,
    Type.REAL: float,
    Type.BOOLEAN: bool,
    Type.TEXT: str,
    Type.DATE: date,
    Type.TIMESTAMP: datetime,
}

_PARTS = ("year", "quarter", "month", "week", "day", "dow", "isodow", "doy", "hour", "minute", "second")
_WINDOWS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")

# Arguments and result: i r b t d s as in Type; N an integer or a real, O anything with an order, A anything, each the
# same wherever it stands; ! a constant that is not NULL; * once or more.
SIGNATURES = {
    **dict.fromkeys(("add", "subtract", "multiply", "divide"), "N N N"),
    "modulo": "i i i",
    **dict.fromkeys(("negate", "abs", "sign"), "N N"),
    **dict.fromkeys(("floor", "ceil", "sqrt", "ln", "log10", "exp"), "r r"),
    "round": "r i! r",
    "power": "r r r",
    **dict.fromkeys(("least", "greatest"), "O O* O"),
    "clip": "O O! O! O",  # moved to the nearer end
    "inside": "O O! O! O",  # NULL outside
    "to_real": "i r",
    "to_integer": "r i",  # to the nearest, ties to even; NULL where no 64 bits hold it
    "as_integer": "b i",
    "read_integer": "t i",
    "read_real": "t r",
    "read_date": "t d",
    "read_timestamp": "t s",
    "write_integer": "i t",
    "write_boolean": "b t",
    "write_date": "d t",
    **dict.fromkeys(("equal", "less", "at_most"), "O O b"),
    **dict.fromkeys(("and", "or"), "b b* b"),
    "not": "b b",
    "is_null": "A b",
    "one_of": "O O!* b",
    "coalesce": "A A* A",
    "nullif": "O O O",
    **dict.fromkeys(("lower", "upper", "trim", "trim_left", "trim_right"), "t t"),
    "length": "t i",
    "part": "t i! i! t",  # from a position of at least 1, so many characters
    "join": "t t* t",  # the first of LONGEST_TEXT characters
    **dict.fromkeys(("like", "like_any_case", "matches"), "t t! b"),
    **dict.fromkeys(_PARTS, "s i"),
    **{f"trunc_{window}": "s s" for window in _WINDOWS},
    "to_date": "s d",
    "to_timestamp": "d s",
    "days_between": "d d i",
    "add_days": "d i! d",
    "add_seconds": "s i! s",
}
_ORDERED = frozenset(Type)
_NUMBERS = frozenset({Type.INTEGER, Type.REAL})
_CLASS = {"N": _NUMBERS, "O": _ORDERED, "A": frozenset(Type)}

# These look at the first LONGEST_TEXT characters of a text and no more, and cost as much as a hundred others.
LOOKS = frozenset({"like", "like_any_case", "matches", "lower", "upper"})
_LOOK = 100

# How often an argument may have to be written out where an operation becomes SQL, if more than once.
_COPIES = {
    **dict.fromkeys(("power", "like", "like_any_case"), 5),
    **dict.fromkeys(("lower", "upper"), 4),
    **dict.fromkeys(("abs", "clip", "floor", "ceil", "round", "divide"), 3),
    **dict.fromkeys(("modulo", "sqrt", "ln", "log10", "exp", "inside", "nullif", "sign"), 2),
    **dict.fromkeys(("read_integer", "read_real", "read_date", "read_timestamp", "add_days", "add_seconds"), 2),
    **{f"trunc_{window}": 2 for window in _WINDOWS},
}


@dataclass(frozen=True)
class Column:
    """A column of the row."""

    name: str
    type: Type

    def __post_init__(self) -> None:
        check_name(self.name)
        _check_type(self.type)

    weight = depth = 1


@dataclass(frozen=True)
class Constant:
    """A value that the question itself contains; None is NULL.

    >>> Constant(3, Type.INTEGER).value
    3
    """

    value: Value
    type: Type

    def __post_init__(self) -> None:
        _check_type(self.type)
        check_value(self.value, self.type)

    weight = depth = 1


@dataclass(frozen=True)
class Call:
    """An operation of the list on other expressions.

    >>> Call("add", (Constant(1, Type.INTEGER), Constant(2, Type.INTEGER))).type
    <Type.INTEGER: 'i'>
    """

    op: str
    args: tuple["Expr", ...]
    type: Type = field(init=False, compare=False, repr=False)
    weight: int = field(init=False, compare=False, repr=False)
    depth: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        signature = SIGNATURES.get(self.op)
        if signature is None and self.op != "case":
            raise ValueError(f"op must be one of the list, not {self.op!r}")
        if not isinstance(self.args, tuple) or not all(isinstance(arg, Column | Constant | Call) for arg in self.args):
            raise TypeError("args must be a tuple of expressions")
        found = _case_type(self.args) if signature is None else _result(self.op, signature, self.args)
        if self.op in _PATTERNS:
            _PATTERNS[self.op](str(self.args[1].value))  # type: ignore[union-attr]
        if self.op in _SPANS:
            _check_span(self.op, *(arg.value for arg in self.args[1:]))  # type: ignore[union-attr]
        weight = _weight(self.op, sum(arg.weight for arg in self.args))
        depth = 1 + max(arg.depth for arg in self.args)
        if weight > _HEAVIEST or depth > _DEEPEST:
            raise ValueError("the expression is too long or too deeply nested: write it in fewer steps")
        object.__setattr__(self, "type", found)
        object.__setattr__(self, "weight", weight)
        object.__setattr__(self, "depth", depth)


Expr = Column | Constant | Call


def columns_of(expr: Expr) -> dict[str, Type]:
    """Return the columns that an expression reads."""
    if isinstance(expr, Column):
        return {expr.name: expr.type}
    found: dict[str, Type] = {}
    for arg in expr.args if isinstance(expr, Call) else ():
        found |= columns_of(arg)
    return found


def weigh(expr: Expr, columns: Mapping[str, int]) -> int:
    """Return an expression's size, written out, if columns are what they were computed from; stop if it is too long."""
    if isinstance(expr, Column):
        return columns.get(expr.name, 1)
    weight = _weight(expr.op, sum(weigh(arg, columns) for arg in expr.args)) if isinstance(expr, Call) else 1
    if weight > _HEAVIEST:
        raise ValueError("the expression is too long, with what its columns are computed from: write it in fewer steps")
    return weight


def _weight(op: str, args: int) -> int:
    return (_LOOK if op in LOOKS else 1) + _COPIES.get(op, 1) * args


def check_name(name: str) -> str:
    """Read a name of a table or column; those that begin with a dot are the kernel's own."""
    if bounded_text(name, "name", longest=200).startswith(".") or "\0" in name:
        raise ValueError("name must not begin with a dot or contain a NUL")
    return name


def check_value(value: Value, kind: Type) -> None:
    """Stop unless the value is NULL or one of its type that every engine can hold."""
    if value is None:
        return
    if type(value) is not _CLASSES[kind]:
        raise TypeError(f"value must be of type {kind.name.lower()}, not {type(value).__name__}")
    if isinstance(value, str):
        if "\0" in value or len(value) > LONGEST_TEXT:
            raise ValueError(f"value must not contain a NUL or be longer than {LONGEST_TEXT:,} characters")
        value.encode()
    elif isinstance(value, int) and not -_INT64 <= value < _INT64:
        raise ValueError("value must lie within int64")
    elif isinstance(value, float) and not isfinite(value):
        raise ValueError("value must be finite")
    elif isinstance(value, datetime) and value.tzinfo is not None:
        raise ValueError("value must be a local time without an offset")


def _check_type(kind: Type) -> None:
    if not isinstance(kind, Type):
        raise TypeError(f"type must be a Type, not {kind!r}")


def _result(op: str, signature: str, args: tuple[Expr, ...]) -> Type:
    *wanted, result = signature.split()
    if wanted[-1].endswith("*"):
        repeated = wanted.pop()[:-1]
        wanted += [repeated] * max(1, len(args) - len(wanted))
    if len(args) != len(wanted):
        raise TypeError(f"{op} takes {len(wanted)} arguments, not {len(args)}")
    bound: dict[str, Type] = {}
    for arg, pattern in zip(args, wanted, strict=True):
        letter = pattern[0]
        same = bound.setdefault(letter, arg.type) if letter in _CLASS else Type(letter)
        if arg.type is not same or arg.type not in _CLASS.get(letter, _ORDERED):
            raise TypeError(f"{op} does not take {', '.join(each.type.name.lower() for each in args)}")
        if pattern.endswith("!") and not (isinstance(arg, Constant) and arg.value is not None):
            raise TypeError(f"{op} takes a constant there")
    return bound[result] if result in _CLASS else Type(result)


def _case_type(args: tuple[Expr, ...]) -> Type:
    """CASE: conditions and values in turn, and the value that is left at the end."""
    conditions, values = args[:-1:2], (*args[1:-1:2], args[-1] if args else None)
    kinds = {value.type for value in values if value is not None}
    if len(args) < 3 or len(args) % 2 == 0 or len(kinds) != 1:
        raise TypeError("case takes conditions and values in turn, then one more value, all values of one type")
    if any(condition.type is not Type.BOOLEAN for condition in conditions):
        raise TypeError("case takes boolean conditions")
    return kinds.pop()


def _check_like(text: str) -> None:
    if (len(text) - len(text.rstrip("\\"))) % 2:
        raise ValueError("the pattern must not end with a single backslash")


_PATTERNS = {"matches": check_pattern, "like": _check_like, "like_any_case": _check_like}

# The constants of these must stay within what every engine can compute.
_SPANS = {
    "round": ((-15, 15),),
    "part": ((1, 100_000), (0, 100_000)),
    "add_days": ((-3_652_059, 3_652_059),),
    "add_seconds": ((-(10**11), 10**11),),
}


def _check_span(op: str, *constants: Value) -> None:
    for value, (low, high) in zip(constants, _SPANS[op], strict=True):
        if not low <= value <= high:  # type: ignore[operator]
            raise ValueError(f"{op} takes a whole number from {low} to {high} there, not {value}")
