"""How well scores tell members from strangers: the curve, the area below it, and its beginning, which matters most."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Curve:
    """Strangers taken for members (FPR) and members found (TPR) at every threshold, from the highest to the lowest.

    >>> import numpy as np
    >>> drawn = curve(np.array([3.0, 2.0]), np.array([1.0, 2.0]))
    >>> drawn.fpr.tolist(), drawn.tpr.tolist()
    ([0.0, 0.0, 0.5, 1.0], [0.0, 0.5, 1.0, 1.0])
    >>> drawn.auc
    0.875
    """

    fpr: np.ndarray
    tpr: np.ndarray
    strangers: int

    @property
    def auc(self) -> float:
        """The chance that a member scores above a stranger, ties counted half: 1/2 for an attack that knows nothing."""
        return float(np.trapezoid(self.tpr, self.fpr))

    def found_at(self, fpr: float) -> float | None:
        """Return the members found while at most this share of strangers is taken for members.

        None where there are too few strangers to tell.
        """
        if self.strangers * fpr < 1:
            return None
        return float(self.tpr[np.searchsorted(self.fpr, fpr * (1 + 1e-12), side="right") - 1])


def curve(members: np.ndarray, strangers: np.ndarray) -> Curve:
    """Return the curve of these scores; equal scores are one step of it.

    >>> import numpy as np
    >>> curve(np.ones(5), np.ones(5)).auc
    0.5
    """
    scores = np.concatenate([members, strangers])
    inside = np.arange(scores.size) < members.size
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.diff(scores[order], append=np.nan))  # the last place of each run of equal scores
    found = np.cumsum(inside[order])[ends] / members.size
    taken = np.cumsum(~inside[order])[ends] / strangers.size
    return Curve(np.concatenate([[0.0], taken]), np.concatenate([[0.0], found]), int(strangers.size))
