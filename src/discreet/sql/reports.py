"""How many units the limits touched: one noisy number, told beside the answer."""

import numpy as np

from discreet.kernel.question import Question, Touched
from discreet.sql.estimates import CONFIDENCE
from discreet.sql.intervals import Noise
from discreet.sql.plan import Part


def touched(part: Part, noises: tuple[Noise, ...], noisy: np.ndarray, who: str) -> str | None:
    """Say about how many units have more than the limits; None if it was not asked, or no group is shown."""
    places = [place for place, total in enumerate(part.question.totals) if isinstance(total, Touched)]
    if not places or not len(noisy):
        return None
    (place,) = places
    number, margin, more = int(noisy[0, place]), noises[place].margin(CONFIDENCE), _more(part.question, place)
    if number <= margin:
        most = max(0, number) + margin
        return f"How many {who}s have {more} cannot be told at this price: at most about {most:,}."
    return f"{number:,} ± {margin:,} {who}s have {more}: they weigh less, and counts and sums come out too low."


def _more(question: Question, place: int) -> str:
    """Say what there is more of than the limits allow."""
    total = question.totals[place]
    rows = f"more than {question.rows:,} row{'s' if question.rows > 1 else ''} in a group"
    groups = f"more than {question.limit.groups:,} group{'s' if question.limit.groups > 1 else ''}"
    ways = [rows] if isinstance(total, Touched) and total.rows else []
    return " or ".join([*ways, *([groups] if question.scaled else [])])
