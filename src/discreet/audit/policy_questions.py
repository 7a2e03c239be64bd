"""The questions of an audit: of every kind that a policy may allow, about each of its private tables."""

# ruff: noqa: S608 - to write SQL is what this is for; every name is quoted

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from discreet.audit.planting import limits_of
from discreet.policy import Between, Column, ColumnInWindow, Declared, Keys, Open, Policy, References, Table, Through

_NUMBERS = ("integer", "real", "decimal")
_TIMES = ("date", "timestamp")
_MOST_KEYS = 1000  # groups of one question; more would take an audit too long


@dataclass(frozen=True)
class Asked:
    """A question of an audit: what it is about, its kind, its text and its limits."""

    table: str
    kind: str
    sql: str
    groups: int
    rows: int

    @property
    def name(self) -> str:
        """What the report calls it."""
        return f"{self.table}: {self.kind}"


def questions(policy: Policy) -> list[Asked]:
    """Return one question of each kind about each private table; a curator may refuse some, by the policy.

    >>> policy = Policy.of({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> [asked.kind for asked in questions(policy)]
    ['COUNT(*)', 'COUNT(DISTINCT who)', 'rows of each person', 'who IN (SELECT …)']
    """
    private = [table for table in policy.tables.values() if not table.public]
    found = []
    for table in private:
        groups, rows = limits_of(table)
        texts = [*_whole(table), *_columns(table), *_per_person(table), *_joins(table, policy)]
        found += [Asked(table.name, kind, sql, groups, rows) for kind, sql in texts]
    for first, second in combinations(private, 2):
        groups, rows = limits_of(first)
        found += [Asked(first.name, kind, sql, groups, rows) for kind, sql in _together(first, second)]
    return found


def quoted(name: str) -> str:
    """Write a name so that any letters may be in it.

    >>> print(quoted('the "best" ward'))
    "the ""best"" ward"
    """
    return '"' + name.replace('"', '""') + '"'


def person_of(table: Table) -> str | None:
    """Return the column that names the people of a table, if it has one."""
    return table.unit.name if isinstance(table.unit, Column | ColumnInWindow) else None


Text = tuple[str, str]


def _whole(table: Table) -> Iterator[Text]:
    yield "COUNT(*)", f"SELECT COUNT(*) AS n FROM {quoted(table.name)}"
    if (who := person_of(table)) is not None:
        yield f"COUNT(DISTINCT {who})", f"SELECT COUNT(DISTINCT {quoted(who)}) AS n FROM {quoted(table.name)}"


def _columns(table: Table) -> Iterator[Text]:
    source = quoted(table.name)
    own = [column for column in table.columns.values() if column.name != person_of(table)]
    numbers = [column for column in own if _is_summed(column)]
    keys = [column for column in own if _is_listed(column)]
    for column in numbers:
        name = quoted(column.name)
        for what in ("SUM", "AVG", "STDDEV", "MEDIAN"):
            yield f"{what}({column.name})", f"SELECT {what}({name}) AS x FROM {source}"
    for column in keys:
        name = quoted(column.name)
        yield f"COUNT(*) by {column.name}", f"SELECT {name}, COUNT(*) AS n FROM {source} GROUP BY {name}"
        yield f"MODE({column.name})", f"SELECT MODE({name}) AS x FROM {source}"
    for key, number in zip(keys[:1], numbers[:1], strict=False):
        name = quoted(key.name)
        yield (
            f"SUM({number.name}) by {key.name}",
            f"SELECT {name}, SUM({quoted(number.name)}) AS s FROM {source} GROUP BY {name}",
        )
    for column in own:
        yield from _others(column, source)


def _others(column: Declared, source: str) -> Iterator[Text]:
    """Give questions about times and about columns without a domain."""
    name = quoted(column.name)
    if column.type in _TIMES and isinstance(column.domain, Between):
        yield (
            f"COUNT(*) by month of {column.name}",
            f"SELECT date_trunc('month', {name}) AS month, COUNT(*) AS n FROM {source} GROUP BY month",
        )
    if isinstance(column.domain, Open) and column.type in ("text", "integer", "date"):
        yield f"COUNT(DISTINCT {column.name})", f"SELECT COUNT(DISTINCT {name}) AS n FROM {source}"
        yield f"{column.name} discovered", f"SELECT {name}, COUNT(*) AS n FROM {source} GROUP BY {name}"


def _per_person(table: Table) -> Iterator[Text]:
    """Give questions in which people have one row each, or are chosen by rows of theirs."""
    if (who := person_of(table)) is None:
        return
    name, source = quoted(who), quoted(table.name)
    most = 2 * limits_of(table)[1]
    people = f"SELECT {name}, COUNT(*) AS n FROM {source} GROUP BY {name}"
    yield "rows of each person", f"SELECT SUM(CLIP(n, 0, {most})) AS x FROM ({people}) AS people"
    yield f"{who} IN (SELECT …)", f"SELECT COUNT(*) AS n FROM {source} WHERE {name} IN (SELECT {name} FROM {source})"


def _joins(table: Table, policy: Policy) -> Iterator[Text]:
    """Give joins along the lines that a policy draws: to a parent, and to public tables."""
    source = quoted(table.name)
    if isinstance(table.unit, Through):
        parent, on, key = table.unit.table, quoted(table.unit.on), quoted(table.unit.key)
        joined = f"{source} AS c JOIN {quoted(parent)} AS p ON c.{on} = p.{key}"
        yield f"COUNT(*) joined with {parent}", f"SELECT COUNT(*) AS n FROM {joined}"
        for column in policy.tables[parent].columns.values():
            if _is_summed(column):
                yield (
                    f"SUM({parent}.{column.name}) joined",
                    f"SELECT SUM(p.{quoted(column.name)}) AS s FROM {joined}",
                )
                break
    for column in table.columns.values():
        if isinstance(column.domain, References):
            public, key, name = column.domain.table, quoted(column.domain.column), quoted(column.name)
            yield (
                f"COUNT(*) joined with {public} by {column.name}",
                f"SELECT COUNT(*) AS n FROM {source} AS t JOIN {quoted(public)} AS p ON t.{name} = p.{key}",
            )


def _together(first: Table, second: Table) -> Iterator[Text]:
    """Give questions about two tables of the same people."""
    one, other = person_of(first), person_of(second)
    if one is None or other is None:
        return
    a, b, x, y = quoted(first.name), quoted(second.name), quoted(one), quoted(other)
    yield f"joined with {second.name}", f"SELECT COUNT(*) AS n FROM {a} AS a JOIN {b} AS b ON a.{x} = b.{y}"
    yield f"{one} in {second.name}", f"SELECT COUNT(*) AS n FROM {a} WHERE {x} IN (SELECT {y} FROM {b})"
    yield (
        f"UNION ALL with {second.name}",
        f"SELECT COUNT(*) AS n FROM (SELECT {x} AS who FROM {a} UNION ALL SELECT {y} AS who FROM {b}) AS u",
    )


def _is_summed(column: Declared) -> bool:
    return column.type in _NUMBERS and isinstance(column.domain, Between | Keys)


def _is_listed(column: Declared) -> bool:
    few = isinstance(column.domain, Keys) and len(column.domain.values) <= _MOST_KEYS
    return few or isinstance(column.domain, References)
