"""Questions that would fail on some values if an engine let them: whether they do must not tell of anybody."""

# ruff: noqa: S608 - to write SQL is what this is for; every name is quoted

from collections.abc import Callable, Container, Iterator

from discreet.audit.planting import limits_of
from discreet.audit.policy_questions import Asked, person_of, quoted
from discreet.policy import Between, Declared, Policy, Table, Through


def risky(policy: Policy, tables: Container[str]) -> list[Asked]:
    """Return questions about these tables whose expressions have no value for some rows.

    >>> policy = Policy.of({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1}, "tables": {"visits": {"source": "v", "unit": "who",
    ...     "columns": {"who": {"type": "integer"}, "age": {"type": "integer", "between": [0, 99]}}}},
    ... })
    >>> risky(policy, ["visits"])[0].sql
    'SELECT COUNT(*) AS n FROM "visits" WHERE 1 / ("age" - (99)) > 0'
    """
    found = []
    for table in policy.tables.values():
        if table.name not in tables:
            continue
        groups, rows = limits_of(table)
        texts = [f"SELECT {what} FROM {quoted(table.name)} {where}".strip() for what, where in _texts(table)]
        found += [Asked(table.name, text, text, groups, rows) for text in texts]
    return found


def _texts(table: Table) -> Iterator[tuple[str, str]]:
    leads = {person_of(table), table.unit.on if isinstance(table.unit, Through) else None}
    own = [column for column in table.columns.values() if column.name not in leads]
    first = {column.type: column for column in reversed(own)}
    for kind, column in first.items():
        yield from _WRITERS.get(kind, _of_numbers)(column)


def _of_numbers(column: Declared) -> Iterator[tuple[str, str]]:
    x = quoted(column.name)
    high = column.domain.high if isinstance(column.domain, Between) else 0
    end = f"({high if isinstance(high, int) else float(high)!r})"  # type: ignore[arg-type]
    count = "COUNT(*) AS n"
    yield count, f"WHERE 1 / ({x} - {end}) > 0"
    yield count, f"WHERE CAST({x} * {x} AS INTEGER) = 7"
    yield count, f"WHERE EXP({x} * {x}) > 1"
    yield f"SUM(CLIP(LN({x} - {end}), 0, 1)) AS s", ""
    yield f"SUM(CLIP(SQRT({end} - {x} - 1), 0, 1)) AS s", ""
    yield f"SUM(CLIP({x} * {x} * {x} * {x}, 0, 1)) AS s", ""
    yield f"AVG(CLIP(1 / ({x} - {end}), 0, 1)) FILTER (WHERE {x} = {end}) AS a", ""


def _of_texts(column: Declared) -> Iterator[tuple[str, str]]:
    x = quoted(column.name)
    yield "COUNT(*) AS n", f"WHERE CAST({x} AS INTEGER) > 0"
    yield "COUNT(*) AS n", f"WHERE CAST({x} AS DATE) > DATE '2000-01-01'"
    yield "COUNT(*) AS n", f"WHERE SUBSTRING({x}, 1000, 5) = UPPER({x})"


def _of_times(column: Declared) -> Iterator[tuple[str, str]]:
    x = quoted(column.name)
    yield "COUNT(*) AS n", f"WHERE EXTRACT(year FROM {x}) / (EXTRACT(year FROM {x}) - 2024) > 0"
    yield "COUNT(*) AS n", f"WHERE date_trunc('week', {x}) > DATE '2000-01-01'"


_WRITERS: dict[str, Callable[[Declared], Iterator[tuple[str, str]]]] = {
    "text": _of_texts,
    "date": _of_times,
    "timestamp": _of_times,
    "boolean": lambda _: iter(()),
}
