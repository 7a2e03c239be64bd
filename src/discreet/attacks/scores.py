"""Evidence from attacks that score everybody: ROC curve, AUC and the epsilon it implies."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from discreet.attacks.evidence import EventEvidence, ImpliedEpsilon, exp_epsilon
from discreet.attacks.validation import require
from discreet.audit.hypothesis_tests import Proportion
from discreet.local.estimation import z_score


@dataclass(frozen=True)
class RocCurve:
    """False positive rate (non-members) and true positive rate (members) at every threshold, highest threshold first.

    >>> import numpy as np
    >>> curve = roc_curve(np.array([3.0, 2.0]), np.array([1.0, 2.0]))
    >>> curve.fpr.tolist(), curve.tpr.tolist()
    ([0.0, 0.0, 0.5, 1.0], [0.0, 0.5, 1.0, 1.0])
    >>> curve.auc
    0.875
    """

    fpr: np.ndarray
    tpr: np.ndarray
    non_member_count: int

    @property
    def auc(self) -> float:
        """The probability that a member scores above a non-member, ties counted half; 1/2 without information."""
        return float(np.trapezoid(self.tpr, self.fpr))

    def tpr_at(self, fpr: float) -> float | None:
        """Return the true positive rate at this false positive rate; None with too few non-members."""
        if self.non_member_count * fpr < 1:
            return None
        return float(self.tpr[np.searchsorted(self.fpr, fpr * (1 + 1e-12), side="right") - 1])


def roc_curve(members: np.ndarray, non_members: np.ndarray) -> RocCurve:
    """Return the ROC curve of these scores; equal scores form one step.

    >>> import numpy as np
    >>> roc_curve(np.ones(5), np.ones(5)).auc
    0.5
    """
    scores = np.concatenate([members, non_members])
    is_member = np.arange(scores.size) < members.size
    order = np.argsort(-scores, kind="stable")
    run_ends = np.flatnonzero(np.diff(scores[order], append=np.nan))  # the end of each run of ties
    tpr = np.cumsum(is_member[order])[run_ends] / members.size
    fpr = np.cumsum(~is_member[order])[run_ends] / non_members.size
    return RocCurve(np.concatenate([[0.0], fpr]), np.concatenate([[0.0], tpr]), int(non_members.size))


@dataclass(frozen=True)
class ScoreEvidence:
    """Membership scores of members and of comparable non-members.

    >>> import numpy as np
    >>> evidence = ScoreEvidence(np.arange(1000) + 300, np.arange(1000))
    >>> evidence.curve.auc > 0.7
    True
    >>> evidence.implied().low > 0.2
    True
    """

    baseline: ClassVar[float] = 0.5  # the AUC of guessing
    baseline_name: ClassVar[str] = "guessing"
    members: np.ndarray
    non_members: np.ndarray

    def __post_init__(self) -> None:
        for name in ("members", "non_members"):
            scores = np.asarray(getattr(self, name), float)
            require(
                scores.ndim == 1 and scores.size and not np.isnan(scores).any(),
                f"{name} must be a list of scores, at least one and none of them NaN",
            )
            object.__setattr__(self, name, scores)

    @property
    def success(self) -> float:
        """The area under the ROC curve."""
        return self.curve.auc

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return an approximate confidence interval of the AUC (Hanley and McNeil 1982)."""
        area = self.success
        above, below = area / (2 - area) - area**2, 2 * area**2 / (1 + area) - area**2
        sizes = self.members.size, self.non_members.size
        variance = (area * (1 - area) + (sizes[0] - 1) * above + (sizes[1] - 1) * below) / math.prod(sizes)
        half_width = z_score(confidence) * math.sqrt(max(variance, 0.0))
        return max(0.0, area - half_width), min(1.0, area + half_width)

    @property
    def curve(self) -> RocCurve:
        """The ROC curve."""
        return roc_curve(self.members, self.non_members)

    def implied(self, delta: float = 0.0, confidence: float = 0.95) -> ImpliedEpsilon:
        """Return the epsilon implied at the best threshold, which is chosen on one half and tested on the other."""
        if min(self.members.size, self.non_members.size) < 4:
            return ImpliedEpsilon(0.0, 0.0, math.inf)
        threshold = self._best_threshold(delta)
        held_out = [scores[1::2] for scores in (self.members, self.non_members)]
        members, non_members = (Proportion(int((scores >= threshold).sum()), scores.size) for scores in held_out)
        return EventEvidence(members, non_members).implied(delta, confidence)

    def ceiling(self, epsilon: float, delta: float = 0.0) -> float:
        """Return the highest AUC: that of the line TPR = e^epsilon · FPR + delta and its mirror image."""
        # From (0, delta) with slope e^epsilon to the corner, then to (1 - delta, 1) with slope e^-epsilon.
        if delta >= 1:
            return 1.0
        ratio_bound = exp_epsilon(epsilon)
        corner = (1 - delta) / (1 + ratio_bound)
        height = delta + corner * ratio_bound
        return corner * (delta + height) / 2 + (1 - delta - corner) * (height + 1) / 2 + delta

    def _best_threshold(self, delta: float) -> float:
        pilot = [np.sort(scores[0::2]) for scores in (self.members, self.non_members)]
        candidates = np.unique(np.quantile(np.concatenate(pilot), np.linspace(0, 1, 200), method="nearest"))
        median = float(np.median(np.concatenate(pilot)))  # the fallback with most power if no threshold stands out
        best = max([median, *candidates], key=lambda threshold: self._pilot_epsilon(pilot, threshold, delta))
        return float(best)

    def _pilot_epsilon(self, pilot: Any, threshold: float, delta: float) -> float:
        shares = [Proportion(int(part.size - np.searchsorted(part, threshold)), part.size) for part in pilot]
        return EventEvidence(*shares).implied(delta).low
