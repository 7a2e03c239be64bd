"""Declared columns: their types and their public domains."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, ValidationInfo

from discreet.policy.problems import Entry, format_value, with_article
from discreet.policy.toml import FloatText
from discreet.policy.validators import parse_number

ColumnType = Literal["integer", "real", "decimal", "boolean", "text", "date", "timestamp"]
DomainValue = int | Fraction | str | date | datetime

_MAX_KEYS = 1_000_000
_INT64_LIMIT = 1 << 63
_MAX_MAGNITUDE = Fraction(10) ** 300  # neither the value nor its sum over a table overflows a double
_MAX_DECIMAL_SCALE = 10**38
_ORDERED_TYPES = ("integer", "real", "decimal", "date", "timestamp")
_NUMERIC_TYPES = ("integer", "real", "decimal")


@dataclass(frozen=True)
class Between:
    """All values from low to high, both inclusive; numbers are rounded to multiples of the step."""

    low: DomainValue
    high: DomainValue
    step: Fraction | None
    outside: Literal["clip", "null"]


@dataclass(frozen=True)
class Keys:
    """Exactly these values, in the order of the file; each of a column `within` another one is of a value of that."""

    values: tuple[DomainValue, ...]
    within: tuple[str, ...] = ()


@dataclass(frozen=True)
class References:
    """The values of a public table's column."""

    table: str
    column: str


@dataclass(frozen=True)
class NoDomain:
    """No public domain: values cannot be summed, and grouping needs partition selection."""


Domain = Between | Keys | References | NoDomain


@dataclass(frozen=True)
class DeclaredColumn:
    """A column that queries may use; with `null`, NULL is a separate group.

    Each value of a `unique` column, such as an e-mail address, belongs to a single row or unit. Each value of a column
    `within` another column of the table belongs to one value of that, as each town belongs to one region: by the lists
    of its domain, or by the column of that name in the public table that it references.
    """

    name: str
    type: ColumnType
    domain: Domain
    null: bool
    unique: bool = False
    within: str | None = None


def default_step(low: Fraction, high: Fraction) -> Fraction:
    """Return the largest power of two that divides the range into at least 2^20 steps.

    >>> default_step(Fraction(-90), Fraction(90))
    Fraction(1, 8192)
    """
    max_step = (high - low) / (1 << 20)
    step = Fraction(2) ** (max_step.numerator.bit_length() - max_step.denominator.bit_length())
    return step if step <= max_step else step / 2


def parse_value(kind: str, value: Any) -> DomainValue:
    """Parse a value of a column's type; a ValueError describes the expected form."""
    expected, parse = _PARSERS[kind]
    parsed = parse(value)
    if parsed is None:
        raise ValueError(f"{expected}, not {format_value(value)}")
    return parsed


def _parse_integer(value: Any) -> int | None:
    return (
        value
        if isinstance(value, int) and not isinstance(value, bool) and -_INT64_LIMIT <= value < _INT64_LIMIT
        else None
    )


def _parse_real(value: Any) -> Fraction | None:
    if isinstance(value, bool) or not isinstance(value, int | float | FloatText | Fraction | str):
        return None
    try:
        exact = parse_number(value, "")
    except ValueError:
        return None
    return exact if abs(exact) <= _MAX_MAGNITUDE else None


def _parse_decimal(value: Any) -> Fraction | None:
    exact = _parse_real(value)
    return exact if exact is not None and _MAX_DECIMAL_SCALE % exact.denominator == 0 else None


def _parse_date(value: Any) -> date | None:
    return value if isinstance(value, date) and not isinstance(value, datetime) else None


def _parse_timestamp(value: Any) -> datetime | None:
    if isinstance(value, datetime):
        return value if value.tzinfo is None else None
    return datetime.combine(value, time.min) if isinstance(value, date) else None


_PARSERS: dict[str, tuple[str, Callable[[Any], DomainValue | None]]] = {
    "integer": ("a 64-bit integer", _parse_integer),
    "real": ("a finite number", _parse_real),
    "decimal": ("a decimal number", _parse_decimal),
    "boolean": ("true or false", lambda value: value if isinstance(value, bool) else None),
    "text": ("a quoted string", lambda value: value if isinstance(value, str) and "\0" not in value else None),
    "date": ("a date such as 2026-01-31, without quotes", _parse_date),
    "timestamp": ("a date or local time such as 2026-01-31T12:00:00, without quotes or offset", _parse_timestamp),
}


def _parse_between(value: Any, info: ValidationInfo) -> tuple[DomainValue, DomainValue] | None:
    kind = info.data.get("type")
    if kind is None:
        return None  # the type is invalid and already reported, so its values cannot be checked
    if kind not in _ORDERED_TYPES:
        raise ValueError(f"between is not allowed for {with_article(kind)} column. Use in, or remove it.")
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError(f"between must be a list of two bounds, such as [0, 100], not {format_value(value)}.")
    try:
        low, high = (parse_value(kind, end) for end in value)
    except ValueError as error:
        raise ValueError(f"between: each bound must be {error}.") from None
    if kind == "timestamp" and not isinstance(value[1], datetime):
        high = datetime.combine(value[1], time.max)  # the range includes the whole last day
    if not low < high:  # type: ignore[operator]
        raise ValueError(
            f"between: the lower bound must be less than the upper bound, not "
            f"[{format_value(value[0])}, {format_value(value[1])}]. Swap them, or list a single value with in."
        )
    return low, high


def _parse_keys(value: Any, info: ValidationInfo) -> Keys | None:
    kind = info.data.get("type")
    if kind is None:
        return None
    if isinstance(value, dict):
        lists = [(group, values) for group, values in value.items() if isinstance(values, list | tuple)]
        if len(lists) < len(value) or not value:
            raise ValueError(
                'in must be a list of values, or lists by the values of another column: { North = ["a"] }.'
            )
        within = tuple(group for group, values in lists for _ in values)
        value = [each for _, values in lists for each in values]
    else:
        within = ()
    if kind == "real":
        raise ValueError('in is not allowed for a real column: list values need an exact type. Use type = "decimal".')
    if info.data.get("between"):
        raise ValueError("in cannot be combined with between: a column has one domain. Remove one of them.")
    if not isinstance(value, list | tuple) or not 0 < len(value) <= _MAX_KEYS:
        size = f"a list of {len(value)}" if isinstance(value, list | tuple) else format_value(value)
        raise ValueError(f'in must be a list of 1 to {_MAX_KEYS:,} values, such as ["a", "b"], not {size}.')
    expected, parse = _PARSERS[kind]
    parsed: list[Any] = [parse(raw) for raw in value]
    if None in parsed:
        raw = value[parsed.index(None)]
        raise ValueError(f"in: each value must be {expected}, not {format_value(raw)}.")
    if len(set(parsed)) < len(parsed):
        first: dict[Any, int] = {}
        raw = next(raw for index, raw in enumerate(value) if first.setdefault(parsed[index], index) != index)
        raise ValueError(f"in lists {format_value(raw)} twice. Remove one of them.")
    return Keys(tuple(parsed), within)


def _parse_references(value: Any, info: ValidationInfo) -> References:
    if info.data.get("type") == "real":
        raise ValueError("references is not allowed for a real column: keys need an exact type. Use between.")
    for other, name in (("between", "between"), ("keys", "in")):
        if info.data.get(other):
            raise ValueError(f"references cannot be combined with {name}: a column has one domain. Remove one of them.")
    table, dot, column = value.partition(".") if isinstance(value, str) else ("", "", "")
    if not (table and dot and column):
        raise ValueError(f'references must be "table.column" of a public table, not {format_value(value)}.')
    return References(table, column)


def _parse_step(value: Any, info: ValidationInfo) -> Fraction:
    kind, ends = info.data.get("type"), info.data.get("between")
    step = parse_number(value, "step")
    if kind and kind not in _NUMERIC_TYPES:
        raise ValueError(f"step is not allowed for {with_article(kind)} column: only numbers are rounded. Remove it.")
    if kind and "between" in info.data and not ends:
        raise ValueError("step needs between: a column without bounds is not summed. Declare between, or remove step.")
    if step <= 0:
        raise ValueError(f"step must be greater than 0, not {format_value(value)}.")
    if kind == "integer" and step.denominator != 1:
        raise ValueError(f"step of an integer column must be an integer, not {format_value(value)}.")
    if ends and step > ends[1] - ends[0]:
        raise ValueError(f"step must not exceed the range of between, not {format_value(value)}. Use a smaller one.")
    return step


def _parse_outside(value: Any, info: ValidationInfo) -> str:
    if value not in ("clip", "null"):
        raise ValueError(f'outside must be "clip" or "null", not {format_value(value)}.')
    if "type" in info.data and "between" in info.data and not info.data["between"]:
        raise ValueError("outside needs between, which defines the range. Declare between, or remove outside.")
    return str(value)


def _parse_unique(value: Any, info: ValidationInfo) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"unique must be true or false, not {format_value(value)}.")  # noqa: TRY004 - pydantic collects these
    for other, name in (("keys", "in"), ("references", "references"), ("null", "null")):
        if value and info.data.get(other):
            raise ValueError(
                f"unique cannot be combined with {name}, which declares shared groups. Remove one of them."
            )
    if value and info.data.get("type") == "boolean":
        raise ValueError("unique is not allowed for a boolean column, which has only two values. Remove it.")
    return value


def _parse_within(value: Any, info: ValidationInfo) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"within must be the name of another column, not {format_value(value)}.")
    for other in ("null", "unique"):
        if info.data.get(other):
            raise ValueError(f"within cannot be combined with {other}. Remove one of them.")
    keys = info.data.get("keys")
    if "keys" in info.data and "references" in info.data and not (keys and keys.within) and not info.data["references"]:
        hint = f"Write references, or in = {{ A = […], B = […] }} with the values of {value} before the lists."
        raise ValueError(f"within needs to know where each value belongs. {hint}")
    return value


class ColumnEntry(Entry):
    """A column as written in the file; later keys are checked against earlier ones."""

    type: ColumnType = Field(description='Declare one, such as { type = "integer" }.')
    between: Annotated[tuple[DomainValue, DomainValue] | None, PlainValidator(_parse_between)] = None
    keys: Annotated[Keys | None, PlainValidator(_parse_keys)] = Field(default=None, alias="in")
    references: Annotated[References | None, PlainValidator(_parse_references)] = None
    step: Annotated[Fraction | None, PlainValidator(_parse_step)] = None
    outside: Annotated[Literal["clip", "null"], PlainValidator(_parse_outside)] = "clip"
    null: bool = False
    unique: Annotated[bool, PlainValidator(_parse_unique)] = False
    within: Annotated[str | None, PlainValidator(_parse_within)] = None

    def to_column(self, name: str) -> DeclaredColumn:
        """Return the declared column, with its domain and defaults filled in."""
        return DeclaredColumn(name, self.type, self._to_domain(), self.null, self.unique, self.within)

    def _to_domain(self) -> Domain:
        if self.between:
            return Between(*self.between, self._resolved_step(*self.between), self.outside)
        if self.keys:
            return self.keys
        if self.references:
            return self.references
        return Keys((False, True)) if self.type == "boolean" else NoDomain()

    def _resolved_step(self, low: Any, high: Any) -> Fraction | None:
        if self.type not in _NUMERIC_TYPES or self.step:
            return self.step
        step = default_step(Fraction(low), Fraction(high))
        return max(Fraction(1), step) if self.type == "integer" else step
