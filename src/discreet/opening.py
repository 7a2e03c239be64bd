"""Opening a data set: the engine with the policy's tables, and its ledger, which remembers what was promised."""

import logging
import os
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from os import PathLike
from typing import Any, overload

from discreet.curator import Curator
from discreet.data_stamp import change_in_words, changed_tables, keep_stamps
from discreet.declaring import Said, declare
from discreet.engines.duckdb import DuckDB
from discreet.engines.interface import Engine
from discreet.engines.sources import Source
from discreet.engines.tuning import Tuning
from discreet.kernel.errors import PolicyError
from discreet.kernel.exact import Number
from discreet.kernel.ledger import Ledger, memory_ledger
from discreet.kernel.loss import Budget
from discreet.places import ledger_of
from discreet.policy import Policy, check_same_promise
from discreet.policy.entries import bytes_of
from discreet.sql import kernel_type

_OWNER = logging.getLogger("discreet.owner")
_TABLE = "data"
_SERVER = ("PGHOST", "PGHOSTADDR", "PGSERVICE", "PGDATABASE")
_FORGETS = (
    "ledger: what is spent is kept in memory only, and forgotten when this process ends: then it can be spent again. "
    'Keep it with ledger="visits.sqlite", or say that it is meant with ledger=":memory:".'
)


@overload
def open_curator(
    policy: str | PathLike[str] | Policy, *, data: Mapping[str, Any] | None = None, tuning: Tuning | None = None
) -> Curator: ...


@overload
def open_curator(
    policy: Any,
    *,
    table: str = "data",
    unit: str | Mapping[str, Any],
    budget: Number | tuple[Number, Number] | Budget,
    columns: Mapping[str, Any],
    groups: int | Mapping[str, int] | None = None,
    rows: int | Mapping[str, int] | None = None,
    public: Mapping[str, Any] | None = None,
    ledger: str | PathLike[str] | None = None,
    name: str | None = None,
    version: str | None = None,
    tuning: Tuning | None = None,
) -> Curator: ...


def open_curator(  # noqa: PLR0913 - what a policy says, or what is said instead of one
    policy: Any,
    *,
    data: Mapping[str, Any] | None = None,
    tuning: Tuning | None = None,
    table: str = _TABLE,
    unit: str | Mapping[str, Any] | None = None,
    budget: Number | tuple[Number, Number] | Budget | None = None,
    columns: Mapping[str, Any] | None = None,
    groups: int | Mapping[str, int] | None = None,
    rows: int | Mapping[str, int] | None = None,
    public: Mapping[str, Any] | None = None,
    ledger: str | PathLike[str] | None = None,
    name: str | None = None,
    version: str | None = None,
) -> Curator:
    """Open the data of a policy (a file, or a Policy), or a table of pandas, polars or Arrow, or a dict of tables.

    With a policy, `data` gives tables as frames instead of their sources. With a frame, the other arguments say what a
    policy would: docs/python.md has them all. A ledger is made if it is not there yet; without one, or with ":memory:",
    the account ends with the process.

    >>> import pyarrow as pa
    >>> visits = pa.table({"patient": [1, 1, 2], "ward": ["A", "B", "A"], "cost": [10.0, 25.5, 300.0]})
    >>> columns = {"ward": ["A", "B"], "cost": (0, 500)}
    >>> with open_curator(
    ...     visits, unit="patient", budget=1, columns=columns, groups=2, rows=2, ledger=":memory:"
    ... ) as curator:
    ...     curator.ask("SELECT ward, SUM(cost) AS s FROM data GROUP BY ward", epsilon="1/2").frame.column_names
    ['ward', 's']
    """
    said = Said(
        unit=unit,
        budget=budget,
        columns=columns,
        groups=groups,
        rows=rows,
        public=public,
        ledger=ledger,
        name=name,
        version=version,
    )
    if isinstance(policy, str | PathLike | Policy):
        _check_nothing_said(said, table)
        return _open(policy if isinstance(policy, Policy) else Policy.load(policy), data or {}, tuning)
    if data is not None:
        raise PolicyError("data: it goes with a policy. Give all frames first, as a dict by the names of their tables.")
    if isinstance(policy, Mapping) and table != _TABLE:
        raise PolicyError("table: a dict of frames has the names of its tables. Leave it out.")
    declared = declare(policy, table, said)
    if ledger is None:
        warnings.warn(_FORGETS, stacklevel=2)
    for doubt in declared.doubts:
        warnings.warn(doubt, stacklevel=2)
    curator = _open(declared.policy, declared.rows, tuning)
    curator.kind = declared.kind
    return curator


def _check_nothing_said(said: Said, table: str) -> None:
    words = [field.name for field in fields(said) if getattr(said, field.name) is not None]
    if words or table != _TABLE:
        raise PolicyError(
            f"{words[0] if words else 'table'}: the policy says it. Change it there, or open a frame instead."
        )


def _open(declared: Policy, data: Mapping[str, Any], tuning: Tuning | None) -> Curator:
    unknown = set(data) - set(declared.tables)
    if unknown:
        raise PolicyError(f"data: the policy has no table {min(unknown)!r}. It has {', '.join(declared.tables)}.")
    engine = engine_of(declared, data, tuning or tuning_of(declared))
    try:
        ledger = _ledger(declared)
        _warn_of_changes(declared, data)
        return Curator(declared, engine, ledger)
    except BaseException:
        engine.close()
        raise


def _warn_of_changes(policy: Policy, frames: Mapping[str, Any]) -> None:
    """Tell the owner's log, and nobody who asks, that data have changed under the same version."""
    if changed := changed_tables(policy, frames):
        _OWNER.warning("%s", change_in_words(policy, changed))
    with suppress(OSError):  # a folder that cannot be written: questions do not depend on it
        keep_stamps(policy, frames)


def tuning_of(policy: Policy) -> Tuning:
    """Return the performance settings of a policy's section [tuning]; what it leaves out is as usual.

    >>> policy = Policy.of({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1}, "tuning": {"memory": "2GB", "remember": "1MB"},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> tuning = tuning_of(policy)
    >>> tuning.memory, tuning.remember, tuning.seconds
    ('2GB', 1000000, 600)
    """
    said = {name: value for name, value in policy.tuning if value is not None}
    if "seconds" in said:
        said["seconds"] = float(said["seconds"])
    if "folder" in said:
        said["folder"] = str(policy.base / said["folder"])
    if "remember" in said:
        said["remember"] = bytes_of(said["remember"])
    return Tuning(**said)


def engine_of(policy: Policy, data: Mapping[str, Any], tuning: Tuning) -> Engine:
    """Open the engine that a policy names, with its tables; `data` gives some of them as frames instead.

    >>> import pyarrow as pa
    >>> policy = Policy.of({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> engine = engine_of(policy, {"visits": pa.table({"who": [1, 2]})}, Tuning())
    >>> engine.columns("visits")
    {'who': <Type.INTEGER: 'i'>}
    >>> engine.close()
    """
    kind, zone, url = policy.data.engine, policy.data.timezone, policy.data.connection
    if data and kind != "duckdb":
        raise PolicyError(f"data: frames are for DuckDB, and the policy has engine = {kind!r}. Leave one of them out.")
    if kind == "postgresql":
        from discreet.engines.postgres import Postgres  # noqa: PLC0415 - an extra

        names = {name: table.source for name, table in policy.tables.items()}
        return Postgres(sources_of(policy, names), url=server_of(policy), timezone=zone, tuning=tuning)
    if kind == "spark":
        from discreet.engines.spark import Spark  # noqa: PLC0415 - an extra

        return Spark(sources_of(policy, policy.sources()), url=url, timezone=zone, tuning=tuning)
    return DuckDB(sources_of(policy, {**policy.sources(), **data}), timezone=zone, tuning=tuning)


def server_of(policy: Policy) -> str:
    """Return where the policy's PostgreSQL is; the environment may say it instead, also with a password.

    >>> server_of(Policy.of({
    ...     "data": {"name": "visits", "engine": "postgresql", "connection": "postgresql://reader@db.example/clinic"},
    ...     "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... }))
    'postgresql://reader@db.example/clinic'
    """
    url = policy.data.connection or os.environ.get("DISCREET_POSTGRES")
    if not url and not any(os.environ.get(name) for name in _SERVER):
        raise PolicyError(
            'connection: nothing says where PostgreSQL is. Add connection = "postgresql://user@host/database" to '
            "[data], or set DISCREET_POSTGRES or PGHOST."
        )
    return url or "postgresql://"


def sources_of(policy: Policy, places: Mapping[str, Any]) -> dict[str, Source]:
    """Return where the rows of a policy's tables are, with their declared columns."""
    return {
        name: Source(places[name], {column.name: kernel_type(column.type) for column in table.columns.values()})
        for name, table in policy.tables.items()
    }


def _ledger(policy: Policy) -> Ledger:
    """Open the policy's ledger, or make it; what the owner changed in the policy is recorded there."""
    if policy.data.ledger == ":memory:":
        terms: dict[str, Any] = {"budget": policy.budget, "analysts": policy.analyst_budgets()}
        return memory_ledger(name=policy.data.name, promise=policy.fingerprint(), **terms)
    ledger = ledger_of(policy)
    try:
        if ledger.promise:
            check_same_promise(ledger.promise, policy)
        known = (_limits(ledger.budget), {who: _limits(limit) for who, limit in (ledger.analysts or {}).items()})
        wanted = (_limits(policy.budget), {who: _limits(limit) for who, limit in policy.analyst_budgets().items()})
        if known != wanted or ledger.promise != policy.fingerprint():
            ledger.set_budget(policy.budget, analysts=policy.analyst_budgets(), promise=policy.fingerprint())
    except BaseException:
        ledger.close()
        raise
    return ledger


def _limits(budget: Budget) -> tuple[Any, ...]:
    return budget.epsilon, budget.delta, budget.discover
