"""The queries on public tables that all engines answer alike; `source` is what follows FROM, and names are quoted."""

from collections.abc import Sequence


def select_values(source: str, name: str) -> str:
    """Select the distinct values v of a column, without NULL.

    >>> select_values("wards", '"ward"')
    'SELECT DISTINCT "ward" AS v FROM wards WHERE "ward" IS NOT NULL'
    """
    return f"SELECT DISTINCT {name} AS v FROM {source} WHERE {name} IS NOT NULL"  # noqa: S608 - quoted names


def select_fanout(source: str, names: Sequence[str]) -> str:
    """Select the largest number n of rows that are equal in these columns; NULL equals nothing."""
    present = " AND ".join(f"{name} IS NOT NULL" for name in names) or "TRUE"
    rows = f"SELECT COUNT(*) AS n FROM {source} WHERE {present}"  # noqa: S608 - quoted names
    grouped = f"{rows} GROUP BY {', '.join(names)}" if names else rows
    return f"SELECT COALESCE(MAX(n), 0) AS n FROM ({grouped}) AS g"  # noqa: S608 - quoted names


def select_rows(source: str, names: Sequence[str], limit: int) -> str:
    """Select columns of at most `limit` rows."""
    return f"SELECT {', '.join(names)} FROM {source} LIMIT {limit:d}"  # noqa: S608 - quoted names
