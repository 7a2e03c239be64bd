"""The sections of a policy file: their keys, types and defaults."""

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, ValidationInfo

from discreet.policy.declarations import AUTO, Bound, Window
from discreet.policy.problems import Entry, format_value
from discreet.policy.validators import (
    Identifier,
    LedgerSetting,
    Location,
    Portion,
    PositiveCount,
    Statement,
    TextLine,
    TimeZoneName,
    as_validator,
    format_number,
    number_where,
    parse_connection,
    parse_count,
    parse_statement,
)

DEFAULT_ROWS_MAX = 1 << 36
NONE = "none"  # the owner's statement that there is nothing to list

_MAX_EPSILON = 10**6
_MIN_DELTA = Fraction(1, 10**100)
_MAX_TICK = 60
_SIZE = "[0-9]{1,9}[KMGT]B"
_WINDOWS = {f"1 {window}": window for window in Window}


_parse_epsilon = number_where(lambda epsilon: 0 < epsilon <= _MAX_EPSILON, "greater than 0 and at most 1,000,000")
_parse_delta = number_where(lambda delta: not delta or _MIN_DELTA <= delta < 1, "0, or at least 1e-100 and less than 1")
_parse_seconds = number_where(lambda seconds: Fraction(1, 1000) <= seconds <= 10**7, "between 0.001 and 10,000,000")
_parse_tick = number_where(lambda tick: 0 <= tick <= _MAX_TICK, f"between 0 and {_MAX_TICK} seconds")


def _parse_window(value: Any, name: str) -> Window:
    if isinstance(value, str) and value in _WINDOWS:
        return _WINDOWS[value]
    raise ValueError(f'{name} must be "1 day", "1 week" or "1 month", not {format_value(value)}.')


def _parse_section(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be a section of keys, not {format_value(value)}.")  # noqa: TRY004 - pydantic collects these
    return value


def _parse_table_names(value: Any, name: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value or not all(isinstance(word, str) for word in value):
        raise ValueError(f'{name} must be a list of table names, such as ["visits"]. Omit it to allow all tables.')
    return tuple(value)


def _parse_each(value: Any, info: ValidationInfo) -> Fraction:
    each, total = _parse_epsilon(value, "each"), info.data.get("epsilon")
    if total and each > total:
        raise ValueError(
            f"each must not exceed the analyst's epsilon {format_number(total)}, not {format_value(value)}. Lower it."
        )
    return each


def _parse_engine_connection(value: Any, info: ValidationInfo) -> str:
    return parse_connection(value, "connection", info.data.get("engine"))


def _parse_bound(value: Any, name: str) -> Bound:
    if value == AUTO:
        return AUTO
    try:
        return parse_count(value, name)
    except ValueError:
        raise ValueError(f'{name} must be an integer from 1 to 2^62, or "auto", not {format_value(value)}.') from None


def _text_matching(pattern: re.Pattern[str], wanted: str) -> Callable[[Any, str], str]:
    """Return a parser of texts of a certain form."""

    def parse(value: Any, name: str) -> str:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise ValueError(f"{name} must be {wanted}, not {format_value(value)}.")
        return value

    return parse


_parse_size = _text_matching(re.compile(_SIZE), 'a size such as "500MB" or "4GB"')
_parse_memory = _text_matching(
    re.compile(rf"{_SIZE}|[1-9][0-9]?%|100%"), 'a size such as "4GB", or a share such as "50%"'
)


def size_in_bytes(size: str) -> int:
    """Return a size in bytes; as in DuckDB, the units are powers of 1000.

    >>> size_in_bytes("4GB")
    4000000000
    """
    return int(size[:-2] + "000" * (1 + "KMGT".index(size[-2])))


def _parse_statements(value: Any, name: str) -> tuple[str, ...]:
    """Parse a list of statements; "none" is the statement that there is nothing to list."""
    if value == NONE:
        return ()
    if not isinstance(value, list | tuple) or not value:
        raise ValueError(f'{name} must be "none", or a list of texts, not {format_value(value)}.')
    return tuple(parse_statement(text, name) for text in value)


Epsilon = Annotated[Fraction, as_validator(_parse_epsilon)]
Delta = Annotated[Fraction, as_validator(_parse_delta)]
StatementList = Annotated[tuple[str, ...], as_validator(_parse_statements)]
Section = Annotated[Mapping[str, Any], as_validator(_parse_section)]


class DataEntry(Entry):
    """The section [data]: name, engine, ledger and time zone of the data set, and the population it belongs to."""

    name: TextLine = Field(description='Give the data set a name, such as name = "checkins".')
    population: TextLine | None = None
    protects: TextLine = "person"
    version: TextLine | None = None
    timezone: TimeZoneName = "UTC"
    engine: Literal["duckdb", "postgresql", "spark"] = "duckdb"
    connection: Annotated[str | None, PlainValidator(_parse_engine_connection)] = None
    ledger: LedgerSetting = "ledger.sqlite"

    @property
    def version_label(self) -> str:
        """The label of the data under which answers are cached; unlike `version`, not a statement about the data."""
        return "1" if self.version is None else self.version


class DatasetEntry(Entry):
    """The limit of this data set under the budget of its population."""

    epsilon: Epsilon = Field(description="Set the limit of this data set, such as epsilon = 0.5.")
    delta: Delta | None = None


class AnalystEntry(Entry):
    """One analyst's budget, and the tables they may query (None: all)."""

    epsilon: Epsilon = Field(description="Set the analyst's budget, such as epsilon = 1.0.")
    delta: Delta | None = None
    each: Annotated[Fraction | None, PlainValidator(_parse_each)] = None
    tables: Annotated[tuple[str, ...] | None, as_validator(_parse_table_names)] = None


class BudgetEntry(Entry):
    """The total budget, and how it may be spent."""

    epsilon: Epsilon = Field(description="Set the total privacy budget, such as epsilon = 1.0; there is no default.")
    delta: Delta = Fraction(0)
    discover: Portion | None = None
    bounds_report: Portion = Fraction(1, 50)
    bounds_share: Portion = Fraction(1, 20)
    join_limit: PositiveCount = 1000
    failures: PositiveCount = 3
    analysts: Annotated[Mapping[str, AnalystEntry], as_validator(_parse_section)] = Field(default={})  # set by parser
    dataset: Annotated[DatasetEntry | None, as_validator(_parse_section)] = None  # set by parser

    @property
    def discover_share(self) -> Fraction:
        """The share of delta for partition selection: one half by default."""
        if self.discover is not None:
            return self.discover
        return Fraction(1, 2) if self.delta else Fraction(0)


class TuningEntry(Entry):
    """Resource limits of the engine, by default its own; none of them affects privacy."""

    memory: Annotated[str | None, as_validator(_parse_memory)] = None
    threads: PositiveCount | None = None
    seconds: Annotated[Fraction | None, as_validator(_parse_seconds)] = None
    folder: Location | None = None
    disk: Annotated[str | None, as_validator(_parse_size)] = None
    totals_cache: Annotated[str | None, as_validator(_parse_size)] = None


class ServerEntry(Entry):
    """When answers leave a server, what analysts must state, and how much they may ask of it."""

    tick: Annotated[Fraction, as_validator(_parse_tick)] = Fraction(1, 4)
    strict: bool = False
    purpose: Literal["required"] | None = None
    approval_above: Epsilon | None = None
    requests_per_minute: PositiveCount = 1000
    failures_per_minute: PositiveCount = 10


class ReleaseEntry(Entry):
    """What only the owner can state about what is published; reports quote it, and it does not affect any release.

    A list is empty if the owner states that there is none, and None if they state nothing.
    """

    publisher: Statement | None = None
    intended_use: Statement | None = None
    region: Statement | None = None
    sector: Statement | None = None
    invariants: StatementList | None = None
    other_releases: StatementList | None = None
    epsilon_reason: Statement | None = None
    bounds_reason: Statement | None = None
    unit_reason: Statement | None = None
    access: Statement | None = None
    related_people: Statement | None = None
    missing_values: Statement | None = None


class ThroughEntry(Entry):
    """`unit = { through = "parent", on = "column" }`."""

    through: Identifier = Field(description='Name the parent table: { through = "visits", on = "visit_id" }.')
    on: Identifier = Field(
        description='Name the column that refers to the parent: { through = "visits", on = "visit_id" }.'
    )
    key: Identifier | None = None


class TableEntry(Entry):
    """A table as written; its unit and columns are parsed separately, so that one mistake does not hide another."""

    source: Location = Field(description='Give the location of the data, such as source = "visits.parquet".')
    unit: Any = None
    public: bool = False
    window: Annotated[Window | None, as_validator(_parse_window)] = None
    time: Identifier | None = None
    groups: Annotated[Bound | None, as_validator(_parse_bound)] = None
    rows: Annotated[Bound | None, as_validator(_parse_bound)] = None
    rows_max: PositiveCount = DEFAULT_ROWS_MAX
    contribution_max: PositiveCount | None = None
    sample: Literal["simple"] | None = None
    sample_size: PositiveCount | None = None
    population_size: PositiveCount | None = None
    columns: Section = Field(default={})


class PolicyEntry(Entry):
    """The whole file."""

    data: Section = Field(description='Add a section [data] with name = "…".')
    budget: Section = Field(description="Add a section [budget] with epsilon = ….")
    tables: Section = Field(description="Add a section [tables.NAME] for each table.")
    tuning: Section = Field(default={})
    release: Section = Field(default={})
    server: Section = Field(default={})
