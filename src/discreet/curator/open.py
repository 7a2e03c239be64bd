"""Open a data set: an engine with the policy's tables, and the ledger."""

import logging
import os
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from os import PathLike
from typing import Any, overload

from discreet.curator.curator import Curator
from discreet.curator.data_stamp import changed_tables, changed_tables_warning, record_stamps
from discreet.curator.ledger_location import open_or_create_ledger
from discreet.curator.ledger_terms import check_and_record_terms, policy_terms
from discreet.curator.policy_from_frames import OpenArguments, policy_from_frames
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.interface import Engine, Tuning
from discreet.engines.table_source import TableSource
from discreet.kernel.errors import PolicyError
from discreet.kernel.ledger import Ledger
from discreet.kernel.loss import Budget
from discreet.kernel.numbers import Number
from discreet.ledger_sqlite import memory_ledger
from discreet.policy import Policy
from discreet.policy.catalog import kernel_type
from discreet.policy.declarations import Bound
from discreet.policy.entries import size_in_bytes

_OWNER_LOG = logging.getLogger("discreet.owner")
_DEFAULT_TABLE = "data"
_SERVER_VARIABLES = ("PGHOST", "PGHOSTADDR", "PGSERVICE", "PGDATABASE")
_MEMORY_LEDGER_WARNING = (
    "ledger: it is kept in memory only, so what is spent is lost when this process ends, and the budget starts afresh. "
    'Pass ledger="visits.sqlite" to keep it, or ledger=":memory:" if this is intended.'
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
    groups: Bound | Mapping[str, Bound] | None = None,
    rows: Bound | Mapping[str, Bound] | None = None,
    public: Mapping[str, Any] | None = None,
    ledger: str | PathLike[str] | None = None,
    name: str | None = None,
    version: str | None = None,
    tuning: Tuning | None = None,
) -> Curator: ...


def open_curator(  # noqa: PLR0913 - a policy, or the arguments that replace one
    policy: Any,
    *,
    data: Mapping[str, Any] | None = None,
    tuning: Tuning | None = None,
    table: str = _DEFAULT_TABLE,
    unit: str | Mapping[str, Any] | None = None,
    budget: Number | tuple[Number, Number] | Budget | None = None,
    columns: Mapping[str, Any] | None = None,
    groups: Bound | Mapping[str, Bound] | None = None,
    rows: Bound | Mapping[str, Bound] | None = None,
    public: Mapping[str, Any] | None = None,
    ledger: str | PathLike[str] | None = None,
    name: str | None = None,
    version: str | None = None,
) -> Curator:
    """Open the data of a policy (a path or a Policy), a pandas, polars or Arrow table, or a dict of tables.

    With a policy, `data` supplies frames that replace the sources of tables. With a frame, the other arguments replace
    the policy; docs/python.md describes them. The ledger is created if it does not exist; without one, or with
    ":memory:", it ends with the process.

    >>> import pyarrow as pa
    >>> visits = pa.table({"patient": [1, 1, 2], "ward": ["A", "B", "A"], "cost": [10.0, 25.5, 300.0]})
    >>> columns = {"ward": ["A", "B"], "cost": (0, 500)}
    >>> with open_curator(
    ...     visits, unit="patient", budget=1, columns=columns, groups=2, rows=2, ledger=":memory:"
    ... ) as curator:
    ...     curator.ask("SELECT ward, SUM(cost) AS s FROM data GROUP BY ward", epsilon="1/2").frame.column_names
    ['ward', 's']
    """
    arguments = OpenArguments(
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
        _check_no_arguments(arguments, table)
        return _open_policy(policy if isinstance(policy, Policy) else Policy.load(policy), data or {}, tuning)
    if data is not None:
        raise PolicyError("data: only allowed with a policy. Pass the frames as the first argument, as {name: frame}.")
    if isinstance(policy, Mapping) and table != _DEFAULT_TABLE:
        raise PolicyError("table: a dict of frames already names its tables. Omit this argument.")
    frame_policy = policy_from_frames(policy, table, arguments)
    if ledger is None:
        warnings.warn(_MEMORY_LEDGER_WARNING, stacklevel=2)
    for warning in frame_policy.type_warnings:
        warnings.warn(warning, stacklevel=2)
    curator = _open_policy(frame_policy.policy, frame_policy.rows, tuning)
    curator.releases.frame_kind = frame_policy.frame_kind
    return curator


def _check_no_arguments(arguments: OpenArguments, table: str) -> None:
    given_names = [field.name for field in fields(arguments) if getattr(arguments, field.name) is not None]
    if given_names or table != _DEFAULT_TABLE:
        raise PolicyError(
            f"{given_names[0] if given_names else 'table'}: not allowed with a policy. Set it in the policy."
        )


def _open_policy(policy: Policy, data: Mapping[str, Any], tuning: Tuning | None) -> Curator:
    return Curator(policy, *open_engine_and_ledger(policy, data, tuning or tuning_from_policy(policy)))


def open_engine_and_ledger(policy: Policy, data: Mapping[str, Any], tuning: Tuning) -> tuple[Engine, Ledger]:
    """Open the engine of a policy with its tables, and open or create its ledger."""
    unknown = set(data) - set(policy.tables)
    if unknown:
        raise PolicyError(f"data: the policy has no table {min(unknown)!r}. Its tables: {', '.join(policy.tables)}.")
    engine = open_engine(policy, data, tuning)
    try:
        ledger = _open_ledger(policy)
        _warn_about_changed_data(policy, data)
    except BaseException:
        engine.close()
        raise
    return engine, ledger


def _warn_about_changed_data(policy: Policy, frames: Mapping[str, Any]) -> None:
    """Warn in the owner's log, which analysts do not see, if data changed while the version stayed the same."""
    if changed := changed_tables(policy, frames):
        _OWNER_LOG.warning("%s", changed_tables_warning(policy, changed))
    with suppress(OSError):  # a read-only folder must not prevent queries
        record_stamps(policy, frames)


def tuning_from_policy(policy: Policy) -> Tuning:
    """Return the performance settings of a policy's [tuning] section, with defaults for the rest.

    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1}, "tuning": {"memory": "2GB", "totals_cache": "1MB"},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> tuning = tuning_from_policy(policy)
    >>> tuning.memory, tuning.totals_cache, tuning.seconds
    ('2GB', 1000000, 600)
    """
    settings = {name: value for name, value in policy.tuning if value is not None}
    if "seconds" in settings:
        settings["seconds"] = float(settings["seconds"])
    if "folder" in settings:
        settings["folder"] = str(policy.base / settings["folder"])
    if "totals_cache" in settings:
        settings["totals_cache"] = size_in_bytes(settings["totals_cache"])
    return Tuning(**settings)


def open_engine(policy: Policy, data: Mapping[str, Any], tuning: Tuning) -> Engine:
    """Open the engine that a policy names, with its tables; `data` supplies frames that replace sources.

    >>> import pyarrow as pa
    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> engine = open_engine(policy, {"visits": pa.table({"who": [1, 2]})}, Tuning())
    >>> engine.columns("visits")
    {'who': <Type.INTEGER: 'i'>}
    >>> engine.close()
    """
    kind, zone, url = policy.data.engine, policy.data.timezone, policy.data.connection
    if data and kind != "duckdb":
        raise PolicyError(f"data: frames need DuckDB, but the policy has engine = {kind!r}. Remove one of the two.")
    if kind == "postgresql":
        from discreet.engines.postgres.engine import Postgres  # noqa: PLC0415 - an extra

        names = {name: table.source for name, table in policy.tables.items()}
        return Postgres(engine_sources(policy, names), url=postgres_url(policy), timezone=zone, tuning=tuning)
    if kind == "spark":
        from discreet.engines.spark.engine import Spark  # noqa: PLC0415 - an extra

        return Spark(engine_sources(policy, policy.sources()), url=url, timezone=zone, tuning=tuning)
    return DuckDB(engine_sources(policy, {**policy.sources(), **data}), timezone=zone, tuning=tuning)


def postgres_url(policy: Policy) -> str:
    """Return the URL of the policy's PostgreSQL server, which may come from the environment, with a password.

    >>> postgres_url(Policy.from_dict({
    ...     "data": {"name": "visits", "engine": "postgresql", "connection": "postgresql://reader@db.example/clinic"},
    ...     "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... }))
    'postgresql://reader@db.example/clinic'
    """
    url = policy.data.connection or os.environ.get("DISCREET_POSTGRES")
    if not url and not any(os.environ.get(name) for name in _SERVER_VARIABLES):
        raise PolicyError(
            'connection: no PostgreSQL server is configured. Add connection = "postgresql://user@host/database" to '
            "[data], or set DISCREET_POSTGRES or PGHOST."
        )
    return url or "postgresql://"


def engine_sources(policy: Policy, locations: Mapping[str, Any]) -> dict[str, TableSource]:
    """Return the sources of a policy's tables, with their declared columns."""
    return {
        name: TableSource(locations[name], {column.name: kernel_type(column.type) for column in table.columns.values()})
        for name, table in policy.tables.items()
    }


def _open_ledger(policy: Policy) -> Ledger:
    """Open or create the policy's ledger, and record in it what the owner changed in the policy."""
    if policy.data.ledger == ":memory:":
        return memory_ledger(**policy_terms(policy))
    ledger = open_or_create_ledger(policy)
    try:
        check_and_record_terms(ledger, policy)
    except BaseException:
        ledger.close()
        raise
    return ledger
