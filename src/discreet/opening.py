"""Opening a data set: the engine with the policy's tables, and its ledger, which remembers what was promised."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from discreet.curator import Curator
from discreet.engines.duckdb import DuckDB, Tuning
from discreet.engines.sources import Source
from discreet.kernel.errors import PolicyError
from discreet.kernel.ledger import Ledger, create_ledger, memory_ledger, open_ledger
from discreet.kernel.loss import Budget
from discreet.policy import Policy, check_same_promise
from discreet.sql import kernel_type


def open_curator(
    policy: str | PathLike[str] | Policy, *, data: Mapping[str, Any] | None = None, tuning: Tuning | None = None
) -> Curator:
    """Open the data of a policy: a file, or a Policy. `data` gives tables as frames instead of their sources.

    Tables may be pandas, polars or Arrow. The ledger is made if it is not there yet; `ledger = ":memory:"` ends
    with the process.

    >>> open_curator("nowhere.toml")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    discreet.kernel.errors.PolicyError: nowhere.toml: ...
    """
    declared = policy if isinstance(policy, Policy) else Policy.load(policy)
    if declared.data.engine != "duckdb":
        raise PolicyError(f"engine: {declared.data.engine!r} is not available yet. Use duckdb.")
    unknown = set(data or {}) - set(declared.tables)
    if unknown:
        raise PolicyError(f"data: the policy has no table {min(unknown)!r}. It has {', '.join(declared.tables)}.")
    places: dict[str, Any] = {**declared.sources(), **(data or {})}
    sources = {
        name: Source(places[name], {column.name: kernel_type(column.type) for column in table.columns.values()})
        for name, table in declared.tables.items()
    }
    engine = DuckDB(sources, timezone=declared.data.timezone, tuning=tuning or Tuning())
    try:
        ledger = _ledger(declared)
        return Curator(declared, engine, ledger)
    except BaseException:
        engine.close()
        raise


def _ledger(policy: Policy) -> Ledger:
    """Open the policy's ledger, or make it; what the owner changed in the policy is recorded there."""
    terms: dict[str, Any] = {"budget": policy.budget, "analysts": policy.analyst_budgets()}
    if policy.data.ledger == ":memory:":
        return memory_ledger(name=policy.data.name, promise=policy.fingerprint(), **terms)
    if not isinstance(policy.ledger, Path):
        raise PolicyError("ledger: PostgreSQL is not available yet. Use a file.")
    if not policy.ledger.exists():
        return create_ledger(policy.ledger, name=policy.data.name, promise=policy.fingerprint(), **terms)
    ledger = open_ledger(policy.ledger, name=policy.data.name)
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
