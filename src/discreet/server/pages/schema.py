"""Tables and columns that a person may query, in words and as words to complete."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from discreet.answer.text import short_number
from discreet.policy.column_domains import Between, DeclaredColumn, Keys, References
from discreet.policy.declarations import DeclaredTable

_SHOWN_VALUES = 8
_FUNCTIONS = (
    *(
        "COUNT(*)",
        "COUNT(DISTINCT ",
        "SUM(",
        "AVG(",
        "MEDIAN(",
        "STDDEV(",
        "VARIANCE(",
        "PERCENTILE_CONT(",
        "MIN(",
        "MAX(",
    ),
    *("CLIP(", "FLOOR(", "ROUND(", "CASE WHEN ", "COALESCE(", "EXTRACT(", "DATE_TRUNC(", "LOWER(", "CAST("),
)
_KEYWORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "JOIN", "ON", "AND", "OR", "NOT", "IN", "BETWEEN"),
    *("LIKE", "IS NULL", "AS", "LIMIT", "WITH", "DESC"),
)


@dataclass(frozen=True)
class DescribedColumn:
    """A column in words."""

    name: str
    type: str
    domain: str


@dataclass(frozen=True)
class DescribedTable:
    """A table in words."""

    name: str
    kind: str
    columns: tuple[DescribedColumn, ...]


def described_tables(tables: Iterable[DeclaredTable]) -> tuple[DescribedTable, ...]:
    """Return tables in words, from the policy alone."""
    return tuple(
        DescribedTable(
            table.name, "public" if table.public else "private", tuple(map(_described_column, table.columns.values()))
        )
        for table in tables
    )


def completion_words(tables: Iterable[DescribedTable]) -> str:
    """Return what the editor completes, as JSON: pairs of a word and its kind.

    >>> '["COUNT(*)","function"]' in completion_words(())
    True
    """
    words = [(name, "keyword") for name in _KEYWORDS] + [(name, "function") for name in _FUNCTIONS]
    for table in tables:
        words.append((identifier(table.name), "table"))
        words += [(identifier(column.name), f"{table.name}: {column.type}") for column in table.columns]
    return json.dumps(list(dict.fromkeys(words)), separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def identifier(name: str) -> str:
    """Return a name as a query writes it, in quotes if necessary.

    >>> identifier("ward"), identifier("cost in €")
    ('ward', '"cost in €"')
    """
    quoted = name.replace('"', '""')
    return name if name.isidentifier() else f'"{quoted}"'


def _described_column(column: DeclaredColumn) -> DescribedColumn:
    return DescribedColumn(column.name, column.type, _domain_text(column))


def _domain_text(column: DeclaredColumn) -> str:
    match column.domain:
        case Between(low, high):
            return f"{_value_text(low)} to {_value_text(high)}"
        case Keys(values):
            shown = ", ".join(map(str, values[:_SHOWN_VALUES]))
            return shown + (f" and {len(values) - _SHOWN_VALUES} more" if len(values) > _SHOWN_VALUES else "")
        case References(table, name):
            return f"a {table}.{name}"
    return ""


def _value_text(value: object) -> str:
    return (
        short_number(value, digits=10) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
    )
