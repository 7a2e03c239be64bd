"""A declared column: its type, and the public domain that its values are taken from."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, ValidationInfo

from discreet.policy.problems import Entry, article, shown
from discreet.policy.toml import Real
from discreet.policy.values import number

ColumnType = Literal["integer", "real", "decimal", "boolean", "text", "date", "timestamp"]
Value = int | Fraction | str | date | datetime

_MOST_KEYS = 1_000_000
_INT64 = 1 << 63
_LARGEST = Fraction(10) ** 300  # a double holds it, and so does its sum over the rows of a table
_FINEST_DECIMAL = 10**38
_ORDERED = ("integer", "real", "decimal", "date", "timestamp")
_NUMBERS = ("integer", "real", "decimal")


@dataclass(frozen=True)
class Between:
    """All values from low to high, both included; numbers are rounded to multiples of the step."""

    low: Value
    high: Value
    step: Fraction | None
    outside: Literal["clip", "null"]


@dataclass(frozen=True)
class Keys:
    """Exactly these values, in the order of the file."""

    values: tuple[Value, ...]


@dataclass(frozen=True)
class References:
    """The values of a public table's column."""

    table: str
    column: str


@dataclass(frozen=True)
class Open:
    """No public domain: values cannot be summed, and groups must be discovered."""


Domain = Between | Keys | References | Open


@dataclass(frozen=True)
class Declared:
    """A column that questions may use; with `null`, missing values are a group of their own.

    A value of a `unique` column belongs to one row or unit, such as a name or an e-mail address.
    """

    name: str
    type: ColumnType
    domain: Domain
    null: bool
    unique: bool = False


def default_step(low: Fraction, high: Fraction) -> Fraction:
    """Return the largest power of two that cuts the range into at least 2^20 steps.

    >>> default_step(Fraction(-90), Fraction(90))
    Fraction(1, 8192)
    """
    most = (high - low) / (1 << 20)
    step = Fraction(2) ** (most.numerator.bit_length() - most.denominator.bit_length())
    return step if step <= most else step / 2


def read_value(kind: str, value: Any) -> Value:
    """Read a value of a column's type; ValueError says what such a value looks like."""
    wanted, read = _READERS[kind]
    found = read(value)
    if found is None:
        raise ValueError(f"{wanted}, not {shown(value)}")
    return found


def _integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and -_INT64 <= value < _INT64 else None


def _real(value: Any) -> Fraction | None:
    if isinstance(value, bool) or not isinstance(value, int | float | Real | Fraction | str):
        return None
    try:
        exact = number(value, "")
    except ValueError:
        return None
    return exact if abs(exact) <= _LARGEST else None


def _decimal(value: Any) -> Fraction | None:
    exact = _real(value)
    return exact if exact is not None and _FINEST_DECIMAL % exact.denominator == 0 else None


def _date(value: Any) -> date | None:
    return value if isinstance(value, date) and not isinstance(value, datetime) else None


def _timestamp(value: Any) -> datetime | None:
    if isinstance(value, datetime):
        return value if value.tzinfo is None else None
    return datetime.combine(value, time.min) if isinstance(value, date) else None


_READERS: dict[str, tuple[str, Callable[[Any], Value | None]]] = {
    "integer": ("a whole number of at most 64 bits", _integer),
    "real": ("a finite number", _real),
    "decimal": ("a decimal number", _decimal),
    "boolean": ("true or false", lambda value: value if isinstance(value, bool) else None),
    "text": ("a text in quotes", lambda value: value if isinstance(value, str) and "\0" not in value else None),
    "date": ("a date such as 2026-01-31, without quotes", _date),
    "timestamp": ("a date or local time such as 2026-01-31T12:00:00, without quotes or offset", _timestamp),
}


def _between(value: Any, info: ValidationInfo) -> tuple[Value, Value] | None:
    kind = info.data.get("type")
    if kind is None:
        return None  # the type is wrong, which is reported; nothing can be said about its values
    if kind not in _ORDERED:
        raise ValueError(f"between does not fit {article(kind)} column. List its values with in, or leave it out.")
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError(f"between must be a list of two, such as [0, 100], not {shown(value)}.")
    try:
        low, high = (read_value(kind, end) for end in value)
    except ValueError as error:
        raise ValueError(f"between of {article(kind)} column needs two ends, each {error}.") from None
    if kind == "timestamp" and not isinstance(value[1], datetime):
        high = datetime.combine(value[1], time.max)  # the last day is part of the range
    if not low < high:  # type: ignore[operator]
        raise ValueError(
            f"between must begin below its end, not [{shown(value[0])}, {shown(value[1])}]. "
            "Swap the ends, or list a single value with in."
        )
    return low, high


def _keys(value: Any, info: ValidationInfo) -> tuple[Value, ...] | None:
    kind = info.data.get("type")
    if kind is None:
        return None
    if kind == "real":
        raise ValueError("in does not fit a real column: equal floats are an accident. Use between, or decimal.")
    if info.data.get("between"):
        raise ValueError("in cannot stand beside between: the listed values are the domain. Keep one of them.")
    if not isinstance(value, list | tuple) or not 0 < len(value) <= _MOST_KEYS:
        size = f"a list of {len(value)}" if isinstance(value, list | tuple) else shown(value)
        raise ValueError(f'in must list from 1 to {_MOST_KEYS:,} values, such as ["a", "b"], not {size}.')
    wanted, read = _READERS[kind]
    found: list[Any] = [read(raw) for raw in value]
    if None in found:
        raw = value[found.index(None)]
        raise ValueError(f"in of {article(kind)} column lists values, each {wanted}, not {shown(raw)}.")
    if len(set(found)) < len(found):
        first: dict[Any, int] = {}
        raw = next(raw for place, raw in enumerate(value) if first.setdefault(found[place], place) != place)
        raise ValueError(f"in lists {shown(raw)} twice. Keep one of them.")
    return tuple(found)


def _references(value: Any, info: ValidationInfo) -> References:
    if info.data.get("type") == "real":
        raise ValueError("references does not fit a real column: equal floats are an accident. Use between.")
    for other, name in (("between", "between"), ("keys", "in")):
        if info.data.get(other):
            raise ValueError(f"references cannot stand beside {name}: a column has one domain. Keep one of them.")
    table, dot, column = value.partition(".") if isinstance(value, str) else ("", "", "")
    if not (table and dot and column):
        raise ValueError(f'references must be "table.column" of a public table, not {shown(value)}.')
    return References(table, column)


def _step(value: Any, info: ValidationInfo) -> Fraction:
    kind, ends = info.data.get("type"), info.data.get("between")
    step = number(value, "step")
    if kind and kind not in _NUMBERS:
        raise ValueError(f"step does not fit {article(kind)} column: only numbers are rounded. Leave it out.")
    if kind and "between" in info.data and not ends:
        raise ValueError("step needs between: without a range nothing is summed. Declare between, or leave it out.")
    if step <= 0:
        raise ValueError(f"step must be above 0, not {shown(value)}. Choose how finely values are rounded.")
    if kind == "integer" and step.denominator != 1:
        raise ValueError(f"step of an integer column must be a whole number, not {shown(value)}.")
    if ends and step > ends[1] - ends[0]:
        raise ValueError(f"step must not exceed the range of between, not {shown(value)}. Choose a finer one.")
    return step


def _outside(value: Any, info: ValidationInfo) -> str:
    if value not in ("clip", "null"):
        raise ValueError(f'outside must be "clip" or "null", not {shown(value)}.')
    if "type" in info.data and "between" in info.data and not info.data["between"]:
        raise ValueError("outside needs between: nothing else says what lies outside. Leave it out.")
    return str(value)


def _unique(value: Any, info: ValidationInfo) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"unique must be true or false, not {shown(value)}.")  # noqa: TRY004 - pydantic gathers these
    for other, name in (("keys", "in"), ("references", "references"), ("null", "null")):
        if value and info.data.get(other):
            raise ValueError(f"unique contradicts {name}: its values are groups that many share. Keep one of them.")
    if value and info.data.get("type") == "boolean":
        raise ValueError("unique does not fit a boolean column: it has two values. Leave it out.")
    return value


class ColumnEntry(Entry):
    """A column as it is written in the file; later keys are checked against earlier ones."""

    type: ColumnType = Field(description='Write one, such as { type = "integer" }.')
    between: Annotated[tuple[Value, Value] | None, PlainValidator(_between)] = None
    keys: Annotated[tuple[Value, ...] | None, PlainValidator(_keys)] = Field(default=None, alias="in")
    references: Annotated[References | None, PlainValidator(_references)] = None
    step: Annotated[Fraction | None, PlainValidator(_step)] = None
    outside: Annotated[Literal["clip", "null"], PlainValidator(_outside)] = "clip"
    null: bool = False
    unique: Annotated[bool, PlainValidator(_unique)] = False

    def declared(self, name: str) -> Declared:
        """Return what the entry means."""
        return Declared(name, self.type, self._domain(), self.null, self.unique)

    def _domain(self) -> Domain:
        if self.between:
            return Between(*self.between, self._grid(*self.between), self.outside)
        if self.keys:
            return Keys(self.keys)
        if self.references:
            return self.references
        return Keys((False, True)) if self.type == "boolean" else Open()

    def _grid(self, low: Any, high: Any) -> Fraction | None:
        if self.type not in _NUMBERS or self.step:
            return self.step
        step = default_step(Fraction(low), Fraction(high))
        return max(Fraction(1), step) if self.type == "integer" else step
