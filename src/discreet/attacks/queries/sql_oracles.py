"""Oracles: functions that answer an SQL query with a number, exactly or with an easy fix.

Each easy fix takes an oracle and returns another. An oracle may also answer with an array, one number per target. NaN
means that the query was refused.

A user's defence is a function that takes the table of people (an Arrow table, called `people` in queries) and returns
an oracle; the oracle may also refuse a query by raising `discreet.Refused`.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np

SqlOracle = Callable[[str], Any]

# The first match in a query is its aggregate; a quoted name may contain any character.
_AGGREGATE = re.compile(r"""\w+\(("([^"]|"")*"|[^()"])*\)""")


def exact_oracle(table: Any) -> SqlOracle:
    """Return an oracle that answers every query about the table `people` exactly.

    >>> import pyarrow as pa
    >>> ask = exact_oracle(pa.table({"age": [30, 40], "ill": [0, 1]}))
    >>> ask("SELECT COUNT(*) FROM people WHERE age > 35")
    1.0
    """
    run = sql_runner({"people": table})

    def ask(sql: str) -> float:
        ((number,),) = run(sql)
        return 0.0 if number is None else float(number)  # an empty sum

    return ask


def sql_runner(tables: dict[str, Any]) -> Callable[[str], list[tuple[Any, ...]]]:
    """Return a function that runs SQL on these tables and caches results by text.

    >>> import pyarrow as pa
    >>> sql_runner({"people": pa.table({"age": [30, 40]})})("SELECT MAX(age) FROM people")
    [(40,)]
    """
    import duckdb  # noqa: PLC0415 - slow to import

    connection = duckdb.connect()
    for name, table in tables.items():
        connection.register(name, table)
    results: dict[str, list[tuple[Any, ...]]] = {}

    def run(sql: str) -> list[tuple[Any, ...]]:
        if sql not in results:
            results[sql] = connection.execute(sql).fetchall()
        return results[sql]

    return run


def refuse_small_sets(oracle: SqlOracle, smallest: int) -> SqlOracle:
    """Return an oracle that refuses queries about fewer than `smallest` people.

    >>> import pyarrow as pa
    >>> ask = refuse_small_sets(exact_oracle(pa.table({"age": range(100)})), smallest=10)
    >>> float(ask("SELECT COUNT(*) FROM people WHERE age = 35"))
    nan
    >>> float(ask("SELECT COUNT(*) FROM people")) - float(ask("SELECT COUNT(*) FROM people WHERE NOT age = 35"))
    1.0
    """

    def ask(sql: str) -> Any:
        people = oracle(_AGGREGATE.sub("COUNT(*)", sql, count=1))
        return np.where(np.asarray(people) < smallest, np.nan, oracle(sql))

    return ask


def add_fresh_noise(oracle: SqlOracle, scale: float, rng: np.random.Generator) -> SqlOracle:
    """Return an oracle that adds fresh Laplace noise of this scale to every answer, without a budget.

    >>> import pyarrow as pa
    >>> ask = add_fresh_noise(exact_oracle(pa.table({"age": range(100)})), 2, np.random.default_rng(0))
    >>> bool(ask("SELECT COUNT(*) FROM people") == ask("SELECT COUNT(*) FROM people"))
    False
    """

    def ask(sql: str) -> Any:
        truth = oracle(sql)
        return truth + rng.laplace(0, scale, np.shape(truth))

    return ask


def cache_by_text(oracle: SqlOracle) -> SqlOracle:
    """Return an oracle that caches answers by text, ignoring case and white space.

    >>> import pyarrow as pa
    >>> ask = cache_by_text(add_fresh_noise(exact_oracle(pa.table({"age": range(100)})), 2, np.random.default_rng(0)))
    >>> bool(ask("SELECT COUNT(*) FROM people") == ask("select  count(*) from People"))
    True
    >>> bool(ask("SELECT COUNT(*) FROM people") == ask("SELECT COUNT(*) FROM people WHERE age < 100"))
    False
    """
    cached: dict[str, Any] = {}

    def ask(sql: str) -> Any:
        text = " ".join(sql.lower().split())
        if text not in cached:
            cached[text] = oracle(sql)
        return cached[text]

    return ask
