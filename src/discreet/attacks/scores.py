"""Evidence of attacks that give everybody a score."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.attacks.evidence import Found
from discreet.attacks.implied import Implied, rise
from discreet.attacks.ranking import Curve, curve
from discreet.audit.counting import Share
from discreet.kernel.normal import deviations


@dataclass(frozen=True)
class Scores:
    """How strongly an attack took each member, and each stranger who is like them, for a member.

    >>> import numpy as np
    >>> scores = Scores(np.arange(1000) + 300, np.arange(1000))
    >>> scores.curve.auc > 0.7
    True
    >>> scores.implied().low > 0.2
    True
    """

    members: np.ndarray
    strangers: np.ndarray

    def __post_init__(self) -> None:
        for name in ("members", "strangers"):
            scores = np.asarray(getattr(self, name), float)
            if scores.ndim != 1 or not scores.size or np.isnan(scores).any():
                raise ValueError(f"{name} must be one score each, at least one, and none of them NaN")
            object.__setattr__(self, name, scores)

    @property
    def success(self) -> float:
        """The area under the curve."""
        return self.curve.auc

    @property
    def baseline(self) -> float:
        """The area under the curve of an attack that knows nothing."""
        return 0.5

    @property
    def beside(self) -> str:
        """What the baseline is: guessing."""
        return "guessing"

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the ends between which the area lies, about: by its standard error (Hanley and McNeil 1982)."""
        area = self.success
        above, below = area / (2 - area) - area**2, 2 * area**2 / (1 + area) - area**2
        sizes = self.members.size, self.strangers.size
        spread = (area * (1 - area) + (sizes[0] - 1) * above + (sizes[1] - 1) * below) / math.prod(sizes)
        reach = deviations(confidence) * math.sqrt(max(spread, 0.0))
        return max(0.0, area - reach), min(1.0, area + reach)

    @property
    def curve(self) -> Curve:
        """The members found against the strangers taken for members, for every threshold."""
        return curve(self.members, self.strangers)

    def implied(self, delta: float = 0.0, confidence: float = 0.95) -> Implied:
        """Return the epsilon implied at the threshold that looks best on half of the people, by the other half."""
        if min(self.members.size, self.strangers.size) < 4:
            return Implied(0.0, 0.0, math.inf)
        threshold = self._best_threshold(delta)
        fresh = [scores[1::2] for scores in (self.members, self.strangers)]
        members, strangers = (Share(int((scores >= threshold).sum()), scores.size) for scores in fresh)
        return Found(members, strangers).implied(delta, confidence)

    def ceiling(self, epsilon: float, delta: float = 0.0) -> float:
        """Return the highest area under the curve: that of the line e^epsilon · FPR + delta and its mirror image."""
        # From (0, delta) with slope e^epsilon to the corner, and on to (1 - delta, 1) with slope e^-epsilon.
        if delta >= 1:
            return 1.0
        most = rise(epsilon)
        corner = (1 - delta) / (1 + most)
        height = delta + corner * most
        return corner * (delta + height) / 2 + (1 - delta - corner) * (height + 1) / 2 + delta

    def _best_threshold(self, delta: float) -> float:
        pilot = [np.sort(scores[0::2]) for scores in (self.members, self.strangers)]
        tried = np.unique(np.quantile(np.concatenate(pilot), np.linspace(0, 1, 200), method="nearest"))
        middle = float(np.median(np.concatenate(pilot)))  # where most can be told, if nothing stands out
        best = max([middle, *tried], key=lambda threshold: self._pilot(pilot, threshold, delta))
        return float(best)

    def _pilot(self, pilot: Any, threshold: float, delta: float) -> float:
        shares = [Share(int(part.size - np.searchsorted(part, threshold)), part.size) for part in pilot]
        return Found(*shares).implied(delta).low
