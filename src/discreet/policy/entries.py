"""The sections of the file, as they are written: which keys there are, their types and their defaults."""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, ValidationInfo

from discreet.policy.problems import Entry, shown
from discreet.policy.units import Window
from discreet.policy.values import (
    Count,
    Identifier,
    LedgerPlace,
    Part,
    Place,
    Text,
    Zone,
    connection,
    number,
    validated,
    written,
)

MOST_ROWS = 1 << 36

_LARGEST_EPSILON = 10**6
_LEAST_DELTA = Fraction(1, 10**100)
_SIZE = re.compile(r"[0-9]{1,9}[KMGT]B")
_SHARE = re.compile(r"[1-9][0-9]?%|100%")
_WINDOWS = {f"1 {window}": window for window in Window}


def _epsilon(value: Any, name: str) -> Fraction:
    epsilon = number(value, name)
    if not 0 < epsilon <= _LARGEST_EPSILON:
        raise ValueError(f"{name} must lie above 0 and at most at 10^6, not {shown(value)}.")
    return epsilon


def _delta(value: Any, name: str) -> Fraction:
    delta = number(value, name)
    if delta and not _LEAST_DELTA <= delta < 1:
        raise ValueError(f"{name} must lie from 1e-100 to below 1, not {shown(value)}. Leave it out for none.")
    return delta


def _window(value: Any, name: str) -> Window:
    if isinstance(value, str) and value in _WINDOWS:
        return _WINDOWS[value]
    raise ValueError(f'{name} must be "1 day", "1 week" or "1 month" of the calendar, not {shown(value)}.')


def _section(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be a section of keys, not {shown(value)}.")  # noqa: TRY004 - pydantic gathers these
    return value


def _names(value: Any, name: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value or not all(isinstance(word, str) for word in value):
        raise ValueError(f'{name} must list names of tables, such as ["visits"]. Leave it out to allow all.')
    return tuple(value)


def _each(value: Any, info: ValidationInfo) -> Fraction:
    each, most = _epsilon(value, "each"), info.data.get("epsilon")
    if most and each > most:
        raise ValueError(
            f"each must not exceed the analyst's epsilon of {written(most)}, not {shown(value)}. Lower it."
        )
    return each


def _connection(value: Any, info: ValidationInfo) -> str:
    return connection(value, "connection", info.data.get("engine"))


def _size(value: Any, name: str) -> str:
    if not isinstance(value, str) or not _SIZE.fullmatch(value):
        raise ValueError(f'{name} must be a size such as "500MB" or "4GB", not {shown(value)}.')
    return value


def bytes_of(size: str) -> int:
    """Return the bytes of a size, counted as the engine does.

    >>> bytes_of("4GB")
    4000000000
    """
    return int(size[:-2] + "000" * (1 + "KMGT".index(size[-2])))


def _memory(value: Any, name: str) -> str:
    if isinstance(value, str) and _SHARE.fullmatch(value):
        return value
    if not isinstance(value, str) or not _SIZE.fullmatch(value):
        raise ValueError(f'{name} must be a size such as "4GB", or a share such as "50%", not {shown(value)}.')
    return value


def _seconds(value: Any, name: str) -> Fraction:
    seconds = number(value, name)
    if not Fraction(1, 1000) <= seconds <= 10**7:
        raise ValueError(f"{name} must lie between 0.001 and 10^7, not {shown(value)}.")
    return seconds


Epsilon = Annotated[Fraction, validated(_epsilon)]
Delta = Annotated[Fraction, validated(_delta)]
Section = Annotated[Mapping[str, Any], validated(_section)]


class Data(Entry):
    """What the data set is called, where it and its ledger lie, and what a day is."""

    name: Text = Field(description='Give the data set a name, such as name = "checkins".')
    protects: Text = "person"
    version: Text = "1"
    timezone: Zone = "UTC"
    engine: Literal["duckdb", "postgresql", "spark"] = "duckdb"
    connection: Annotated[str | None, PlainValidator(_connection)] = None
    ledger: LedgerPlace = "ledger.sqlite"


class Analyst(Entry):
    """How much of the budget one analyst may use, and on which tables (None: all)."""

    epsilon: Epsilon = Field(description="Say how much the analyst may spend, such as epsilon = 1.0.")
    delta: Delta | None = None
    each: Annotated[Fraction | None, PlainValidator(_each)] = None
    tables: Annotated[tuple[str, ...] | None, validated(_names)] = None


class Spending(Entry):
    """How much may be learned in all, and what happens on the way there."""

    epsilon: Epsilon = Field(
        description="Say how much may be learned in all, such as epsilon = 1.0; there is no default."
    )
    delta: Delta = Fraction(0)
    discover: Part | None = None
    bounds_report: Part = Fraction(1, 50)
    join_limit: Count = 1000
    failures: Count = 3
    analysts: Annotated[Mapping[str, Analyst], validated(_section)] = Field(default={})  # filled in by read.py

    @property
    def discover_share(self) -> Fraction:
        """The share of delta for discovering groups: half, unless the file says otherwise."""
        if self.discover is not None:
            return self.discover
        return Fraction(1, 2) if self.delta else Fraction(0)


class TuningEntry(Entry):
    """How much of the machine the engine may use; what is not said is the engine's usual. Nothing affects privacy."""

    memory: Annotated[str | None, validated(_memory)] = None
    threads: Count | None = None
    seconds: Annotated[Fraction | None, validated(_seconds)] = None
    folder: Place | None = None
    disk: Annotated[str | None, validated(_size)] = None
    remember: Annotated[str | None, validated(_size)] = None


class ThroughEntry(Entry):
    """`unit = { through = "parent", on = "column" }`."""

    through: Identifier = Field(description='Name the parent table: { through = "visits", on = "visit_id" }.')
    on: Identifier = Field(
        description='Name the column that leads to the parent: { through = "visits", on = "visit_id" }.'
    )
    key: Identifier | None = None


class TableEntry(Entry):
    """A table as it is written; its unit and columns are read apart, so that one mistake hides no other."""

    source: Place = Field(description='Say where the rows are, such as source = "visits.parquet".')
    unit: Any = None
    public: bool = False
    window: Annotated[Window | None, validated(_window)] = None
    time: Identifier | None = None
    groups: Count | None = None
    rows: Count | None = None
    rows_max: Count = MOST_ROWS
    columns: Section = Field(default={})


class PolicyEntry(Entry):
    """The whole file."""

    data: Section = Field(description='Add a section [data] with name = "…".')
    budget: Section = Field(description="Add a section [budget] with epsilon = ….")
    tables: Section = Field(description="Add a section [tables.NAME] for each table.")
    tuning: Section = Field(default={})
