"""Runs that ended in an error: what there is to say about them."""

from collections import Counter
from typing import Any

import numpy as np

from discreet.audit.outcomes import Raised, Runs

_SHOWN = 3  # kinds of errors


def failures(ran: Runs) -> list[str]:
    """Return which errors there were, with an example of their text, and in how many runs on either data set.

    >>> failures(Runs([Raised("KeyError", "'income'"), 1], [1, 2], alone=True))
    ["raised KeyError: 'income' in 1 of 2 and 0 of 2 runs"]
    """
    errors = [_errors(side) for side in ran.sides()]
    counts = [Counter(error.kind for error in side) for side in errors]
    said = []
    for kind, _ in (counts[0] + counts[1]).most_common(_SHOWN):
        texts = list(dict.fromkeys(error.text for side in errors for error in side if error.kind == kind))
        more = f" (and {_other(len(texts) - 1, 'text')})" if len(texts) > 1 else ""
        seen = " and ".join(
            f"{count[kind]:,} of {len(side):,}" for count, side in zip(counts, ran.sides(), strict=True)
        )
        said.append(f"{_short(Raised(kind, texts[0]))}{more} in {seen} runs")
    rest = len(counts[0] + counts[1]) - len(said)
    return [*said, f"raised errors of {_other(rest, 'kind')}"] if rest > 0 else said


def all_failed(ran: Runs) -> bool:
    """Tell whether not one run on either data set came to an end."""
    return all(len(_errors(side)) == len(side) for side in ran.sides())


def check_some_ran(ran: Runs) -> None:
    """Refuse runs that all failed: they say nothing about a mechanism."""
    if all_failed(ran):
        raise ValueError(
            f"mechanism: every run on both data sets {_short(ran.here[0])}. Nothing was audited: "
            "call it once by yourself, with D and with D2, and audit it when that works."
        )


def _errors(side: Any) -> list[Raised]:
    if isinstance(side, np.ndarray) and side.dtype.kind != "O":
        return []  # a million numbers need not be looked through
    return [output for output in side if isinstance(output, Raised)]


def _short(error: Raised) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 120 else f"{text[:119]}…"


def _other(count: int, noun: str) -> str:
    return f"{count:,} other {noun}{'s' if count > 1 else ''}"
