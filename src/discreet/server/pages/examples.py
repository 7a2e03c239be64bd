"""Questions to begin with, made from the policy alone."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from discreet.policy.column_domains import Between, DeclaredColumn, Keys
from discreet.policy.declarations import DeclaredTable
from discreet.server.pages.schema import identifier

_NUMBERS = ("integer", "real", "decimal")
_MAX_EXAMPLES = 4


@dataclass(frozen=True)
class ExampleQuestion:
    """A question in words and in SQL."""

    title: str
    sql: str


def example_questions(tables: Iterable[DeclaredTable]) -> tuple[ExampleQuestion, ...]:
    """Return a few questions that the policy allows: counts and averages, in all and by groups.

    >>> from discreet.policy import Policy
    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {
    ...         "source": "v.csv", "unit": "row", "columns": {"ward": {"type": "text", "in": ["A"]}}
    ...     }},
    ... })
    >>> [each.title for each in example_questions(policy.tables.values())]
    ['rows of visits', 'rows of visits by ward']
    """
    private = [table for table in tables if not table.public]
    return tuple(each for table in private for each in _about(table))[:_MAX_EXAMPLES]


def _about(table: DeclaredTable) -> Iterator[ExampleQuestion]:
    source = identifier(table.name)
    yield ExampleQuestion(f"rows of {table.name}", f"SELECT COUNT(*) AS n FROM {source}")  # noqa: S608 - quoted
    key = next((each for each in table.columns.values() if isinstance(each.domain, Keys)), None)
    value = next((each for each in table.columns.values() if _is_averaged(each)), None)
    if key:
        name = identifier(key.name)
        yield ExampleQuestion(
            f"rows of {table.name} by {key.name}",
            f"SELECT {name}, COUNT(*) AS n FROM {source} GROUP BY {name}",  # noqa: S608 - quoted
        )
    if value:
        average = f"AVG({identifier(value.name)}) AS mean"
        name = identifier(key.name) if key else ""
        yield ExampleQuestion(
            f"average {value.name}" + (f" by {key.name}" if key else ""),
            f"SELECT {name}, {average} FROM {source} GROUP BY {name}" if key else f"SELECT {average} FROM {source}",  # noqa: S608 - quoted
        )


def _is_averaged(column: DeclaredColumn) -> bool:
    return column.type in _NUMBERS and isinstance(column.domain, Between)
