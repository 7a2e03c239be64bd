"""Answers as JSON, CSV or an Arrow stream, by what the client accepts; budgets, charges and tables as JSON."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from fractions import Fraction
from io import BytesIO
from typing import Any, Literal
from weakref import WeakKeyDictionary

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pyarrow.csv as pcsv  # type: ignore[import-untyped, unused-ignore]
from starlette.responses import Response

from discreet.answer.model import Answer
from discreet.kernel.event import Event
from discreet.kernel.loss import ZERO_LOSS, Loss
from discreet.policy.column_domains import Between, DeclaredColumn, Keys, References
from discreet.policy.declarations import DeclaredTable
from discreet.pricing.remaining_budget import BudgetStatus
from discreet.server.approvals import Approval

ARROW = "application/vnd.apache.arrow.stream"
CSV, JSON = "text/csv", "application/json"
_MAX_KEPT = 1 << 16  # bytes of a body
_MAX_KEYS = 1000  # of a column that are listed


class AnswerBodies:
    """Responses with answers; the small ones of answers that are kept elsewhere are not encoded again.

    >>> from discreet.answer.model import Cost
    >>> from discreet.kernel.loss import Loss
    >>> answer = Answer(pa.table({"n": [3]}), {}, {}, Cost(Loss(1)), None)
    >>> AnswerBodies().response(answer, "text/csv").body.split()
    [b'"n"', b'3']
    """

    def __init__(self) -> None:
        self._bodies: WeakKeyDictionary[Answer, dict[str, bytes]] = WeakKeyDictionary()

    def response(self, answer: Answer, accept: str, data: Literal["private", "dummy"] = "private") -> Response:
        """Return an answer as an Arrow stream or CSV if the client accepts that, otherwise as JSON; all have margins.

        Costs and notes are in JSON, and in the metadata of Arrow. An answer on dummy data says so in each of them: CSV
        has one more column for that.
        """
        kind = next((kind for kind in (ARROW, CSV) if kind in accept), JSON)
        known = self._bodies.setdefault(answer, {})
        body = known[kind] if kind in known else _encoded(answer, kind, data)
        if len(body) <= _MAX_KEPT:
            known[kind] = body
        return Response(body, media_type=kind)


def _encoded(answer: Answer, kind: str, data: str) -> bytes:
    table = answer.with_margins()
    if kind == ARROW:
        return _arrow_stream(table)
    if kind == CSV:
        sink = BytesIO()
        marked = table if data == "private" else table.append_column("data", pa.array([data] * len(answer)))
        pcsv.write_csv(marked, sink)
        return sink.getvalue()
    columns = [{"name": field.name, "type": str(field.type)} for field in table.schema]
    rows = [_finite(row) for row in table.to_pylist()]
    return _json_bytes({"columns": columns, "rows": rows, "data": data, **answer.to_dict()})


def json_response(content: Any, status: int = 200) -> Response:
    """Return values as JSON; dates and exact numbers as texts."""
    return Response(_json_bytes(content), status_code=status, media_type=JSON)


def _json_bytes(content: Any) -> bytes:
    return json.dumps(content, default=str, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def _arrow_stream(table: pa.Table) -> bytes:
    sink = BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _finite(row: Mapping[str, Any]) -> dict[str, Any]:
    """Replace numbers that JSON cannot express by null."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in row.items()
    }


def budget_values(status: BudgetStatus) -> dict[str, Any]:
    """Return a budget for JSON, with exact numbers as texts under `exact`.

    >>> from discreet.kernel.loss import Budget
    >>> from discreet.pricing.remaining_budget import RemainingBudget
    >>> rest = RemainingBudget(Fraction(2, 3), Fraction(2, 9), Fraction(0))
    >>> values = budget_values(BudgetStatus(Budget(1), Loss("1/3"), rest))
    >>> values["spent"]["epsilon"], values["exact"]["spent"]["epsilon"]
    (0.3333333333333333, '1/3')
    """
    total, spent, rest = status
    numbers = {
        "total": {"epsilon": total.epsilon, "delta": total.delta, "discover": total.discover, "rho": total.rho},
        "spent": loss_numbers(spent),
        "remaining": rest._asdict(),
    }
    return {**_each_number(numbers, float), "exact": _each_number(numbers, str)}


def loss_numbers(loss: Loss) -> dict[str, Fraction | None]:
    """Return the bounds of a loss."""
    return {"epsilon": loss.epsilon, "rho": loss.rho, "delta": loss.delta}


def exact_numbers(loss: Loss) -> dict[str, str | None]:
    """Return the bounds of a loss as exact texts."""
    return {name: None if value is None else str(value) for name, value in loss_numbers(loss).items()}


def _each_number(numbers: Mapping[str, Mapping[str, Fraction | None]], convert: Any) -> dict[str, Any]:
    return {
        name: {key: None if value is None else convert(value) for key, value in values.items()}
        for name, values in numbers.items()
    }


def event_values(event: Event) -> dict[str, Any]:
    """Return a charge for JSON, without its answer."""
    try:
        question = json.loads(event.question)
    except ValueError:
        question = {"text": event.question}
    return {
        "receipt": event.id,
        "time": f"{event.time[:16]}+00:00",  # to the minute: seconds would say how long others' questions took
        "by": event.by,
        "dataset": event.dataset,
        "state": str(event.state),
        **_each_number({"cost": loss_numbers(event.loss or ZERO_LOSS)}, float),
        "exact_cost": exact_numbers(event.loss or ZERO_LOSS),
        "question": question,
        "mechanism": json.loads(event.mechanism),
    }


def approval_values(approval: Approval) -> dict[str, Any]:
    """Return a request that waits for approval, for JSON."""
    return {name: value for name, value in asdict(approval).items() if name != "digest"}


def table_values(table: DeclaredTable, columns: Iterable[DeclaredColumn], noun: str) -> dict[str, Any]:
    """Return a table's declaration for JSON, without the location of its rows."""
    return {
        "name": table.name,
        "public": table.public,
        "protects": None if table.public else noun,
        "groups": table.groups,
        "rows": table.rows,
        "columns": [_column_values(column) for column in columns],
    }


def _column_values(column: DeclaredColumn) -> dict[str, Any]:
    values: dict[str, Any] = {"name": column.name, "type": column.type, "null": column.null}
    match column.domain:
        case Between(low, high):
            values["between"] = [_json_number(low), _json_number(high)]
        case Keys(keys):
            values |= {"in": [_json_number(key) for key in keys[:_MAX_KEYS]], "in_count": len(keys)}
        case References(table, name):
            values["references"] = f"{table}.{name}"
    return values


def _json_number(value: Any) -> Any:
    return float(value) if isinstance(value, Fraction) else value
