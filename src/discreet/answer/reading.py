"""Read answers and explanations back from Arrow tables and JSON, as servers send them."""

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pyarrow as pa

from discreet.answer.bias import Bias
from discreet.answer.model import Answer, Cost, ExplainedColumn, Explanation
from discreet.kernel.event import Receipt
from discreet.kernel.loss import Loss


def read_answer(table: pa.Table) -> Answer:
    """Return the answer of which `with_margins` returned this table.

    >>> answer = Answer(
    ...     pa.table({"city": ["Bonn"], "n": [1731]}), margins={"n": [30.0]}, noise={"n": "discrete Laplace, scale 10"},
    ...     cost=Cost(Loss("1/10"), share=Fraction(1, 40)), receipt=Receipt("5e1f"), bias={"n": [Bias(3, 4.5)]},
    ... )
    >>> again = read_answer(answer.with_margins())
    >>> again.margins == answer.margins, again.bias == answer.bias, repr(again) == repr(answer)
    (True, True, True)
    """
    values = json.loads((table.schema.metadata or {})[b"discreet"])
    exact, bias = values["exact"], values["bias"]
    names, margins = _split_columns(table, values)
    receipt = values["receipt"]
    return Answer(
        table=table.select(names).replace_schema_metadata(None),
        margins=margins,
        noise=values["noise"],
        cost=_read_cost(exact["cost"], exact["loss"]),
        receipt=None if receipt is None else Receipt(receipt),
        bounds=tuple(values["bounds"]),
        bias={name: [None if each is None else Bias(**each) for each in column] for name, column in bias.items()},
        left_out=tuple(values["left_out"]),
        clipping=tuple(values["clipping"]),
        notes=tuple(values["notes"]),
        origin=values["origin"],
        paid=read_loss(exact["paid"]),
        remaining=_fraction(exact["remaining"]),
        noise_margins=values["noise_margins"],
        sampling_margins=values["sampling_margins"],
        uncorrelated_sampling=frozenset(values["uncorrelated_sampling"]),
        correlated_noise=frozenset(values["correlated_noise"]),
    )


def read_explanation(values: Mapping[str, Any]) -> Explanation:
    """Return the explanation of which `to_dict` returned these values.

    >>> explanation = Explanation(Cost(Loss("1/10")), (ExplainedColumn("n", "discrete Laplace, scale 10", 30.0),))
    >>> read_explanation(json.loads(json.dumps(explanation.to_dict()))) == explanation
    True
    """
    exact = values["exact"]
    return Explanation(
        cost=_read_cost(exact["cost"], exact["loss"]),
        columns=tuple(ExplainedColumn(**column) for column in values["columns"]),
        groups=values["groups"],
        bounds=tuple(values["bounds"]),
        sql=values["sql"],
        notes=tuple(values["notes"]),
        paid=read_loss(exact["paid"]),
    )


def read_loss(exact: Mapping[str, str | None]) -> Loss:
    """Return a loss from its bounds as texts.

    >>> read_loss({"epsilon": None, "rho": "1/200", "delta": "0"})
    Loss(rho=1/200)
    """
    rho, delta = Fraction(exact["rho"] or 0), Fraction(exact["delta"] or 0)
    return Loss.of_bounds(_fraction(exact["epsilon"]), rho, delta)


def _read_cost(cost: Mapping[str, str | None], loss: Mapping[str, str | None]) -> Cost:
    """Return a cost; its own epsilon is known where costs add up in rho."""
    adds_up_in_rho = cost["share_of"] == "rho" or loss["epsilon"] is None
    epsilon, delta = _fraction(cost["epsilon"]), Fraction(cost["at_delta"] or 0)
    return Cost(read_loss(loss), epsilon if adds_up_in_rho else None, delta, _fraction(cost["share"]))


def _split_columns(table: pa.Table, values: Mapping[str, Any]) -> tuple[list[str], dict[str, list[float | None]]]:
    """Return the names of the answer's own columns, and the margins, by their places behind the noisy columns."""
    names, margins, rest = [], {}, list(table.column_names)
    while rest:
        names.append(name := rest.pop(0))
        if name in values["noise"]:
            margins[name] = table.column(rest.pop(0)).to_pylist()
            further = 2 * (name in values["noise_margins"]) + 2 * (name in values["bias"])
            del rest[:further]
    return names, margins


def _fraction(text: str | None) -> Fraction | None:
    return None if text is None else Fraction(text)
