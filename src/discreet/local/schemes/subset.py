"""Subset selection: a few values together, among which the own one is likely to be."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.kernel.exact import Number
from discreet.kernel.noise.chance import dice, tosses
from discreet.kernel.noise.keystream import Source, stream
from discreet.local.domain import Domain
from discreet.local.oracle import Oracle, priced
from discreet.local.schemes import packed
from discreet.local.schemes.supporting import shares_of

LARGEST = 1 << 16  # values; a report takes a die for each value in its subset
_CELLS = 1 << 20  # values of all people in a block


def SubsetSelection(domain: int | Sequence[Any], epsilon: Number) -> Oracle:  # noqa: N802 - a protocol's name
    """Return subset selection (Wang et al. 2016; Ye, Barg 2018): no protocol errs less, from few values to many.

    A person sends a subset of the values, of a size that is best for epsilon, in which the own value is likelier
    than the others. With a large epsilon the subset has one value, and this is GRR.

    >>> import discreet as dc
    >>> survey = dc.local.SubsetSelection(["car", "bus", "bicycle"], epsilon=1)
    >>> shares, margins = survey.estimate(survey.perturb(["bus"] * 600 + ["bicycle"] * 400))
    >>> bool(abs(shares[1] - 0.6) < 4 * margins[1])
    True
    """
    price, odds = priced(epsilon)
    values = Domain.of(domain)
    if values.size > LARGEST:
        raise ValueError(
            f"domain: {values.size:,} values are too many to choose subsets of; take at most {LARGEST:,}, "
            "or Hadamard, which errs hardly more"
        )
    return Oracle(values, price, Subset(values.size, odds, _best_chosen(values.size, odds)))


@dataclass(frozen=True)
class Subset:
    """Any `chosen` of `size` values, those subsets that hold the own value `odds` times likelier than the others."""

    size: int
    odds: Fraction
    chosen: int

    name = "subset"
    most_counted = 1

    @property
    def own(self) -> Fraction:
        """How likely a subset holds the own value."""
        weight = self.odds * self.chosen
        return weight / (weight + self.size - self.chosen)

    @property
    def other(self) -> Fraction:
        """How likely a subset holds a given other value: all of them share what the own one leaves."""
        return (self.chosen - self.own) / (self.size - 1)

    @property
    def dtype(self) -> np.dtype:
        """A report is a bit for each value."""
        return packed.packed_type(self.size)

    def perturb(self, places: np.ndarray) -> np.ndarray:
        """Return a report for each place.

        Claim: a report is a subset of `chosen` values; each of those that hold the person's own place has odds
            times the probability of each of those that do not, exactly.
        Proof: `_others` completes the own place, or its absence, to a uniform subset of the right size. There are
            C(size-1, chosen-1) subsets with it and C(size-1, chosen) without, in the proportion chosen to
            size-chosen; so own/(1-own) = odds·chosen/(size-chosen) makes each of the former odds times likelier.
        Needs: tosses, dice.
        Checked by: test_reports_have_the_law_that_is_claimed,
            test_the_worst_log_ratio_of_every_law_is_the_claimed_epsilon
        Seal: 72c39d2429c9
        """
        source = stream()
        rows = np.empty((len(places), self.dtype.itemsize), np.uint8)
        step = max(_CELLS // self.size, 1 << 8)  # for long rows too, enough people for each step to be worth while
        for start in range(0, len(places), step):
            part = places[start : start + step]
            own = tosses(source, len(part), self.own)
            held = self._others(source, own)
            row = np.arange(len(part))
            # The last column stood in for the own place among the others.
            held[:, -1] = held[row, part]
            held[row, part] = own
            rows[start : start + step] = np.packbits(held, axis=1, bitorder="little")
        return packed.reports_of(rows)

    def _others(self, source: Source, own: np.ndarray) -> np.ndarray:
        """Return a uniform subset of the first size-1 columns, of one less than `chosen` where the own place is in.

        Floyd's method: for each of the last columns in turn, take any column up to it, or if that is in the subset
        already, this one. Wherever it begins, with nothing taken, the subset is uniform after every column; so for
        one value less it begins one column later.
        """
        held = np.zeros((len(own), self.size), bool)
        flat, row = held.reshape(-1), np.arange(len(own)) * self.size
        columns = self.size - 1
        first = dice(source, len(own), columns - self.chosen + 1)
        flat[row + first] = ~own
        for last in range(columns - self.chosen + 1, columns):
            any_ = row + dice(source, len(own), last + 1)
            flat[np.where(flat[any_], row + last, any_)] = True
        return held

    def check(self, reports: np.ndarray) -> None:
        """Stop at a subset of another size."""
        rows = packed.rows_of(reports)
        packed.check_padding(rows, self.size)
        for part in packed.blocks(*rows.shape):
            if (np.bitwise_count(rows[part]).sum(axis=1, dtype=np.int64) != self.chosen).any():
                raise ValueError(f"reports: every subset must have {self.chosen} of the {self.size} values")

    def counts(self, reports: np.ndarray) -> np.ndarray:
        """Return how many subsets hold each value."""
        return packed.ones(packed.rows_of(reports), self.size)

    def estimate(self, counts: np.ndarray, people: int, spreads: float) -> tuple[np.ndarray, np.ndarray]:
        """Return shares and margins."""
        return shares_of(counts, people, (self.own, self.other), spreads)

    def probability(self, report: Any, place: int) -> Fraction:
        """Return how likely a report is."""
        bits = packed.bits_of(packed.one_row(report, self.dtype.itemsize), self.size)
        if bits is None or int(bits.sum()) != self.chosen:
            return Fraction(0)
        if bits[place]:
            return self.own / math.comb(self.size - 1, self.chosen - 1)
        return (1 - self.own) / math.comb(self.size - 1, self.chosen)

    def outcomes(self) -> Iterator[bytes]:
        """Return every subset of the right size."""
        if math.comb(self.size, self.chosen) > packed.LISTED:
            raise ValueError(
                f"law: too many subsets of {self.chosen} of {self.size} values to list; ask pmf for one at a time"
            )
        width = self.dtype.itemsize
        for subset in itertools.combinations(range(self.size), self.chosen):
            yield sum(1 << place for place in subset).to_bytes(width, "little")


def _best_chosen(size: int, odds: Fraction) -> int:
    """Return the size of the subsets that errs least on average over the values: next to size/(odds+1)."""
    near = math.floor(size / (odds + 1))
    return min({max(near, 1), near + 1}, key=lambda chosen: _variance(Subset(size, odds, chosen)))


def _variance(scheme: Subset) -> Fraction:
    own, other = scheme.own, scheme.other
    spread = own * (1 - own) + (scheme.size - 1) * other * (1 - other)
    return spread / (own - other) ** 2
