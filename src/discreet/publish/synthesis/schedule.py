"""The releases of a synthesis, fixed before data is read: everything can be charged at once."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol

import numpy as np

from discreet.kernel.errors import require
from discreet.kernel.numbers import as_integer, as_nonnegative
from discreet.publish.synthesis.junction_tree import Columns
from discreet.publish.synthesis.merged_columns import MergedColumn, candidate_tables


@dataclass(frozen=True)
class SynthesisSettings:
    """How large the model may become, and how the budget is divided; the defaults suit most tables.

    >>> SynthesisSettings(rounds=1).round_share
    Fraction(17, 20)
    """

    model_cells: int = 200_000  # in all cliques of the junction tree; larger is slower and slightly more accurate
    rounds: int = 2  # of choosing and measuring tables
    steps: int = 200  # of mirror descent after each release of tables
    columns_share: Fraction = Fraction(1, 10)  # of the budget, for all single columns
    distances_share: Fraction = Fraction(1, 10)  # of a round, for choosing its tables
    quality_share: Fraction = Fraction(1, 20)  # of the budget, for the quality report; 0 for none
    group_share: Fraction = Fraction(1, 32)  # of the rows, at least, in each value of a merged column
    norm: Literal[1, 2] = 2  # of a unit's contributions: 2 for Gaussian noise and rho, 1 for Laplace and epsilon

    def __post_init__(self) -> None:
        for name in ("model_cells", "rounds", "steps"):
            as_integer(getattr(self, name), name, minimum=1)
        for name in ("columns_share", "distances_share", "quality_share"):
            vars(self)[name] = share = as_nonnegative(getattr(self, name), name)
            require(share < 1, f"{name} must be below 1")
        require(self.columns_share > 0 < self.distances_share, "columns_share and distances_share must be above 0")
        require(self.round_share > 0, "columns_share and quality_share must add up to less than 1")
        vars(self)["group_share"] = as_nonnegative(self.group_share, "group_share")
        require(0 < self.group_share <= 1, "group_share must be above 0 and at most 1")
        require(self.norm in {1, 2}, f"norm must be 1 or 2, not {self.norm!r}")

    @property
    def round_share(self) -> Fraction:
        """The share of the budget for each round."""
        return (1 - self.columns_share - self.quality_share) / self.rounds


@dataclass(frozen=True)
class ScheduledRelease:
    """One release: tables whose weights have norm one (count 1), or `count` distances; and its share of the budget.

    A row changes each distance by at most one, and weighted tables by at most one in the norm: so does a unit, times
    its number of rows.
    """

    kind: Literal["tables", "distances"]
    count: int
    share: Fraction


class Measurer(Protocol):
    """Reads the data: each call is the next release of the schedule, and is already paid for."""

    @property
    def deviations(self) -> Sequence[float]:
        """Standard deviation of the noise in each release: of a distance, or of a cell in a table of weight 1."""

    def tables(self, tables: Sequence[Columns], weights: Sequence[float]) -> list[np.ndarray]:
        """Return noisy counts of rows; a table's noise is that of the release, divided by the table's weight.

        Columns after those of the data are the merged ones.

        The weights divide the release's share: their squares add up to 1, or they themselves in the norm 1.
        """

    def distances(self, tables: Sequence[Columns], models: Sequence[np.ndarray]) -> np.ndarray:
        """Return the noisy l1 distances between exact tables and integer tables of a model."""

    def merge(self, merged: Sequence[MergedColumn]) -> None:
        """Add merged columns, once, after the release of all single columns."""


def candidates_of(sizes: Sequence[int], settings: SynthesisSettings) -> Mapping[Columns, list[Columns]]:
    """Return the tables that a model may contain for each pair of columns: they vary, and fit into its limit."""
    return candidate_tables(sizes, math.floor(1 / settings.group_share), settings.model_cells)


def release_schedule(sizes: Sequence[int], settings: SynthesisSettings) -> list[ScheduledRelease]:
    """Return the releases that a synthesis makes, in order, whatever the data and the noise.

    >>> for release in release_schedule([2, 3, 4], SynthesisSettings(rounds=1)):
    ...     print(release.kind, release.count, release.share)
    tables 1 1/10
    distances 3 17/200
    tables 1 153/200
    distances 3 1/20
    """
    candidates = candidates_of(sizes, settings)
    if not candidates:
        return [ScheduledRelease("tables", 1, Fraction(1))]
    choosing = settings.round_share * settings.distances_share
    columns, quality = settings.columns_share, settings.quality_share
    one_round = [
        ScheduledRelease("distances", sum(map(len, candidates.values())), choosing),
        ScheduledRelease("tables", 1, settings.round_share - choosing),
    ]
    last = [ScheduledRelease("distances", len(candidates), quality)] if quality else []
    return [ScheduledRelease("tables", 1, columns), *one_round * settings.rounds, *last]
