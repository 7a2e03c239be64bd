"""Total row-wise expressions, and per-unit aggregates of them.

Total means: whatever the row contains, the expression has a value or is NULL, and never raises an error. An expression
can only use constants and the columns of its own row: no clock, no randomness, no other rows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import Enum
from math import isfinite

from discreet.kernel.errors import require
from discreet.kernel.event import bounded_text
from discreet.kernel.grid import Grid
from discreet.kernel.numbers import check_type

Value = int | float | bool | str | date | datetime | None

MAX_TEXT_LENGTH = 2_000  # characters of constants, joined texts and inputs of TEXT_SCANS: bounds the work per row
# Shared parts count as often as they appear: without these limits, whatever walks an expression could take for ever, or
# exceed Python's recursion limit.
_MAX_SIZE = 5_000
_MAX_DEPTH = 200
MAX_GROWTH = 8  # of a text in which another is replaced, before it is cut off again: bounds the memory per row


class Type(Enum):
    """The type of a column or an expression; all are nullable."""

    INTEGER = "i"
    REAL = "r"
    BOOLEAN = "b"
    TEXT = "t"
    DATE = "d"
    TIMESTAMP = "s"


_PYTHON_TYPES: dict[Type, type] = dict(zip(Type, (int, float, bool, str, date, datetime), strict=True))
_TYPE_CLASSES = {"N": {Type.INTEGER, Type.REAL}, "A": set(Type)}

# Arguments and result: i r b t d s as in Type; N an integer or a real, A any type, each the same wherever it
# appears; ! a constant that is not NULL; * one or more.
SIGNATURES = {
    **dict.fromkeys(("add", "subtract", "multiply", "divide"), "N N N"),
    "modulo": "i i i",
    **dict.fromkeys(("negate", "abs", "sign"), "N N"),
    **dict.fromkeys(("floor", "ceil", "sqrt", "ln", "log10", "exp"), "r r"),
    "round": "r i! r",
    "power": "r r r",
    **dict.fromkeys(("least", "greatest"), "A A* A"),
    "clip": "A A! A! A",  # clamped to the range
    "inside": "A A! A! A",  # NULL outside
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
    **dict.fromkeys(("equal", "less", "at_most"), "A A b"),
    **dict.fromkeys(("and", "or"), "b b* b"),
    "not": "b b",
    "is_null": "A b",
    "one_of": "A A!* b",
    "coalesce": "A A* A",
    "nullif": "A A A",
    **dict.fromkeys(("lower", "upper", "trim", "trim_left", "trim_right"), "t t"),
    "length": "t i",
    "part": "t i! i! t",  # start position (at least 1), number of characters
    **dict.fromkeys(("keep_last", "drop_last"), "t i! t"),  # number of characters (at least 1)
    "position": "t t! i",  # of the first occurrence, from 1; 0 if there is none
    "replace": "t t! t! t",  # all occurrences; at most MAX_TEXT_LENGTH characters
    "split_part": "t i! t! t",  # the field of a number between delimiters; -1 is the last one; empty if none
    "join": "t t* t",  # at most MAX_TEXT_LENGTH characters
    **dict.fromkeys(("like", "like_any_case", "matches"), "t t! b"),
    **dict.fromkeys(("year", "quarter", "month", "week", "day", "dow", "isodow", "doy"), "s i"),
    **dict.fromkeys(("hour", "minute", "second"), "s i"),
    **dict.fromkeys(("trunc_year", "trunc_quarter", "trunc_month", "trunc_week", "trunc_day"), "s s"),
    **dict.fromkeys(("trunc_hour", "trunc_minute", "trunc_second"), "s s"),
    "to_date": "s d",
    "to_timestamp": "d s",
    "days_between": "d d i",
    "add_days": "d i! d",
    "add_seconds": "s i! s",
}
# These read MAX_TEXT_LENGTH characters.
TEXT_SCANS = frozenset({"like", "like_any_case", "matches", "lower", "upper", "position", "replace", "split_part"})
# Ranges of constants that every engine supports.
_CONSTANT_RANGES = {
    "round": ((-15, 15),),
    "part": ((1, 100_000), (0, 100_000)),
    **dict.fromkeys(("keep_last", "drop_last"), ((1, 100_000),)),
    "split_part": ((-MAX_TEXT_LENGTH, MAX_TEXT_LENGTH),),
    "add_days": ((-3_652_059, 3_652_059),),
    "add_seconds": ((-(10**11), 10**11),),
}


@dataclass(frozen=True)
class Column:
    """A column of the row."""

    name: str
    type: Type
    size = depth = 1

    def __post_init__(self) -> None:
        check_name(self.name)
        check_type(Type, self.type, "type")


@dataclass(frozen=True)
class Constant:
    """A constant of the question; None is NULL.

    >>> Constant(3, Type.INTEGER).value
    3
    """

    value: Value
    type: Type
    size = depth = 1

    def __post_init__(self) -> None:
        check_value(self.value, check_type(Type, self.type, "type"))


@dataclass(frozen=True)
class Call:
    """A supported operation on other expressions.

    >>> Call("add", (Constant(1, Type.INTEGER), Constant(2, Type.INTEGER))).type
    <Type.INTEGER: 'i'>

    Claim: the value is a function of constants and of columns of the same row, defined for every row; NULL otherwise.
    Proof: by induction over `args`. Only operations of SIGNATURES and CASE exist. Each dialect and the reference
        compute them as total functions of arguments with these types, and of constants that `_check_constants` accepts;
        each dialect checks the regular expressions of `matches`, before it writes them.
    Needs: Column, Constant, check_name, check_value; each engine's operations are total.
    Checked by: test_other_arguments_are_refused, test_an_unlisted_operation_is_refused,
        test_no_dialect_writes_a_pattern_that_engines_read_differently,
        test_constants_stay_within_what_every_engine_computes, test_every_operation_can_be_written_and_evaluated,
        test_the_engine_equals_the_reference
    """

    op: str
    args: tuple["Expr", ...]
    type: Type = field(init=False, compare=False, repr=False)
    size: int = field(init=False, compare=False, repr=False)
    depth: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        require(self.op in SIGNATURES or self.op == "case", f"op must be a supported operation, not {self.op!r}")
        if not isinstance(self.args, tuple) or not all(isinstance(arg, Expr) for arg in self.args):
            raise TypeError("args must be a tuple of expressions")
        result_type = _case_type(self.args) if self.op == "case" else _result_type(self.op, self.args)
        _check_constants(self.op, self.args[1:])
        size, depth = 1 + sum(arg.size for arg in self.args), 1 + max(arg.depth for arg in self.args)
        require(
            size <= _MAX_SIZE and depth <= _MAX_DEPTH, "the expression is too long or too deeply nested. Simplify it."
        )
        vars(self).update(type=result_type, size=size, depth=depth)  # frozen


Expr = Column | Constant | Call
NamedExprs = tuple[tuple[str, Expr], ...]
Schema = Mapping[str, Type]


def check_name(name: str) -> str:
    """Return the name of a table or column; names that begin with a dot are reserved for the kernel."""
    require(
        not bounded_text(name, "name", max_length=200).startswith(".") and "\0" not in name,
        "name must not begin with a dot or contain a NUL character",
    )
    return name


def schema_of(columns: Iterable[tuple[str, Type]]) -> Schema:
    """Return a schema; ValueError if two names differ only in case, which some engines ignore."""
    types = [(check_name(name), kind) for name, kind in columns]
    require(len({name.casefold() for name, _ in types}) == len(types), "column names must be distinct, ignoring case")
    return dict(types)


def derived_schema(columns: NamedExprs, schema: Schema) -> Schema:
    """Check the expressions of new columns against the schema, and return their types."""
    return schema_of((name, check_columns_exist(expr, schema)) for name, expr in columns)


def check_columns_exist(expr: Expr, schema: Schema) -> Type:
    """Return the type of an expression; an error unless its columns exist and have the types that it expects."""
    if not isinstance(expr, Expr):
        raise TypeError(f"expected an expression, not {type(expr).__name__}")
    if isinstance(expr, Column) and schema.get(expr.name) is not expr.type:
        raise ValueError(f"column {expr.name!r} of type {expr.type.name.lower()} does not exist")
    for arg in expr.args if isinstance(expr, Call) else ():
        check_columns_exist(arg, schema)
    return expr.type


def check_condition(condition: Expr | None, schema: Schema) -> Schema:
    """Return the schema, in which a condition, if there is one, must be a boolean expression."""
    holds = condition is None or check_columns_exist(condition, schema) is Type.BOOLEAN
    require(holds, "a condition must be boolean")
    return schema


def check_value(value: Value, kind: Type) -> None:
    """Raise an error unless the value is NULL, or has the type and a range that every engine supports."""
    if value is not None and type(value) is not _PYTHON_TYPES[kind]:
        raise TypeError(f"value must be of type {kind.name.lower()}, not {type(value).__name__}")
    require(
        not isinstance(value, str) or ("\0" not in value and len(value) <= MAX_TEXT_LENGTH),
        f"value must not contain a NUL character or exceed {MAX_TEXT_LENGTH:,} characters",
    )
    str(value).encode()  # a lone surrogate raises UnicodeEncodeError, a ValueError
    require(not isinstance(value, int) or -(1 << 63) <= value < 1 << 63, "value must be within int64")
    require(not isinstance(value, float) or isfinite(value), "value must be finite")
    require(not isinstance(value, datetime) or value.tzinfo is None, "value must be a timestamp without time zone")


def _result_type(op: str, args: tuple[Expr, ...]) -> Type:
    """Return the type of an operation; TypeError unless its arguments fit the signature."""
    *expected, result = SIGNATURES[op].split()
    if expected[-1].endswith("*"):
        repeated = expected.pop()[:-1]
        expected += [repeated] * max(1, len(args) - len(expected))
    if len(args) != len(expected):
        raise TypeError(f"{op} takes {len(expected)} arguments, not {len(args)}")
    bound: dict[str, Type] = {}  # what N and A stand for in this call
    for arg, pattern in zip(args, expected, strict=True):
        kind = bound.setdefault(pattern[0], arg.type) if pattern[0] in _TYPE_CLASSES else Type(pattern[0])
        if arg.type is not kind or kind not in _TYPE_CLASSES.get(pattern[0], {kind}):
            raise TypeError(f"{op}({', '.join(other.type.name.lower() for other in args)}) is not supported")
        if pattern.endswith("!") and not (isinstance(arg, Constant) and arg.value is not None):
            raise TypeError(f"{op}: the argument must be a constant")
    return bound[result] if result in _TYPE_CLASSES else Type(result)


def _case_type(args: tuple[Expr, ...]) -> Type:
    """Return the type of CASE: conditions and values alternate, and the last argument is the ELSE value."""
    kinds = {value.type for value in (*args[1:-1:2], *args[-1:])}
    if len(args) < 3 or len(args) % 2 == 0 or len(kinds) != 1:
        raise TypeError("case takes pairs of a condition and a value, then an ELSE value, all values of the same type")
    if any(condition.type is not Type.BOOLEAN for condition in args[:-1:2]):
        raise TypeError("case: conditions must be boolean")
    return kinds.pop()


def _check_constants(op: str, args: tuple[Expr, ...]) -> None:
    """Raise ValueError if an engine could fail because of a constant after the first argument."""
    constants = [arg.value for arg in args if isinstance(arg, Constant)]
    texts = [value for value in constants if isinstance(value, str)]
    require(
        op not in ("like", "like_any_case") or (len(texts[0]) - len(texts[0].rstrip("\\"))) % 2 == 0,
        "the pattern must not end with a single backslash",
    )
    require(
        op not in ("position", "replace", "split_part")
        or (len(texts[0]) > 0 and len(texts[-1]) <= MAX_GROWTH * len(texts[0]) and 0 not in constants),
        f"{op}: the text to find is empty, its replacement is too long, or the number of the field is 0",
    )
    for value, (low, high) in zip(constants, _CONSTANT_RANGES.get(op, ()), strict=False):
        require(
            isinstance(value, int) and low <= value <= high,
            f"{op}: the argument must be an integer from {low} to {high}, not {value}",
        )


class AggregateFunction(Enum):
    """Aggregate functions over the rows of one unit."""

    ROWS = "rows"  # COUNT(*); takes no expression
    COUNT = "count"  # values that are not NULL
    DISTINCT = "distinct"  # distinct values
    MIN = "least"
    MAX = "greatest"
    SUM = "sum"  # of integers; NULL if it does not fit in 64 bits
    GRID_SUM = "steps"  # of numbers on a grid, in steps


_AGGREGATED_TYPES: dict[AggregateFunction, set[Type | None]] = {
    AggregateFunction.ROWS: {None},
    AggregateFunction.SUM: {Type.INTEGER},
    AggregateFunction.GRID_SUM: {Type.INTEGER, Type.REAL},
}


@dataclass(frozen=True)
class UnitAggregate:
    """An aggregate over the rows of one unit."""

    function: AggregateFunction
    expr: Expr | None = None
    grid: Grid | None = None

    def __post_init__(self) -> None:
        types = _AGGREGATED_TYPES.get(self.function, set(Type))
        require(
            (self.expr and self.expr.type) in types
            and (self.grid is not None) is (self.function is AggregateFunction.GRID_SUM),
            f"{self.function.value}: invalid arguments",
        )

    @property
    def type(self) -> Type:
        """The type of the result."""
        keeps_type = (AggregateFunction.MIN, AggregateFunction.MAX)
        return self.expr.type if self.expr is not None and self.function in keeps_type else Type.INTEGER
