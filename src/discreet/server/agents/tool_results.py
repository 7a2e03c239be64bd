"""Results of tools as JSON: answers, refusals with their hint, and what a policy says about its tables."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from discreet.answer.model import Answer, Explanation
from discreet.kernel.errors import DiscreetError, Failed
from discreet.pricing.remaining_budget import BudgetStatus

MAX_ROWS = 1_000  # of an answer that a tool returns
_PLACE = re.compile(r"line (\d+)(?:, column (\d+))?(?:, ([A-Z][A-Z ]*))?: ")
_COLUMN_NAMES = {"column_name": "name", "data_type": "type", "minimum": "minimum", "maximum": "maximum"}


def answer_result(answer: Answer, *, data: str) -> dict[str, Any]:
    """Return an answer: its rows with their margins of error as columns, and what it cost.

    `data` says what was asked: "private" or "dummy".
    """
    described, table = answer.to_dict(), answer.with_margins()
    rows = table.slice(0, MAX_ROWS)
    notes = [*described["notes"], *described["left_out"], *described["clipping"]]
    if table.num_rows > MAX_ROWS:
        notes.append(
            f"Only the first {MAX_ROWS:,} of {table.num_rows:,} rows are shown. Add LIMIT or a coarser grouping."
        )
    return {
        "status": "answered",
        "data": data,
        "columns": table.column_names,
        "rows": [
            list(map(_json_value, row)) for row in zip(*(column.to_pylist() for column in rows.columns), strict=True)
        ],
        "unreliable_cells": [
            [name, row] for name, flags in answer.reliable.items() for row, flag in enumerate(flags) if flag is False
        ][:MAX_ROWS],
        "cost": described["cost"],
        "charged": described["paid"],
        "remaining_epsilon": described["remaining"],
        "receipt": described["receipt"],
        "notes": notes,
    }


def explanation_result(explanation: Explanation) -> dict[str, Any]:
    """Return what a query would cost and how accurate its answer would be; without the engine's SQL."""
    described = explanation.to_dict()
    described.pop("sql")
    described.pop("exact")
    return {"status": "explained", **described}


def refusal_result(error: DiscreetError) -> dict[str, Any]:
    """Return why there is no answer, where the mistake is, and the hint.

    >>> from discreet.kernel.errors import Refused
    >>> refusal_result(Refused('line 1, GROUP BY: column "wrd" does not exist. Did you mean ward?'))["hint"]
    'Did you mean ward?'
    """
    message = str(error)
    place = _PLACE.match(message)
    problem, _, hint = message[place.end() if place else 0 :].partition(". ")
    result: dict[str, Any] = {
        "status": "failed" if isinstance(error, Failed) else "refused",
        "charged": isinstance(error, Failed),
        "message": message,
        "problem": f"{problem.rstrip('.')}.",
        "hint": hint,
    }
    if place:
        result |= {"line": int(place[1]), "clause": place[3] or ""}
    return result


def tables_result(tables: pa.Table, columns: pa.Table) -> dict[str, Any]:
    """Return the tables and columns of information_schema, by table; what is not declared is left out."""
    listed = []
    for table in tables.to_pylist():
        of_table = [row for row in columns.to_pylist() if row["table_name"] == table["table_name"]]
        listed.append(
            {
                "table": table["table_name"],
                "private": table["is_private"] == "YES",
                "privacy_unit": table["privacy_unit"],
                "columns": [_column(row) for row in of_table],
            }
        )
    return {"tables": listed}


def budget_result(status: BudgetStatus) -> dict[str, Any]:
    """Return the budget, what is spent, and what remains for one more query."""
    numbers = {
        "epsilon": status.total.epsilon,
        "delta": status.total.delta,
        "spent_epsilon": status.spent.epsilon,
        "spent_rho": status.spent.rho,
        "remaining_epsilon": status.remaining.epsilon,
    }
    return {name: None if number is None else float(number) for name, number in numbers.items()}


def _column(row: Mapping[str, Any]) -> dict[str, Any]:
    described = {new: row[old] for old, new in _COLUMN_NAMES.items() if row[old] is not None}
    if row["declared_values"] is not None:
        described["values"] = row["declared_values"]
    described["nullable"] = row["is_nullable"] == "YES"
    if row["is_unit"] == "YES":
        described["is_privacy_unit"] = True
    return described


def _json_value(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
