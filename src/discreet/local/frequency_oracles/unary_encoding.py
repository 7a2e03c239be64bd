"""Unary encoding: one bit for each value, each randomised independently."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.kernel.noise.keystream import thread_keystream
from discreet.kernel.numbers import Number
from discreet.local.domain import Domain
from discreet.local.estimation import debias_shares
from discreet.local.frequency_oracles import packed_bits
from discreet.local.oracle import Oracle, parse_epsilon
from discreet.local.random_variables import bernoulli_bits

MAX_VALUES = 1 << 20  # a report has one bit per value


def OUE(domain: int | Sequence[Any], epsilon: Number) -> Oracle:  # noqa: N802 - a protocol's name
    """Return optimised unary encoding (Wang, Blocki, Li, Jha 2017): accurate for many values, but with long reports.

    The bit of the person's own value is a fair coin; every other bit is set with the lowest probability that epsilon
    allows.

    >>> import discreet as dc
    >>> survey = dc.local.OUE(["car", "bus", "bicycle"], epsilon=1)
    >>> shares, margins = survey.estimate(survey.perturb(["bus"] * 600 + ["bicycle"] * 400))
    >>> bool(abs(shares[1] - 0.6) < 4 * margins[1])
    True
    """
    exact_epsilon, odds = parse_epsilon(epsilon)
    values = _check_domain_size(Domain.from_values(domain))
    return Oracle(values, exact_epsilon, UnaryScheme("oue", values.size, Fraction(1, 2), 1 / (odds + 1)))


def SUE(domain: int | Sequence[Any], epsilon: Number) -> Oracle:  # noqa: N802 - a protocol's name
    """Return symmetric unary encoding, also called one-time basic RAPPOR (Erlingsson, Pihur, Korolova 2014).

    Every bit is flipped with the same probability.

    >>> import discreet as dc
    >>> dc.local.SUE(["yes", "no"], epsilon=2).loss()
    Loss(epsilon=2, rho=2)
    """
    exact_epsilon, odds = parse_epsilon(epsilon)
    values = _check_domain_size(Domain.from_values(domain))
    flip = 1 / (root_down(odds, 2) + 1)
    return Oracle(values, exact_epsilon, UnaryScheme("sue", values.size, 1 - flip, flip))


@dataclass(frozen=True)
class UnaryScheme:
    """The bit of the true value is set with probability `own`, any other bit with `other`."""

    name: str
    size: int
    own: Fraction
    other: Fraction

    max_count_per_report = 1

    @property
    def dtype(self) -> np.dtype:
        """A report has one bit per value."""
        return packed_bits.packed_dtype(self.size)

    def perturb(self, codes: np.ndarray) -> np.ndarray:
        """Return a randomised report for each code.

        Claim: every bit of a report is set independently, that of the person's own code with probability `own` and any
            other with `other`; a report is at most own·(1-other)/(other·(1-own)) times likelier under one code than
            under another. For OUE that is odds, for SUE the square of root_down(odds, 2).
        Proof: all bits are set with probability `other`, and the own bit is overwritten by one set with `own`. Under
            two codes, only their two own bits differ in distribution; the first being set and the second not has the
            highest probability under the first code and the lowest under the second, and each bit gives one factor of
            the ratio.
        Needs: bernoulli_words, bernoulli_bits, root_down.
        Checked by: test_reports_have_the_claimed_distribution,
            test_the_worst_log_ratio_of_every_oracle_is_the_claimed_epsilon
        """
        source = thread_keystream()
        rows = np.empty((len(codes), self.dtype.itemsize), np.uint8)
        for part in packed_bits.row_blocks(*rows.shape):
            people = part.stop - part.start
            rows[part] = packed_bits.bernoulli_rows(source, people, self.size, self.other)
            packed_bits.overwrite_bits(rows[part], codes[part], bernoulli_bits(source, people, self.own))
        return packed_bits.rows_to_reports(rows)

    def check(self, reports: np.ndarray) -> None:
        """Raise ValueError if a bit without a value is set."""
        packed_bits.check_padding(packed_bits.reports_to_rows(reports), self.size)

    def counts(self, reports: np.ndarray) -> np.ndarray:
        """Return the number of reports with each bit set."""
        return packed_bits.count_ones(packed_bits.reports_to_rows(reports), self.size)

    def estimate(self, counts: np.ndarray, people: int, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return shares and margins."""
        return debias_shares(counts, people, (self.own, self.other), z)

    def probability(self, report: Any, code: int) -> Fraction:
        """Return the exact probability of a report, given the code."""
        bits = packed_bits.unpack_row(packed_bits.report_to_row(report, self.dtype.itemsize), self.size)
        if bits is None:
            return Fraction(0)
        other_ones = int(bits.sum()) - int(bits[code])
        own = self.own if bits[code] else 1 - self.own
        return own * self.other**other_ones * (1 - self.other) ** (self.size - 1 - other_ones)

    def outcomes(self) -> Iterator[bytes]:
        """Return every pattern of bits."""
        return packed_bits.enumerate_rows(self.size)


def root_down(odds: Fraction, power: int) -> Fraction:
    """Return the largest multiple of 2^-64 whose `power`-th power is at most `odds`, for odds of at least 1.

    Claim: root_down(odds, power)^power <= odds.
    Proof: the search keeps low^power <= odds·2^(64·power) < high^power, all of them integers or exact fractions, and
        returns low/2^64.
    Needs: nothing.
    Checked by: test_roots_are_just_below
    """
    low, high = 1 << 64, math.ceil(odds) + 1 << 64
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**power <= odds * (1 << 64 * power) else (low, middle)
    return Fraction(low, 1 << 64)


def _check_domain_size(domain: Domain) -> Domain:
    if domain.size > MAX_VALUES:
        raise ValueError(
            f"domain: {domain.size:,} values are too many for one bit each, at most {MAX_VALUES:,} are supported. "
            "Use Hadamard, whose reports are short."
        )
    return domain
