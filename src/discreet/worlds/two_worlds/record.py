"""Everything that the page shows, at every epsilon of its slider, as plain data."""

import secrets
import tempfile
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from discreet.answer.text import short_number
from discreet.privacy import posterior_bound
from discreet.publish.report.odds import odds_text
from discreet.worlds.town import PEOPLE, SECRET_ILLNESS, Town, write_town
from discreet.worlds.two_worlds.recording import Recording, record_question
from discreet.worlds.two_worlds.residents import QUESTION, Resident, recognisable_residents, true_counts
from discreet.worlds.two_worlds.rounded_counts import RoundedNoise
from discreet.worlds.two_worlds.words import exact_words, step_words

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
        "queries": resident.differencing_queries,
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
