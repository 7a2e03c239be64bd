"""Who is most exposed: an attack's success by how rare people are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.audit.counting import Share


@dataclass(frozen=True)
class Exposure:
    """Success in each tenth of the people, from the most common to the rarest, and the rarest who were hit.

    >>> import numpy as np
    >>> found = exposure(np.arange(100), np.arange(100) >= 90, labels=[f"row {i}" for i in range(100)])
    >>> found.deciles[-1].value, found.deciles[0].value
    (1.0, 0.0)
    >>> found.rarest_hit[0]
    'row 99'
    """

    by: str
    deciles: tuple[Share, ...]
    rarest_hit: tuple[str, ...]


def exposure(
    rarity: Any, hit: Any, *, labels: Sequence[object] | None = None, by: str = "rarity", most: int = 5
) -> Exposure:
    """Return success by decile of rarity (a higher number: a rarer person); fewer than ten people, fewer parts."""
    rare, was_hit = np.asarray(rarity, float), np.asarray(hit, bool)
    if rare.shape != was_hit.shape or rare.ndim != 1 or not rare.size:
        raise ValueError("rarity and hit must have one entry for each person, and at least one")
    order = np.argsort(rare, kind="stable")
    parts = [part for part in np.array_split(order, 10) if part.size]
    named = [place for place in order[::-1] if was_hit[place]][:most]
    names = [str(place if labels is None else labels[place]) for place in named]
    return Exposure(by, tuple(Share(int(was_hit[part].sum()), part.size) for part in parts), tuple(names))
