"""Deterministic checks of the ledger: charged before data is read, durable, never overspent."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from discreet import privacy
from discreet.answer.model import Answer
from discreet.audit.policy.answer_checks import ask_curator, check_result, format_query_count
from discreet.audit.policy.curator_pairs import EngineWithTotals, PairQuery, exact_totals, write_policy_copy
from discreet.audit.policy.neighbouring_databases import NeighbouringDatabases, neighbouring_databases
from discreet.audit.policy.query_suite import AuditQuery
from discreet.audit.policy.result import CheckResult
from discreet.curator.curator import Curator
from discreet.curator.open import open_curator
from discreet.kernel.errors import FAILED, Failed, LedgerError, Refused
from discreet.kernel.loss import Loss
from discreet.kernel.numbers import as_fraction
from discreet.kernel.question import Question
from discreet.kernel.release import EngineTotals
from discreet.ledger_admin.verify import verify_ledger
from discreet.ledger_sqlite import memory_ledger, open_ledger
from discreet.policy import BudgetEntry, Policy
from discreet.pricing import CostRequest

_MAX_ASKS = 50
_AFFORDABLE_QUERIES = Fraction(7, 2)  # the small budget suffices for three queries
_PLACEMENT_NAME = "too many groups, highest values"


class SimulatedCrash(BaseException):
    """A simulated process crash; derived from BaseException, so that nothing catches it."""


def ledger_checks(
    policy: Policy, prepared_queries: Sequence[PairQuery], cost: CostRequest, *, random_state: int = 0
) -> Iterator[CheckResult]:
    """Check the guarantees of the ledger, on dummy data with its own ledger file."""
    by_placement = {
        databases.placement.name: databases for databases in neighbouring_databases(policy, random_state=random_state)
    }
    data = by_placement[_PLACEMENT_NAME]
    query = prepared_queries[0].query
    with TemporaryDirectory(prefix="discreet-audit-") as folder:
        yield _check_charged_before_read(policy, data, query, cost, Path(folder) / "first")
        yield _check_crash(policy, data, query, cost, Path(folder) / "crash")
        yield _check_exhausted_budget(policy, data, query, cost, Path(folder) / "budget")
        yield _check_row_order(policy, data, prepared_queries, Path(folder))


def _check_charged_before_read(
    policy: Policy, data: NeighbouringDatabases, query: AuditQuery, cost: CostRequest, folder: Path
) -> CheckResult:
    """Check that a query is charged before rows are read, and that a failure is charged and reveals nothing."""
    violations, spent_at_read = [], list[Loss]()
    with open_curator(write_policy_copy(policy, data.present, folder, ledger="ledger.sqlite")) as curator:

        def fail() -> None:
            spent_at_read.append(curator.ledger.spent())
            raise ValueError("a value of the data")

        with _silence_log():
            outcome = ask_curator(_intercept_reads(curator, fail), query, cost)
        spent = curator.ledger.spent()
    if not spent_at_read or spent_at_read[0] != spent or not spent.rho:
        violations.append("rows were read before the charge")
    if not isinstance(outcome, Failed) or str(outcome) != FAILED:
        violations.append("the error message for a failure while reading reveals more than the failure")
    return check_result(
        "Queries are charged before data is read, and failures reveal nothing", violations, "an error while reading"
    )


def _check_crash(
    policy: Policy, data: NeighbouringDatabases, query: AuditQuery, cost: CostRequest, folder: Path
) -> CheckResult:
    violations = []
    copy = write_policy_copy(policy, data.present, folder, ledger="ledger.sqlite")
    with open_curator(copy) as curator:

        def crash() -> None:
            raise SimulatedCrash

        with suppress(SimulatedCrash):
            ask_curator(_intercept_reads(curator, crash), query, cost)
        name = curator.ledger.terms.name
    with open_ledger(folder / "ledger.sqlite", name=name) as ledger:
        if not ledger.spent().rho:
            violations.append("the charge is missing after a crash")
        try:
            verify_ledger(ledger)
        except LedgerError as error:
            violations.append(f"the ledger does not verify after a crash: {error}")
    return check_result("After a crash the charge is kept and the ledger verifies", violations, "a crash while reading")


def _check_exhausted_budget(
    policy: Policy, data: NeighbouringDatabases, query: AuditQuery, cost: CostRequest, folder: Path
) -> CheckResult:
    """Check that a small budget is never exceeded, and that refused queries read no data."""
    violations, reads, answers = [], list[int](), 0
    with open_curator(write_policy_copy(policy, data.present, folder)) as curator:
        small_policy = replace(curator.policy, budget_entry=_small_budget(policy.budget_entry, cost))
        with memory_ledger(name=curator.ledger.terms.name, budget=small_policy.budget) as ledger:
            engine = _call_before_reads(curator, lambda: reads.append(1))
            outcome: object = None
            while answers < _MAX_ASKS:  # a new data version prevents cached answers
                version = small_policy.data.model_copy(update={"version": f"{answers}"})
                outcome = ask_curator(Curator(replace(small_policy, data=version), engine, ledger), query, cost)
                if not isinstance(outcome, Answer):
                    break
                answers += 1
            if not isinstance(outcome, Refused):
                violations.append(f"no refusal after {answers} answers")
            if not ledger.terms.budget.covers(ledger.spent()):
                violations.append("more was spent than the budget")
            if len(reads) != sum(len(event.fingerprints) for event in ledger.events()):  # one read for each release
                violations.append("data was read for a refused query")
    return check_result(
        "An exhausted budget refuses queries before data is read", violations, f"refused after {answers} answers"
    )


def _check_row_order(
    policy: Policy, data: NeighbouringDatabases, prepared_queries: Sequence[PairQuery], folder: Path
) -> CheckResult:
    """Check that exact totals do not change when the rows of every table are reversed."""
    reversed_tables = {
        name: rows.take(pa.array(range(rows.num_rows - 1, -1, -1))) for name, rows in data.present.items()
    }
    violations = []
    with (
        open_curator(write_policy_copy(policy, data.present, folder / "as is")) as curator,
        open_curator(write_policy_copy(policy, reversed_tables, folder / "reversed")) as other,
    ):
        for prepared in prepared_queries:
            sides = [exact_totals(side, prepared) for side in (curator, other)]
            if any(_sorted_totals(here) != _sorted_totals(there) for here, there in zip(*sides, strict=True)):
                violations.append(prepared.query.name)
    coverage = format_query_count(len(prepared_queries))
    return check_result("The order of the rows does not matter", violations, coverage)


def _sorted_totals(totals: Any) -> tuple[Any, ...]:
    rows = sorted(zip(map(str, totals.keys), totals.values.tolist(), strict=True))
    cells = [
        sorted(
            (str(totals.keys[group]), cell, weight)
            for group, cell, weight in zip(
                tally.groups.tolist(), tally.cells.tolist(), tally.weights.tolist(), strict=True
            )
        )
        for _, tally in sorted(totals.cell_counts.items())
    ]
    return rows, cells


def _intercept_reads(curator: Curator, before_read: Callable[[], None]) -> Curator:
    return Curator(curator.policy, _call_before_reads(curator, before_read), curator.ledger)


def _call_before_reads(curator: Curator, before_read: Callable[[], None]) -> Any:
    """Return the curator's engine, which calls a function before it reads totals."""
    engine = curator._engine  # noqa: SLF001 - no public interface

    def totals(question: Question) -> EngineTotals:
        before_read()
        return engine.totals(question)

    return EngineWithTotals(engine, totals)


def _small_budget(spending: BudgetEntry, cost: CostRequest) -> BudgetEntry:
    """Return a budget that suffices for a few queries."""
    if cost.epsilon is not None:
        return spending.model_copy(
            update={"epsilon": _AFFORDABLE_QUERIES * as_fraction(cost.epsilon, "epsilon"), "analysts": {}}
        )
    delta = spending.delta * (1 - spending.discover_share)
    epsilon = privacy.to_epsilon(Loss(None, _AFFORDABLE_QUERIES * as_fraction(cost.rho, "rho")), delta)
    return spending.model_copy(update={"epsilon": epsilon, "analysts": {}})


@contextmanager
def _silence_log() -> Iterator[None]:
    """Keep simulated errors out of the owner's log."""
    log = logging.getLogger("discreet")
    log.disabled = True
    try:
        yield
    finally:
        log.disabled = False
