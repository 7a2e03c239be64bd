"""The queries of a policy audit: one of every kind, and some whose expressions could fail."""

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from itertools import combinations

from discreet.audit.policy.neighbouring_databases import contribution_bounds
from discreet.kernel.sqlgen.dialect import quote_name
from discreet.policy import (
    Between,
    DeclaredColumn,
    DeclaredTable,
    Keys,
    NoDomain,
    ParentTableUnit,
    Policy,
    References,
)

# ruff: noqa: S608 - this module writes SQL; every name is quoted


_NUMBER_TYPES = ("integer", "real", "decimal")
_TIME_TYPES = ("date", "timestamp")
_MAX_KEYS = 1000  # groups of one query, to keep an audit short


@dataclass(frozen=True)
class AuditQuery:
    """A query of an audit with its contribution bounds."""

    table: str
    kind: str
    sql: str
    groups: int
    rows: int

    @property
    def name(self) -> str:
        """Name in the report."""
        return f"{self.table}: {self.kind}"


def audit_queries(policy: Policy) -> list[AuditQuery]:
    """Return one query of each kind for each private table; the curator may refuse some.

    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> [query.kind for query in audit_queries(policy)]
    ['COUNT(*)', 'COUNT(DISTINCT who)', 'rows per unit', 'who IN (SELECT …)']
    """
    private = [table for table in policy.tables.values() if not table.public]
    queries = []
    for table in private:
        groups, rows = contribution_bounds(table)
        texts = [
            *_table_queries(table),
            *_column_queries(table),
            *_per_unit_queries(table),
            *_join_queries(table, policy),
        ]
        queries += [AuditQuery(table.name, kind, sql, groups, rows) for kind, sql in texts]
    for first, second in combinations(private, 2):
        groups, rows = contribution_bounds(first)
        queries += [AuditQuery(first.name, kind, sql, groups, rows) for kind, sql in _two_table_queries(first, second)]
    return queries


NamedSql = tuple[str, str]


def _table_queries(table: DeclaredTable) -> Iterator[NamedSql]:
    yield "COUNT(*)", f"SELECT COUNT(*) AS n FROM {quote_name(table.name)}"
    if (unit := table.unit_column) is not None:
        yield (
            f"COUNT(DISTINCT {unit})",
            f"SELECT COUNT(DISTINCT {quote_name(unit)}) AS n FROM {quote_name(table.name)}",
        )


def _column_queries(table: DeclaredTable) -> Iterator[NamedSql]:
    source = quote_name(table.name)
    columns = [column for column in table.columns.values() if column.name != table.unit_column]
    numbers = [column for column in columns if _is_summable(column)]
    keys = [column for column in columns if _has_listed_keys(column)]
    for column in numbers:
        name = quote_name(column.name)
        for function in ("SUM", "AVG", "STDDEV", "MEDIAN"):
            yield f"{function}({column.name})", f"SELECT {function}({name}) AS x FROM {source}"
    for column in keys:
        name = quote_name(column.name)
        yield f"COUNT(*) by {column.name}", f"SELECT {name}, COUNT(*) AS n FROM {source} GROUP BY {name}"
        yield f"MODE({column.name})", f"SELECT MODE({name}) AS x FROM {source}"
    for key, number in zip(keys[:1], numbers[:1], strict=False):
        name = quote_name(key.name)
        yield (
            f"SUM({number.name}) by {key.name}",
            f"SELECT {name}, SUM({quote_name(number.name)}) AS s FROM {source} GROUP BY {name}",
        )
    for column in columns:
        yield from _time_and_open_column_queries(column, source)


def _time_and_open_column_queries(column: DeclaredColumn, source: str) -> Iterator[NamedSql]:
    """Yield queries about times and about columns without a domain."""
    name = quote_name(column.name)
    if column.type in _TIME_TYPES and isinstance(column.domain, Between):
        yield (
            f"COUNT(*) by month of {column.name}",
            f"SELECT date_trunc('month', {name}) AS month, COUNT(*) AS n FROM {source} GROUP BY month",
        )
    if isinstance(column.domain, NoDomain) and column.type in ("text", "integer", "date"):
        yield f"COUNT(DISTINCT {column.name})", f"SELECT COUNT(DISTINCT {name}) AS n FROM {source}"
        yield f"COUNT(*) by {column.name} (threshold)", f"SELECT {name}, COUNT(*) AS n FROM {source} GROUP BY {name}"


def _per_unit_queries(table: DeclaredTable) -> Iterator[NamedSql]:
    """Yield queries with one row per unit, or that select units by their rows."""
    if (unit := table.unit_column) is None:
        return
    name, source = quote_name(unit), quote_name(table.name)
    upper = 2 * contribution_bounds(table)[1]
    rows_per_unit = f"SELECT {name}, COUNT(*) AS n FROM {source} GROUP BY {name}"
    yield "rows per unit", f"SELECT SUM(CLIP(n, 0, {upper})) AS x FROM ({rows_per_unit}) AS people"
    yield f"{unit} IN (SELECT …)", f"SELECT COUNT(*) AS n FROM {source} WHERE {name} IN (SELECT {name} FROM {source})"


def _join_queries(table: DeclaredTable, policy: Policy) -> Iterator[NamedSql]:
    """Yield joins with the parent table and with public tables."""
    source = quote_name(table.name)
    if isinstance(table.unit, ParentTableUnit):
        parent, on, key = table.unit.table, quote_name(table.unit.on), quote_name(table.unit.key)
        joined = f"{source} AS c JOIN {quote_name(parent)} AS p ON c.{on} = p.{key}"
        yield f"COUNT(*) joined with {parent}", f"SELECT COUNT(*) AS n FROM {joined}"
        for column in policy.tables[parent].columns.values():
            if _is_summable(column):
                yield (
                    f"SUM({parent}.{column.name}) joined",
                    f"SELECT SUM(p.{quote_name(column.name)}) AS s FROM {joined}",
                )
                break
    for column in table.columns.values():
        if isinstance(column.domain, References):
            public, key, name = (
                column.domain.table,
                quote_name(column.domain.column),
                quote_name(column.name),
            )
            yield (
                f"COUNT(*) joined with {public} by {column.name}",
                f"SELECT COUNT(*) AS n FROM {source} AS t JOIN {quote_name(public)} AS p ON t.{name} = p.{key}",
            )


def _two_table_queries(first: DeclaredTable, second: DeclaredTable) -> Iterator[NamedSql]:
    """Yield queries about two tables with the same unit."""
    one, other = first.unit_column, second.unit_column
    if one is None or other is None:
        return
    a, b, x, y = (
        quote_name(first.name),
        quote_name(second.name),
        quote_name(one),
        quote_name(other),
    )
    yield f"joined with {second.name}", f"SELECT COUNT(*) AS n FROM {a} AS a JOIN {b} AS b ON a.{x} = b.{y}"
    yield f"{one} in {second.name}", f"SELECT COUNT(*) AS n FROM {a} WHERE {x} IN (SELECT {y} FROM {b})"
    yield (
        f"UNION ALL with {second.name}",
        f"SELECT COUNT(*) AS n FROM (SELECT {x} AS who FROM {a} UNION ALL SELECT {y} AS who FROM {b}) AS u",
    )


def _is_summable(column: DeclaredColumn) -> bool:
    return column.type in _NUMBER_TYPES and isinstance(column.domain, Between | Keys)


def _has_listed_keys(column: DeclaredColumn) -> bool:
    few = isinstance(column.domain, Keys) and len(column.domain.values) <= _MAX_KEYS
    return few or isinstance(column.domain, References)


def error_prone_queries(policy: Policy, tables: Container[str]) -> list[AuditQuery]:
    """Return queries about these tables with expressions that are undefined for some rows.

    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1}, "tables": {"visits": {"source": "v", "unit": "who",
    ...     "columns": {"who": {"type": "integer"}, "age": {"type": "integer", "between": [0, 99]}}}},
    ... })
    >>> error_prone_queries(policy, ["visits"])[0].sql
    'SELECT COUNT(*) AS n FROM "visits" WHERE 1 / ("age" - (99)) > 0'
    """
    queries = []
    for table in policy.tables.values():
        if table.name not in tables:
            continue
        groups, rows = contribution_bounds(table)
        texts = [
            f"SELECT {selected} FROM {quote_name(table.name)} {where}".strip()
            for selected, where in _error_prone_clauses(table)
        ]
        queries += [AuditQuery(table.name, text, text, groups, rows) for text in texts]
    return queries


def _error_prone_clauses(table: DeclaredTable) -> Iterator[tuple[str, str]]:
    unit_columns = {table.unit_column, table.unit.on if isinstance(table.unit, ParentTableUnit) else None}
    columns = [column for column in table.columns.values() if column.name not in unit_columns]
    first = {column.type: column for column in reversed(columns)}
    for kind, column in first.items():
        yield from _CLAUSES_BY_TYPE.get(kind, _number_clauses)(column)


def _number_clauses(column: DeclaredColumn) -> Iterator[tuple[str, str]]:
    x = quote_name(column.name)
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


def _text_clauses(column: DeclaredColumn) -> Iterator[tuple[str, str]]:
    x = quote_name(column.name)
    yield "COUNT(*) AS n", f"WHERE CAST({x} AS INTEGER) > 0"
    yield "COUNT(*) AS n", f"WHERE CAST({x} AS DATE) > DATE '2000-01-01'"
    yield "COUNT(*) AS n", f"WHERE SUBSTRING({x}, 1000, 5) = UPPER({x})"


def _time_clauses(column: DeclaredColumn) -> Iterator[tuple[str, str]]:
    x = quote_name(column.name)
    yield "COUNT(*) AS n", f"WHERE EXTRACT(year FROM {x}) / (EXTRACT(year FROM {x}) - 2024) > 0"
    yield "COUNT(*) AS n", f"WHERE date_trunc('week', {x}) > DATE '2000-01-01'"


_CLAUSES_BY_TYPE: dict[str, Callable[[DeclaredColumn], Iterator[tuple[str, str]]]] = {
    "text": _text_clauses,
    "date": _time_clauses,
    "timestamp": _time_clauses,
    "boolean": lambda _: iter(()),
}
