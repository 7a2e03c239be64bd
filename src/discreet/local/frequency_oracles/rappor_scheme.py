"""RAPPOR's permanent and instantaneous randomised response."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.kernel.noise.keystream import thread_keystream
from discreet.local.estimation import smallest_uint
from discreet.local.frequency_oracles import packed_bits
from discreet.local.frequency_oracles.rappor_filters import RapporFilter, SupportRates
from discreet.local.random_variables import bernoulli_bits, uniform_integers


@dataclass(frozen=True)
class RapporScheme:
    """Permanent bits, flipped with probability `flip`, and reports that add fresh noise to them.

    `noise` has the probabilities that a reported bit is 1 if the permanent bit is 0, and if it is 1.
    """

    filter: RapporFilter
    flip: Fraction
    noise: tuple[Fraction, Fraction]

    max_count_per_report = 1

    @property
    def name(self) -> str:
        """The name of the protocol and its parameters."""
        return f"rappor {self.filter.name}, {self.noise[0]} {self.noise[1]}"

    @property
    def rates(self) -> SupportRates:
        """The probability that a report has a bit of the true value set, and any other bit."""
        unset, set_ = self.noise
        return (1 - self.flip) * set_ + self.flip * unset, self.flip * set_ + (1 - self.flip) * unset

    @property
    def dtype(self) -> np.dtype:
        """A report is the cohort, if there are several, and the bits."""
        return np.dtype(f"V{self._cohort_bytes + -(-self.filter.bits // 8)}")

    @property
    def _cohort_bytes(self) -> int:
        return smallest_uint(self.filter.cohorts).itemsize if self.filter.cohorts > 1 else 0

    def permanent_response(self, codes: np.ndarray) -> np.ndarray:
        """Return the permanent response of each device.

        Claim: the permanent response, and therefore all reports of a device together, however many, is at most
            r^(2·hashes) times likelier under one code than under another, with r = (1-flip)/flip; RAPPOR chooses
            flip so that this is at most odds.
        Proof: the cohort is uniform for every code. Given the cohort, every bit is set independently, those of the own
            code with probability 1-flip and all others with flip. Two codes differ in the distribution of at most
            2·hashes bits, each of which gives a factor of at most r. Reports are a function of the permanent response
            and of fresh randomness.
        Needs: bernoulli_words, bernoulli_bits, uniform_integers, root_down.
        Checked by: test_a_permanent_response_loses_exactly_epsilon,
            test_permanent_responses_have_the_claimed_distribution
        """
        source = thread_keystream()
        responses = np.empty(len(codes), self.dtype)
        for part in packed_bits.row_blocks(len(responses), self.dtype.itemsize):
            people = part.stop - part.start
            cohort = uniform_integers(source, people, self.filter.cohorts)
            rows = packed_bits.bernoulli_rows(source, people, self.filter.bits, self.flip)
            for bits in self.filter.value_bits(cohort, codes[part]).T:
                packed_bits.overwrite_bits(rows, bits, bernoulli_bits(source, people, 1 - self.flip))
            responses[part] = self._join_cohort(cohort, rows)
        return responses

    def instantaneous_response(self, permanent: np.ndarray) -> np.ndarray:
        """Return a report for each device, with fresh noise on every bit."""
        source = thread_keystream()
        reports = np.empty(len(permanent), self.dtype)
        for part in packed_bits.row_blocks(len(permanent), self.dtype.itemsize):
            cohort, rows = self._split_cohort(permanent[part])
            unset, set_ = (
                packed_bits.bernoulli_rows(source, len(rows), self.filter.bits, chance) for chance in self.noise
            )
            reports[part] = self._join_cohort(cohort, (rows & set_) | (~rows & unset))
        return reports

    def perturb(self, codes: np.ndarray) -> np.ndarray:
        """Return one report for each code, for devices that store nothing.

        Claim: a report is at most odds times likelier under one code than under another.
        Proof: it is a function of a permanent response, which is not used again, and of fresh randomness.
        Needs: permanent_response, bernoulli_words.
        Checked by: test_reports_have_the_claimed_distribution
        """
        return self.instantaneous_response(self.permanent_response(codes))

    def check(self, reports: np.ndarray) -> None:
        """Raise ValueError if a cohort or a bit does not exist."""
        cohort, rows = self._split_cohort(reports)
        if len(cohort) and cohort.max() >= self.filter.cohorts:
            raise ValueError(f"reports: cohort {int(cohort.max())} is outside the range 0 to {self.filter.cohorts - 1}")
        packed_bits.check_padding(rows, self.filter.bits)

    def counts(self, reports: np.ndarray) -> np.ndarray:
        """Return for each cohort the number of its reports with each bit set."""
        cohort, rows = self._split_cohort(reports)
        return packed_bits.count_ones_by_group(rows, self.filter.bits, cohort, self.filter.cohorts).ravel()

    def estimate(self, counts: np.ndarray, people: int, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return shares and margins."""
        return self.filter.decode(counts.reshape(self.filter.cohorts, -1), people, self.rates, z)

    def probability(self, report: Any, code: int) -> Fraction:
        """Return the exact probability of one report, given the code."""
        return self._probability(report, code, self.rates)

    def probability_of_permanent(self, permanent: Any, code: int) -> Fraction:
        """Return the exact probability of a permanent response, given the code."""
        return self._probability(permanent, code, (1 - self.flip, self.flip))

    def _probability(self, report: Any, code: int, rates: SupportRates) -> Fraction:
        row = packed_bits.report_to_row(report, self.dtype.itemsize)
        cohort = int.from_bytes(row[: self._cohort_bytes].tobytes(), "little")
        bits = packed_bits.unpack_row(row[self._cohort_bytes :], self.filter.bits)
        if bits is None or cohort >= self.filter.cohorts:
            return Fraction(0)
        own, other = rates
        own_bits = bits[self.filter.value_bits(np.array([cohort]), np.array([code]))[0]]
        own_set, all_set = int(own_bits.sum()), int(bits.sum())
        other_unset = self.filter.bits - self.filter.hashes - (all_set - own_set)
        own_probability = own**own_set * (1 - own) ** (self.filter.hashes - own_set)
        return own_probability * other ** (all_set - own_set) * (1 - other) ** other_unset / self.filter.cohorts

    def outcomes(self) -> Iterator[bytes]:
        """Return every cohort with every pattern of bits."""
        rows = list(packed_bits.enumerate_rows(self.filter.bits, self.filter.cohorts))
        cohort_headers = (cohort.to_bytes(self._cohort_bytes, "little") for cohort in range(self.filter.cohorts))
        return (cohort_header + row for cohort_header in cohort_headers for row in rows)

    def _join_cohort(self, cohort: np.ndarray, rows: np.ndarray) -> np.ndarray:
        cohort_bytes = (
            cohort.astype(smallest_uint(self.filter.cohorts))
            .view(np.uint8)
            .reshape(len(rows), -1)[:, : self._cohort_bytes]
        )
        return packed_bits.rows_to_reports(np.concatenate((cohort_bytes, rows), axis=1))

    def _split_cohort(self, reports: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows = packed_bits.reports_to_rows(reports)
        if not self._cohort_bytes:
            return np.zeros(len(rows), np.int64), rows
        cohort_column = np.ascontiguousarray(rows[:, : self._cohort_bytes]).view(smallest_uint(self.filter.cohorts))
        return cohort_column[:, 0].astype(np.int64), rows[:, self._cohort_bytes :]
