"""Stand-in."""

from dataclasses import dataclass
from enum import Enum, auto

import numpy as np

from discreet.kernel.mechanism import Gaussian, Laplace


@dataclass(frozen=True, eq=False)
class ContributionBuckets:
    """Noisy numbers of units, by the norm of their contribution."""

    lows: tuple[float, ...]
    counts: np.ndarray
    noise: Laplace | Gaussian


class RadiusGoal(Enum):
    MARGINS = auto()
    LEAST_ERROR = auto()


@dataclass(frozen=True)
class RadiusChoice:
    radius: float
    blind: bool = False


def choose_radius(buckets: ContributionBuckets, noise_ratio: float, cells: int, goal: RadiusGoal) -> RadiusChoice:
    scale = float(buckets.noise.scale)
    seen = [i for i, c in enumerate(buckets.counts) if c > 4 * scale]
    if not seen:
        return RadiusChoice(buckets.lows[min(4, len(buckets.lows) - 1)], True)
    return RadiusChoice(buckets.lows[min(seen[-1] + 1, len(buckets.lows) - 1)])
