"""Verification of a whole ledger: every row, total, state and answer, its checkpoint, tables and triggers.

The ledger itself relies on its rows being as they were written; whether they were right is verified here.
"""

import json
from collections.abc import Iterable

from discreet.kernel.errors import DiscreetError, LedgerError
from discreet.kernel.event import canonical_json
from discreet.kernel.ledger.chain import GENESIS, RESTORE_HINT, Chain, LedgerRow, RowKind, link_problem
from discreet.kernel.ledger.checkpoint import check_checkpoint
from discreet.kernel.ledger.ledger import Ledger
from discreet.kernel.ledger.table import FORMAT, LedgerTable, check_answers
from discreet.kernel.ledger.terms import (
    check_cost,
    check_delta_split,
    join_terms,
    read_loss,
    read_terms,
)
from discreet.kernel.loss import ZERO_LOSS, Loss
from discreet.ledger_admin.postgres_schema import check_schema
from discreet.ledger_sqlite.schema import SQLITE_DIALECT

_CANNOT_BE_CHARGED = "has a loss, although its kind cannot be charged"


def verify_ledger(ledger: Ledger) -> None:
    """Recompute every hash, total, state and answer, and check the checkpoint, the tables and the triggers.

    >>> from discreet.ledger_sqlite import memory_ledger
    >>> from discreet.kernel.loss import Budget
    >>> verify_ledger(memory_ledger(name="demo", budget=Budget(1)))

    Claim: if nothing is raised, the ledger is intact: all charges and answers up to the checkpoint at least, or up to
        the move to another location, are present and unmodified, and never exceeded the terms then in force.
    Proof: check_table for the rows and answers, check_checkpoint for the end of the chain.
    Needs: check_table, check_checkpoint, check_storage.
    Checked by: test_any_changed_field_of_any_row_is_found, test_a_changed_answer_is_found,
        test_a_deleted_tail_is_found, test_dropped_triggers_are_found
    """
    with ledger.session.read_transaction() as table:
        checkpoint = ledger.session.location.checkpoint()  # before the rows, which may only be newer
        check_checkpoint(check_table(table), checkpoint)
        check_storage(table)


def check_table(table: LedgerTable) -> Chain:
    """Verify all rows and answers and return the chain; LedgerError names the first invalid row.

    Claim: if nothing is raised, the rows are a complete chain, each answer is the one that was stored, none is missing.
    Proof: check_rows for the rows, check_answers for the answers.
    Needs: check_rows, check_answers, LedgerTable.rows; only the checkpoint attests the end of the chain.
    Checked by: test_any_changed_field_of_any_row_is_found, test_a_changed_answer_is_found
    """
    chain = check_rows(table.rows())
    check_answers(table, chain)
    return chain


def check_storage(table: LedgerTable) -> None:
    """Raise LedgerError if the database is corrupt, or its tables or triggers were modified."""
    table.check_format(FORMAT)
    if table.dialect is not SQLITE_DIALECT:
        check_schema(table.connection, table.dialect.schema)
        return
    integrity = table.query("PRAGMA integrity_check")[0][0]
    if integrity != "ok":
        raise LedgerError(f"the database is corrupt ({integrity}){RESTORE_HINT}")
    if {text for (text,) in table.query("SELECT sql FROM sqlite_master")} != set(SQLITE_DIALECT.create_tables):
        raise LedgerError(f"the tables or triggers were modified{RESTORE_HINT}")


def arrival_text(departure: LedgerRow) -> str:
    """Return the body of the row that records the arrival after a move."""
    return canonical_json({"token": json.loads(departure.body)["token"]})


def check_rows(rows: Iterable[LedgerRow]) -> Chain:
    """Recompute all rows and return their chain.

    Claim: if nothing is raised, the rows are those that Chain.next_row wrote, in order, with none missing before the
        last; the totals are the sums of the losses, every charge was within the terms then in force, no data set
        joined with other changes of the terms, no key and no receipt was charged twice, no answer was stored without a
        charge or twice, every charge that follows an earlier one was the first to do so, with no acknowledgement in
        between, and only its arrival follows a move.
    Proof: row by row, each of these is checked against the state after the previous rows, which were checked in the
        same way; the links by Chain.add.
    Needs: Chain.add, Chain.totals_after, link_problem, check_cost, check_delta_split, join_terms; only the
        checkpoint attests the last row.
    Checked by: test_any_changed_field_of_any_row_is_found, test_a_removed_row_is_found,
        test_nothing_follows_a_move_but_its_arrival, test_a_forged_join_that_widens_the_terms_is_found
    """
    chain = Chain()
    for row in rows:
        try:
            problem = link_problem(chain.last, row) or _row_problem(chain, row)
        except (DiscreetError, ValueError, TypeError, KeyError, AttributeError) as error:
            problem = f"is not readable ({error})"
        if problem:
            raise LedgerError(f"row {row.seq} {problem}{RESTORE_HINT}")
        chain.add(row)
    return chain.extend(())


def _row_problem(chain: Chain, row: LedgerRow) -> str | None:
    """Return what is wrong with a correctly linked row, or None."""
    loss = read_loss(row.loss)
    problem = _PROBLEM_CHECKS[RowKind(row.kind)](chain, row, loss)
    if not problem and row.kind == RowKind.CHARGE:
        check_cost(read_terms(chain.terms), row.by, row.dataset, loss, chain.spent)
    totals = chain.totals_after(row.by, row.dataset, loss)
    return problem or (None if (row.spent, row.spent_by, row.spent_in) == totals else "has incorrect totals")


def _terms_problem(chain: Chain, row: LedgerRow, loss: Loss) -> str | None:
    terms = read_terms(row.body)
    if chain.last is not GENESIS:
        before = read_terms(chain.terms)
        check_delta_split(before.budget, terms.budget, chain.spent())
        if (before.name, set(before.datasets or ())) != (terms.name, set(terms.datasets or ())):
            return "changes the name or the data sets of the account"
    return None if loss == ZERO_LOSS else _CANNOT_BE_CHARGED


def _join_problem(chain: Chain, row: LedgerRow, loss: Loss) -> str | None:
    before, terms = read_terms(chain.terms), read_terms(row.body)
    if terms != join_terms(before, row.dataset, (terms.datasets or {})[row.dataset]):
        return "changes other terms than the data set that joins"
    return None if loss == ZERO_LOSS else _CANNOT_BE_CHARGED


def _charge_problem(chain: Chain, row: LedgerRow, _loss: Loss) -> str | None:
    if not row.receipt or row.receipt in chain.charges:
        return "charges the same receipt twice"
    if row.key is not None and (row.by, row.dataset, row.key) in chain.keys:
        return "charges the same key twice"
    follows = json.loads(row.body).get("follows", ())
    if any(chain.latest_receipts.get((row.dataset, total)) != receipt for total, receipt in follows):
        return "follows a charge that is not the latest with its fingerprint"
    return None


def _settle_problem(chain: Chain, row: LedgerRow, loss: Loss) -> str | None:
    if chain.charges.get(row.receipt or "", (0,))[1:] != (row.by, row.dataset) or loss != ZERO_LOSS:
        return "settles a receipt that was not charged"
    return "settles the same receipt twice" if row.receipt in chain.settlements else None


def _acknowledge_problem(_chain: Chain, row: LedgerRow, loss: Loss) -> str | None:
    # It may have any loss: the lost charges were spent already, in unknown data sets.
    return "charges lost charges to one data set" if row.dataset and loss != ZERO_LOSS else None


def _act_problem(_chain: Chain, row: LedgerRow, loss: Loss) -> str | None:
    if not isinstance(json.loads(row.body), dict):
        return "does not describe an act"
    return None if loss == ZERO_LOSS else _CANNOT_BE_CHARGED


def _move_problem(_chain: Chain, row: LedgerRow, loss: Loss) -> str | None:
    record = json.loads(row.body)
    if not isinstance(record["to"], str) or not isinstance(record["token"], str):
        return "does not name the destination of the move"
    return None if loss == ZERO_LOSS else _CANNOT_BE_CHARGED


def _arrive_problem(chain: Chain, row: LedgerRow, loss: Loss) -> str | None:
    if row.body != arrival_text(chain.last):
        return "has a different token from the move before it"
    return None if loss == ZERO_LOSS else _CANNOT_BE_CHARGED


_PROBLEM_CHECKS = {
    RowKind.CREATE: _terms_problem,
    RowKind.BUDGET: _terms_problem,
    RowKind.JOIN: _join_problem,
    RowKind.CHARGE: _charge_problem,
    RowKind.SETTLE: _settle_problem,
    RowKind.ACKNOWLEDGE: _acknowledge_problem,
    RowKind.ACT: _act_problem,
    RowKind.MOVE: _move_problem,
    RowKind.ARRIVE: _arrive_problem,
}
