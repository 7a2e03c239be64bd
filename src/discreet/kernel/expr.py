"""Total row-wise expressions, and per-unit aggregates of them.

Total means: whatever the row contains, the expression has a value or is NULL, and never raises an error. An expression
can only use constants and the columns of its own row: no clock, no randomness, no other rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import Enum
from math import isfinite

from discreet.kernel.event import bounded_text
from discreet.kernel.grid import Grid
from discreet.kernel.portable_regex import check_regex

Value = int | float | bool | str | date | datetime | None

_INT64 = 1 << 63
_MAX_SIZE = 5_000  # size of an expanded expression: each part counts as often as it appears in the SQL
_MAX_DEPTH = 200
MAX_TEXT_LENGTH = 2_000  # characters of constants, joined texts and inputs of TEXT_SCANS: bounds the work per row


class Type(Enum):
    """The type of a column or an expression; all are nullable."""

    INTEGER = "i"
    REAL = "r"
    BOOLEAN = "b"
    TEXT = "t"
    DATE = "d"
    TIMESTAMP = "s"


_PYTHON_TYPES: dict[Type, type] = {
    Type.INTEGER: int,
    Type.REAL: float,
    Type.BOOLEAN: bool,
    Type.TEXT: str,
    Type.DATE: date,
    Type.TIMESTAMP: datetime,
}

_DATE_PARTS = ("year", "quarter", "month", "week", "day", "dow", "isodow", "doy", "hour", "minute", "second")
_TRUNC_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")

# Arguments and result: i r b t d s as in Type; N an integer or a real, O any ordered type, A any type, each the same
# wherever it appears; ! a constant that is not NULL; * one or more.
SIGNATURES = {
    **dict.fromkeys(("add", "subtract", "multiply", "divide"), "N N N"),
    "modulo": "i i i",
    **dict.fromkeys(("negate", "abs", "sign"), "N N"),
    **dict.fromkeys(("floor", "ceil", "sqrt", "ln", "log10", "exp"), "r r"),
    "round": "r i! r",
    "power": "r r r",
    **dict.fromkeys(("least", "greatest"), "O O* O"),
    "clip": "O O! O! O",  # clamped to the range
    "inside": "O O! O! O",  # NULL outside
    "to_real": "i r",
    "to_integer": "r i",  # to the nearest, ties to even; NULL if it does not fit in 64 bits
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
    "part": "t i! i! t",  # start position (at least 1), number of characters
    "join": "t t* t",  # at most MAX_TEXT_LENGTH characters
    **dict.fromkeys(("like", "like_any_case", "matches"), "t t! b"),
    **dict.fromkeys(_DATE_PARTS, "s i"),
    **{f"trunc_{window}": "s s" for window in _TRUNC_UNITS},
    "to_date": "s d",
    "to_timestamp": "d s",
    "days_between": "d d i",
    "add_days": "d i! d",
    "add_seconds": "s i! s",
}
_ORDERED = frozenset(Type)
_NUMERIC = frozenset({Type.INTEGER, Type.REAL})
_TYPE_CLASSES = {"N": _NUMERIC, "O": _ORDERED, "A": frozenset(Type)}

# These read only the first MAX_TEXT_LENGTH characters of a text, and cost as much as a hundred other operations.
TEXT_SCANS = frozenset({"like", "like_any_case", "matches", "lower", "upper"})
_SCAN_SIZE = 100

# How often an argument may appear in the SQL of an operation, if more than once.
_ARGUMENT_REPEATS = {
    **dict.fromkeys(("power", "like", "like_any_case"), 5),
    **dict.fromkeys(("lower", "upper"), 4),
    **dict.fromkeys(("abs", "clip", "floor", "ceil", "round", "divide"), 3),
    **dict.fromkeys(("modulo", "sqrt", "ln", "log10", "exp", "inside", "nullif", "sign"), 2),
    **dict.fromkeys(("read_integer", "read_real", "read_date", "read_timestamp", "add_days", "add_seconds"), 2),
    **{f"trunc_{window}": 2 for window in _TRUNC_UNITS},
}


@dataclass(frozen=True)
class Column:
    """A column of the row."""

    name: str
    type: Type

    def __post_init__(self) -> None:
        check_name(self.name)
        _check_type(self.type)

    size = depth = 1


@dataclass(frozen=True)
class Constant:
    """A constant of the question; None is NULL.

    >>> Constant(3, Type.INTEGER).value
    3
    """

    value: Value
    type: Type

    def __post_init__(self) -> None:
        _check_type(self.type)
        check_value(self.value, self.type)

    size = depth = 1


@dataclass(frozen=True)
class Call:
    """A supported operation on other expressions.

    >>> Call("add", (Constant(1, Type.INTEGER), Constant(2, Type.INTEGER))).type
    <Type.INTEGER: 'i'>
    """

    op: str
    args: tuple["Expr", ...]
    type: Type = field(init=False, compare=False, repr=False)
    size: int = field(init=False, compare=False, repr=False)
    depth: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        signature = SIGNATURES.get(self.op)
        if signature is None and self.op != "case":
            raise ValueError(f"op must be a supported operation, not {self.op!r}")
        if not isinstance(self.args, tuple) or not all(isinstance(arg, Column | Constant | Call) for arg in self.args):
            raise TypeError("args must be a tuple of expressions")
        result_type = _case_type(self.args) if signature is None else _result_type(self.op, signature, self.args)
        if self.op in _PATTERN_CHECKS:
            _PATTERN_CHECKS[self.op](str(self.args[1].value))  # type: ignore[union-attr]
        if self.op in _CONSTANT_RANGES:
            _check_constant_ranges(self.op, *(arg.value for arg in self.args[1:]))  # type: ignore[union-attr]
        size = _call_size(self.op, sum(arg.size for arg in self.args))
        depth = 1 + max(arg.depth for arg in self.args)
        if size > _MAX_SIZE or depth > _MAX_DEPTH:
            raise ValueError("the expression is too long or too deeply nested. Simplify it.")
        object.__setattr__(self, "type", result_type)
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "depth", depth)


Expr = Column | Constant | Call


def columns_of(expr: Expr) -> dict[str, Type]:
    """Return the columns that an expression reads."""
    if isinstance(expr, Column):
        return {expr.name: expr.type}
    columns: dict[str, Type] = {}
    for arg in expr.args if isinstance(expr, Call) else ():
        columns |= columns_of(arg)
    return columns


def expanded_size(expr: Expr, column_sizes: Mapping[str, int]) -> int:
    """Return the size of an expression with computed columns expanded; ValueError if it is too long."""
    if isinstance(expr, Column):
        return column_sizes.get(expr.name, 1)
    size = (
        _call_size(expr.op, sum(expanded_size(arg, column_sizes) for arg in expr.args)) if isinstance(expr, Call) else 1
    )
    if size > _MAX_SIZE:
        raise ValueError("the expression is too long, including the columns that it is computed from. Simplify it.")
    return size


def _call_size(op: str, args_size: int) -> int:
    return (_SCAN_SIZE if op in TEXT_SCANS else 1) + _ARGUMENT_REPEATS.get(op, 1) * args_size


def check_name(name: str) -> str:
    """Return the name of a table or column; names that begin with a dot are reserved for the kernel."""
    if bounded_text(name, "name", max_length=200).startswith(".") or "\0" in name:
        raise ValueError("name must not begin with a dot or contain a NUL character")
    return name


def check_value(value: Value, kind: Type) -> None:
    """Raise an error unless the value is NULL, or has the type and a range that every engine supports."""
    if value is None:
        return
    if type(value) is not _PYTHON_TYPES[kind]:
        raise TypeError(f"value must be of type {kind.name.lower()}, not {type(value).__name__}")
    if isinstance(value, str):
        if "\0" in value or len(value) > MAX_TEXT_LENGTH:
            raise ValueError(f"value must not contain a NUL character or exceed {MAX_TEXT_LENGTH:,} characters")
        value.encode()
    elif isinstance(value, int) and not -_INT64 <= value < _INT64:
        raise ValueError("value must be within int64")
    elif isinstance(value, float) and not isfinite(value):
        raise ValueError("value must be finite")
    elif isinstance(value, datetime) and value.tzinfo is not None:
        raise ValueError("value must be a timestamp without time zone")


def _check_type(kind: Type) -> None:
    if not isinstance(kind, Type):
        raise TypeError(f"type must be a Type, not {kind!r}")


def _result_type(op: str, signature: str, args: tuple[Expr, ...]) -> Type:
    *expected, result = signature.split()
    if expected[-1].endswith("*"):
        repeated = expected.pop()[:-1]
        expected += [repeated] * max(1, len(args) - len(expected))
    if len(args) != len(expected):
        raise TypeError(f"{op} takes {len(expected)} arguments, not {len(args)}")
    bound: dict[str, Type] = {}
    for arg, pattern in zip(args, expected, strict=True):
        letter = pattern[0]
        same = bound.setdefault(letter, arg.type) if letter in _TYPE_CLASSES else Type(letter)
        if arg.type is not same or arg.type not in _TYPE_CLASSES.get(letter, _ORDERED):
            raise TypeError(f"{op}({', '.join(other.type.name.lower() for other in args)}) is not supported")
        if pattern.endswith("!") and not (isinstance(arg, Constant) and arg.value is not None):
            raise TypeError(f"{op}: the argument must be a constant")
    return bound[result] if result in _TYPE_CLASSES else Type(result)


def _case_type(args: tuple[Expr, ...]) -> Type:
    """Return the type of CASE: conditions and values alternate, and the last argument is the ELSE value."""
    conditions, values = args[:-1:2], (*args[1:-1:2], args[-1] if args else None)
    kinds = {value.type for value in values if value is not None}
    if len(args) < 3 or len(args) % 2 == 0 or len(kinds) != 1:
        raise TypeError("case takes pairs of a condition and a value, then an ELSE value, all values of the same type")
    if any(condition.type is not Type.BOOLEAN for condition in conditions):
        raise TypeError("case: conditions must be boolean")
    return kinds.pop()


def _check_like(text: str) -> None:
    if (len(text) - len(text.rstrip("\\"))) % 2:
        raise ValueError("the pattern must not end with a single backslash")


_PATTERN_CHECKS = {"matches": check_regex, "like": _check_like, "like_any_case": _check_like}

# Ranges of constants that every engine supports.
_CONSTANT_RANGES = {
    "round": ((-15, 15),),
    "part": ((1, 100_000), (0, 100_000)),
    "add_days": ((-3_652_059, 3_652_059),),
    "add_seconds": ((-(10**11), 10**11),),
}


def _check_constant_ranges(op: str, *constants: Value) -> None:
    for value, (low, high) in zip(constants, _CONSTANT_RANGES[op], strict=True):
        if not low <= value <= high:  # type: ignore[operator]
            raise ValueError(f"{op}: the argument must be an integer from {low} to {high}, not {value}")


class AggregateFunction(Enum):
    """Aggregate functions over the rows of one unit."""

    ROWS = "rows"  # COUNT(*); takes no expression
    COUNT = "count"  # values that are not NULL
    DISTINCT = "distinct"  # distinct values
    MIN = "least"
    MAX = "greatest"
    SUM = "sum"  # of integers; NULL if it does not fit in 64 bits
    GRID_SUM = "steps"  # of numbers on a grid, in steps


@dataclass(frozen=True)
class UnitAggregate:
    """An aggregate over the rows of one unit."""

    function: AggregateFunction
    expr: Expr | None = None
    grid: Grid | None = None

    def __post_init__(self) -> None:
        fits = (self.expr is None) is (self.function is AggregateFunction.ROWS) and (self.grid is None) is not (
            self.function is AggregateFunction.GRID_SUM
        )
        kind = Type.INTEGER if self.expr is None else self.expr.type
        number = self.function is AggregateFunction.GRID_SUM and kind is Type.REAL
        fits = fits and (
            kind is Type.INTEGER or number or self.function not in (AggregateFunction.SUM, AggregateFunction.GRID_SUM)
        )
        if not fits:
            raise ValueError(f"{self.function.value}: invalid arguments")

    @property
    def type(self) -> Type:
        """The type of the result."""
        keeps_type = self.expr is not None and self.function in (AggregateFunction.MIN, AggregateFunction.MAX)
        return self.expr.type if keeps_type and self.expr else Type.INTEGER
