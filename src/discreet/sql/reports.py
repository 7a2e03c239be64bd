"""How many units the limits touched: one noisy number, told beside the answer."""

import numpy as np

from discreet.kernel.question import Touched
from discreet.sql.estimates import CONFIDENCE
from discreet.sql.intervals import Noise
from discreet.sql.plan import Part


def touched(part: Part, noises: tuple[Noise, ...], noisy: np.ndarray, who: str) -> str | None:
    """Say about how many units have more than the limits; None if it was not asked, or no group is shown."""
    places = [place for place, total in enumerate(part.question.totals) if isinstance(total, Touched)]
    if not places or not len(noisy):
        return None
    (place,) = places
    number, margin = int(noisy[0, place]), noises[place].margin(CONFIDENCE)
    if number <= margin:
        return f"At most about {max(0, number) + margin:,} {who}s have more groups or rows than that."
    return f"{number:,} ± {margin:,} {who}s have more groups or rows than that, and weigh less for it."
