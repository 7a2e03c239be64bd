"""What the real curator does with the question at one epsilon: forecast, charge, answer, refusal of the next query."""

import json
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from discreet.answer.text import cost_forecast_sentences, error_forecast_sentences, round_to_margin, short_number
from discreet.curator.curator import Curator
from discreet.kernel.errors import Refused
from discreet.kernel.ledger.chain import LedgerRow, RowKind
from discreet.worlds.town import Town
from discreet.worlds.two_worlds.residents import QUESTION
from discreet.worlds.two_worlds.rounded_counts import RoundedNoise


@dataclass(frozen=True)
class Recording:
    """One question to a fresh curator whose whole budget it costs."""

    epsilon: Fraction
    noise: RoundedNoise
    forecast: tuple[str, ...]
    margin: float
    split_margin: float  # of each of ten questions that together cost the same
    counts: dict[str, int]
    texts: dict[str, tuple[str, str]]
    unreliable: int
    refusal: str
    ledger: tuple[dict[str, Any], ...]


def record_question(town: Town, epsilon: Fraction) -> Recording:
    """Ask the question with a budget of this epsilon, and record what can be seen before, during and after it."""
    with town.open_with_budget(str(epsilon)) as curator:
        explanation, split = (curator.explain(QUESTION, epsilon=epsilon / parts) for parts in (1, 10))
        answer = curator.ask(QUESTION, epsilon=epsilon)
        counts = dict(zip(*(answer.table.column(name).to_pylist() for name in ("ward", "people")), strict=True))
        margins = [margin or 0.0 for margin in answer.margins["people"]]
        return Recording(
            epsilon,
            RoundedNoise.of_charge(curator.ledger.events()[0]),
            (*cost_forecast_sentences(explanation), *error_forecast_sentences(explanation)),
            margins[0],
            split.columns[0].margin or 0.0,
            counts,
            {
                ward: round_to_margin(count, margin)
                for (ward, count), margin in zip(counts.items(), margins, strict=True)
            },
            answer.reliable["people"].count(False),
            _refusal(curator, epsilon),
            _ledger_rows(curator),
        )


def _refusal(curator: Curator, epsilon: Fraction) -> str:
    try:
        curator.ask("SELECT AVG(income) AS mean FROM people", epsilon=epsilon)
    except Refused as refusal:
        return str(refusal)
    raise AssertionError("the budget must be spent")


def _ledger_rows(curator: Curator) -> tuple[dict[str, Any], ...]:
    """Return the rows of the charge and of the stored answer as they are in the ledger."""
    with curator.ledger.session.read_transaction() as table:
        rows = list(table.rows())
    assert all(row.previous == before.hash for before, row in pairwise(rows))
    return tuple(_row_facts(row) for row in rows if row.kind in (RowKind.CHARGE, RowKind.SETTLE))


def _row_facts(row: LedgerRow) -> dict[str, Any]:
    body = json.loads(row.body)
    facts = {
        "seq": row.seq,
        "time": row.time,
        "kind": row.kind,
        "by": row.by,
        "previous": row.previous,
        "hash": row.hash,
    }
    if row.kind == RowKind.SETTLE:
        return facts | {"answer": body["sha256"]}
    mechanism, l1 = json.loads(body["mechanism"]), int(json.loads(body["sensitivity"])["l1"])
    scale = short_number(Fraction(mechanism["scale"]) / l1)
    return facts | {
        "epsilon": short_number(Fraction(row.loss.split()[0])),
        "spent": short_number(Fraction(row.spent.split()[0])),
        "mechanism": f"discrete {mechanism['name'].capitalize()}, scale {scale}",
    }
