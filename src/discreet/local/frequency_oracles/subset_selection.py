"""Subset selection: a report is a random subset of the values that is likelier to contain the true value."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.kernel.noise.keystream import RandomSource, thread_keystream
from discreet.kernel.numbers import Number
from discreet.local.domain import Domain
from discreet.local.estimation import debias_shares
from discreet.local.frequency_oracles import packed_bits
from discreet.local.oracle import Oracle, parse_epsilon
from discreet.local.random_variables import bernoulli_bits, uniform_integers

MAX_VALUES = 1 << 16  # a report takes a random draw for each value in its subset
_BLOCK_CELLS = 1 << 20  # people times values in a block


def SubsetSelection(domain: int | Sequence[Any], epsilon: Number) -> Oracle:  # noqa: N802 - a protocol's name
    """Return subset selection (Wang et al. 2016; Ye, Barg 2018): the smallest error for small and large domains.

    A person sends a subset of the values, of the best size for epsilon, in which their own value is likelier than the
    others. With a large epsilon the subset has one value, and the protocol is GRR.

    >>> import discreet as dc
    >>> survey = dc.local.SubsetSelection(["car", "bus", "bicycle"], epsilon=1)
    >>> shares, margins = survey.estimate(survey.perturb(["bus"] * 600 + ["bicycle"] * 400))
    >>> bool(abs(shares[1] - 0.6) < 4 * margins[1])
    True
    """
    exact_epsilon, odds = parse_epsilon(epsilon)
    values = Domain.from_values(domain)
    if values.size > MAX_VALUES:
        raise ValueError(
            f"domain: {values.size:,} values are too many for subset selection, at most {MAX_VALUES:,} are supported. "
            "Use Hadamard, whose error is only slightly larger."
        )
    return Oracle(values, exact_epsilon, SubsetScheme(values.size, odds, _best_subset_size(values.size, odds)))


@dataclass(frozen=True)
class SubsetScheme:
    """Subsets of `subset_size` of `size` values; those with the true value are `odds` times likelier."""

    size: int
    odds: Fraction
    subset_size: int

    name = "subset"
    max_count_per_report = 1

    @property
    def own(self) -> Fraction:
        """The probability that a subset contains the true value."""
        weight = self.odds * self.subset_size
        return weight / (weight + self.size - self.subset_size)

    @property
    def other(self) -> Fraction:
        """The probability that a subset contains a given other value."""
        return (self.subset_size - self.own) / (self.size - 1)

    @property
    def dtype(self) -> np.dtype:
        """A report has one bit per value."""
        return packed_bits.packed_dtype(self.size)

    def perturb(self, codes: np.ndarray) -> np.ndarray:
        """Return a randomised report for each code.

        Claim: a report is a subset of `subset_size` values; each subset that contains the person's own code has exactly
            odds times the probability of each subset that does not.
        Proof: `_draw_others` completes the own code, or its absence, to a uniform subset of the right size. With
            s = subset_size there are C(size-1, s-1) subsets with it and C(size-1, s) without, in the ratio s to size-s;
            so own/(1-own) = odds·s/(size-s) makes each of the former odds times likelier.
        Needs: bernoulli_bits, uniform_integers.
        Checked by: test_reports_have_the_claimed_distribution,
            test_the_worst_log_ratio_of_every_oracle_is_the_claimed_epsilon
        """
        source = thread_keystream()
        rows = np.empty((len(codes), self.dtype.itemsize), np.uint8)
        step = max(_BLOCK_CELLS // self.size, 1 << 8)  # keeps the overhead per block small if rows are long
        for start in range(0, len(codes), step):
            part = codes[start : start + step]
            own = bernoulli_bits(source, len(part), self.own)
            is_member = self._draw_others(source, own)
            row = np.arange(len(part))
            # The last column took the place of the person's code among the others.
            is_member[:, -1] = is_member[row, part]
            is_member[row, part] = own
            rows[start : start + step] = np.packbits(is_member, axis=1, bitorder="little")
        return packed_bits.rows_to_reports(rows)

    def _draw_others(self, source: RandomSource, own: np.ndarray) -> np.ndarray:
        """Return a uniform subset of the first size-1 columns, with one member less if the person's code is included.

        Floyd's method: for each of the last columns in turn, draw a column up to it, and add that column, or this one
        if it is already in the subset. Starting from the empty subset at any column, the subset is uniform after every
        column; so for one member less, it starts one column later.
        """
        is_member = np.zeros((len(own), self.size), bool)
        flat, row = is_member.reshape(-1), np.arange(len(own)) * self.size
        columns = self.size - 1
        first = uniform_integers(source, len(own), columns - self.subset_size + 1)
        flat[row + first] = ~own
        for last in range(columns - self.subset_size + 1, columns):
            drawn = row + uniform_integers(source, len(own), last + 1)
            flat[np.where(flat[drawn], row + last, drawn)] = True
        return is_member

    def check(self, reports: np.ndarray) -> None:
        """Raise ValueError if a subset has another size."""
        rows = packed_bits.reports_to_rows(reports)
        packed_bits.check_padding(rows, self.size)
        for part in packed_bits.row_blocks(*rows.shape):
            if (np.bitwise_count(rows[part]).sum(axis=1, dtype=np.int64) != self.subset_size).any():
                raise ValueError(
                    f"reports: every subset must have exactly {self.subset_size} of the {self.size} values"
                )

    def counts(self, reports: np.ndarray) -> np.ndarray:
        """Return the number of subsets that contain each value."""
        return packed_bits.count_ones(packed_bits.reports_to_rows(reports), self.size)

    def estimate(self, counts: np.ndarray, people: int, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return shares and margins."""
        return debias_shares(counts, people, (self.own, self.other), z)

    def probability(self, report: Any, code: int) -> Fraction:
        """Return the exact probability of a report, given the code."""
        bits = packed_bits.unpack_row(packed_bits.report_to_row(report, self.dtype.itemsize), self.size)
        if bits is None or int(bits.sum()) != self.subset_size:
            return Fraction(0)
        if bits[code]:
            return self.own / math.comb(self.size - 1, self.subset_size - 1)
        return (1 - self.own) / math.comb(self.size - 1, self.subset_size)

    def outcomes(self) -> Iterator[bytes]:
        """Return every subset of the right size."""
        if math.comb(self.size, self.subset_size) > packed_bits.MAX_OUTCOMES:
            raise ValueError(
                f"there are too many subsets of {self.subset_size} of {self.size} values to list. "
                "Use pmf for the probability of one."
            )
        width = self.dtype.itemsize
        for subset in itertools.combinations(range(self.size), self.subset_size):
            yield sum(1 << code for code in subset).to_bytes(width, "little")


def _best_subset_size(size: int, odds: Fraction) -> int:
    """Return the subset size with the smallest mean variance over the values, close to size/(odds+1)."""
    near = math.floor(size / (odds + 1))
    return min({max(near, 1), near + 1}, key=lambda subset_size: _variance(SubsetScheme(size, odds, subset_size)))


def _variance(scheme: SubsetScheme) -> Fraction:
    own, other = scheme.own, scheme.other
    total_variance = own * (1 - own) + (scheme.size - 1) * other * (1 - other)
    return total_variance / (own - other) ** 2
