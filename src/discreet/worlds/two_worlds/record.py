"""Everything that the page shows: what the real curator does at every epsilon of its slider, as plain data."""

import json
import secrets
import tempfile
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from discreet.answer.text import cost_forecast_sentences, error_forecast_sentences, round_to_margin, short_number
from discreet.curator.curator import Curator
from discreet.kernel.errors import Refused
from discreet.kernel.ledger.chain import LedgerRow, RowKind
from discreet.privacy import posterior_bound
from discreet.publish.report.odds import odds_text
from discreet.worlds.town import (
    PEOPLE,
    QUESTION,
    SECRET_ILLNESS,
    Resident,
    Town,
    recognisable_residents,
    true_counts,
    write_town,
)
from discreet.worlds.two_worlds.rounded_counts import RoundedNoise

_HASH = 12  # characters of a hash that are shown
_LEDGER_WORDS = (
    *("ledger_time", "ledger_seq", "ledger_hash", "ledger_previous", "mechanism", "spent"),
    *("settle_time", "settle_seq", "answer_hash"),
)


def step_words(recording: "Recording", facts: dict[str, Any]) -> dict[str, str]:
    """Return the words of one step."""
    margin = round_to_margin(0.0, recording.margin)[1]
    return {
        "epsilon": facts["epsilon"],
        "spoken": f"epsilon {facts['epsilon']}: ± {margin} people, at most {facts['ceiling_odds']} right",
        "cost": f"epsilon {facts['epsilon']}, all of this budget",
        "margin": f"± {margin}",
        "use": _usefulness(recording.unreliable, len(recording.counts)),
        "most": facts["ceiling_odds"].removesuffix(" cases"),
        "ceiling": _percent(facts["ceiling"]),
        "with": f"{100 * facts['yes'][0]:.0f}",
        "without": f"{100 * facts['yes'][1]:.0f}",
        "right": _percent((facts["yes"][0] + 1 - facts["yes"][1]) / 2),
        "attack": _percent(facts["attack"]),
        "attacked": f"{100 * facts['attack']:.0f} of 100",
        "next": f"It is refused: “{recording.refusal}” Instead of one question, this epsilon also buys ten, each "
        f"with a margin of ± {round_to_margin(0.0, recording.split_margin)[1]}.",
        **_ledger_words(recording.ledger),
    }


def exact_words(counts: dict[str, int]) -> dict[str, str]:
    """Return the words of the last step, on which nothing is protected."""
    return dict.fromkeys(_LEDGER_WORDS, "-") | {
        "epsilon": "no noise",
        "spoken": "no noise: exact numbers, and everybody is right",
        "cost": "none is counted",
        "margin": "± 0",
        "use": f"All {len(counts)} numbers are exact.",
        "next": "It is answered as well, and so are all others: there is no budget that could end.",
        "most": "100 of 100",
        "ceiling": "100 %",
        "with": "100",
        "without": "0",
        "right": "100 %",
        "attack": "100 %",
        "attacked": "100 of 100",
    }


def _ledger_words(rows: tuple[dict[str, Any], ...]) -> dict[str, str]:
    charge, settle = rows
    return {
        "ledger_time": _clock(charge["time"]),
        "ledger_seq": str(charge["seq"]),
        "ledger_hash": charge["hash"][:_HASH],
        "ledger_previous": charge["previous"][:_HASH],
        "mechanism": charge["mechanism"],
        "spent": f"{charge['spent']} of {charge['spent']}",
        "settle_time": _clock(settle["time"]),
        "settle_seq": str(settle["seq"]),
        "answer_hash": settle["answer"][:_HASH],
    }


def _usefulness(unreliable: int, groups: int) -> str:
    if not unreliable:
        return f"Useful: in all {groups} wards the margin is below a quarter of the number."
    if unreliable == groups:
        return f"Not useful: in all {groups} wards the margin exceeds a quarter of the number."
    wards = "1 ward" if unreliable == 1 else f"{unreliable} wards"
    return f"Useful in part: in {wards} of {groups} the margin exceeds a quarter of the number."


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _clock(time: str) -> str:
    return time[11:23]


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


_TEXTS = "0.01 0.015 0.02 0.03 0.05 0.07 0.1 0.15 0.2 0.3 0.5 0.7 1 1.5 2 3"
EPSILONS = tuple(map(Fraction, _TEXTS.split()))
FIRST_SHOWN = "0.1"
_TRIES = 12  # of the attack that are recorded for each epsilon
_BINS = 16  # on each side of where an outsider changes their mind
_AXIS = (-250, 950)  # people; of the chart of the answer
_SHOWN_SCALES = 4.0  # of the noise, on each side


def build_record() -> dict[str, Any]:
    """Ask the real curator at every epsilon of the slider, and add the exact probabilities."""
    with tempfile.TemporaryDirectory() as folder:
        write_town(Path(folder))
        town = Town(Path(folder))
        truth = true_counts(town)
        total = sum(truth.values())
        return {
            "people": PEOPLE,
            "sql": QUESTION,
            "truth": truth,
            "true_pair": (f"{total:,}", f"{total - 1:,}"),
            "axis": _AXIS,
            "residents": list(map(_resident_facts, recognisable_residents(town))),
            "steps": [*(step_facts(record_question(town, each), total) for each in EPSILONS), exact_facts(truth)],
        }


def _resident_facts(resident: Resident) -> dict[str, Any]:
    return {
        "id": resident.name.lower(),
        "name": resident.name,
        "age": resident.age,
        "ward": resident.ward,
        "queries": resident.differencing_queries(),
    }


def step_facts(recording: Recording, total: int) -> dict[str, Any]:
    """Return what is shown at one epsilon: the answer, what outsiders conclude, the attack and the ledger."""
    # Both queries of the attack together cost the same epsilon.
    bound, half = posterior_bound(Fraction(1, 2), recording.epsilon), halved(recording.noise)
    facts = {
        "epsilon": short_number(recording.epsilon),
        "margin": round(recording.margin, 3),
        "counts": recording.counts,
        "texts": {ward: " ± ".join(texts) for ward, texts in recording.texts.items()},
        "ceiling": round(float(bound), 6),
        "ceiling_odds": odds_text(float(bound)),
        "yes": [_rounded(recording.noise.at_least(0), 6), _rounded(recording.noise.at_least(1), 6)],
        "bins": binned(recording.noise),
        "attack": _rounded((1 + half.both_equal()) / 2, 6),
        "tries": [_try(total, secrets.randbelow(2), half.draw_pair()) for _ in range(_TRIES)],
    }
    return facts | {"words": step_words(recording, facts)}


def exact_facts(truth: dict[str, int]) -> dict[str, Any]:
    """Return what is shown at the end of the slider: exact answers, which protect nobody."""
    certain = [0.0] * (2 * _BINS)
    return {
        "epsilon": "none",
        "margin": 0,
        "counts": truth,
        "texts": {ward: f"{count}" for ward, count in truth.items()},
        "ceiling": 1,
        "yes": [1, 0],
        "bins": {
            "width": 1,
            "with": [*certain[:_BINS], 1, *certain[_BINS + 1 :]],
            "without": [*certain[: _BINS - 1], 1, *certain[_BINS:]],
        },
        "attack": 1,
        "tries": [_try(sum(truth.values()), 1, (0, 0))],
        "words": exact_words(truth),
    }


def _try(total: int, secret: int, noise: tuple[int, int]) -> dict[str, Any]:
    """Return one try of the differencing attack, in which a coin decided whether the person has the illness."""
    first, second = total - 1 + secret + noise[0], total - 1 + noise[1]
    guess = int(first - second >= 1)
    facts = SECRET_ILLNESS if secret else f"no {SECRET_ILLNESS}"
    return {
        "first": f"{first:,}",
        "second": f"{second:,}",
        "difference": f"{first - second:,}".replace("-", "\N{MINUS SIGN}"),
        "says": SECRET_ILLNESS if guess else f"no {SECRET_ILLNESS}",
        "truth": f"{facts}: {'right' if guess == secret else 'wrong'}",
        "right": guess == secret,
    }


def halved(noise: RoundedNoise) -> RoundedNoise:
    """Return the noise of a count at half the epsilon.

    >>> from discreet.kernel.mechanism import Laplace
    >>> halved(RoundedNoise(Laplace(10), 1)).scale
    20.0
    """
    return RoundedNoise(type(noise.noise)(2 * noise.noise.scale), noise.steps)


def binned(noise: RoundedNoise) -> dict[str, Any]:
    """Return the probabilities of the released count in equal bins: with the person, and without.

    The first bin to the right of the middle begins at the true count with the person, from which on an outsider who
    guesses best says that the person was counted.
    """
    width = max(1, round(_SHOWN_SCALES * noise.scale / _BINS))
    edges = [width * index for index in range(-_BINS, _BINS + 1)]
    with_person, without = ([noise.at_least(edge + shift) for edge in edges] for shift in (0, 1))
    return {
        "width": width,
        "with": [_rounded(here - end, 4) for here, end in pairwise(with_person)],
        "without": [_rounded(here - end, 4) for here, end in pairwise(without)],
    }


def _rounded(probability: Fraction | float, digits: int) -> float:
    return round(float(probability), digits)
