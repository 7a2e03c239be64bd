"""Reports on an open domain: a public hash function, and the hashed position by parity hashing."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from discreet.kernel.noise.keystream import thread_keystream
from discreet.local.estimation import smallest_uint
from discreet.local.frequency_oracles.hadamard_response import walsh_hadamard
from discreet.local.frequency_oracles.parity_hashing import add_terms, expand_mask, parity_buckets
from discreet.local.random_variables import bernoulli_bits, uniform_integers
from discreet.local.value_hashes import hash_to_position

_BLOCK_SIZE = 1 << 16
_MAX_OUTCOMES = 1 << 16


@dataclass(frozen=True)
class SketchScheme:
    """A person has one hash for each level, and reports that of level i with probability weights[i]/sum(weights).

    Each level has `rows` public functions that map hashes to 2^bits positions, one of which the person draws. A report
    is (function, mask, bucket), where the bucket is that of the position under the mask, by generalised randomised
    response.
    """

    weights: tuple[int, ...]
    rows: int
    bits: int
    checks: int
    odds: Fraction

    @property
    def name(self) -> str:
        """The name of the protocol and its parameters."""
        levels = " ".join(map(str, self.weights))
        return f"sketch {self.rows} of 2^{self.bits}, {self.checks} checks, levels {levels}"

    @property
    def function_count(self) -> int:
        """The number of public hash functions."""
        return len(self.weights) * self.rows

    @property
    def buckets(self) -> int:
        """The number of buckets."""
        return 1 << self.checks

    @property
    def truth(self) -> Fraction:
        """The probability of a truthful bucket."""
        return (self.odds - 1) / (self.odds - 1 + self.buckets)

    @property
    def rates(self) -> tuple[Fraction, Fraction]:
        """The probability that a report supports its person's value, and any other value, collisions included."""
        uniform_rate = (1 - self.truth) / self.buckets
        collision_probability = Fraction(1, 1 << self.bits) + (1 - Fraction(1, 1 << self.bits)) / self.buckets
        return uniform_rate + self.truth, uniform_rate + self.truth * collision_probability

    @property
    def max_count_per_report(self) -> int:
        """The maximum that one report adds to a count: all subsets of checks may have the same position."""
        return self.buckets

    @property
    def dtype(self) -> np.dtype:
        """A report is a function, a mask and a bucket."""
        parts = (("function", self.function_count), ("mask", 1 << self.bits), ("bucket", self.buckets))
        return np.dtype([(part, smallest_uint(count)) for part, count in parts])

    def perturb(self, hashes: np.ndarray) -> np.ndarray:
        """Return a randomised report for each person's hashes.

        Claim: given the function and the mask, which do not depend on the value, the bucket of a person's own value
            is reported with exactly odds times the probability of any other bucket.
        Proof: function and mask are drawn independently of the value. The uniform draw gives any bucket the probability
            (1-truth)/buckets, and the own bucket has truth more; truth = (odds-1)·(1-truth)/buckets by its definition.
        Needs: bernoulli_bits, uniform_integers.
        Checked by: test_sketched_reports_have_the_claimed_distribution,
            test_the_worst_log_ratio_of_a_sketch_is_the_claimed_epsilon
        """
        source = thread_keystream()
        reports = np.empty(len(hashes), self.dtype)
        for start in range(0, len(hashes), _BLOCK_SIZE):
            part, own = reports[start : start + _BLOCK_SIZE], hashes[start : start + _BLOCK_SIZE]
            part["function"] = self._functions_from_draws(
                uniform_integers(source, len(part), sum(self.weights) * self.rows)
            )
            mask = uniform_integers(source, len(part), 1 << self.bits)
            buckets = parity_buckets(expand_mask(mask, self.bits, self.checks), self._positions(own, part["function"]))
            is_truthful = bernoulli_bits(source, len(part), self.truth)
            part["mask"] = mask
            part["bucket"] = np.where(is_truthful, buckets, uniform_integers(source, len(part), self.buckets))
        return reports

    def _functions_from_draws(self, drawn: np.ndarray) -> np.ndarray:
        levels = np.repeat(np.arange(len(self.weights)), self.weights)[drawn // self.rows]
        return np.asarray(levels * self.rows + drawn % self.rows)

    def _positions(self, hashes: np.ndarray, functions: np.ndarray) -> np.ndarray:
        """Return the position of each person's hash on the level of the function."""
        positions = np.empty(len(hashes), np.int64)
        for function in np.unique(functions).tolist():
            is_used = functions == function
            positions[is_used] = hash_to_position(hashes[is_used, function // self.rows], function, self.bits)
        return positions

    def check(self, reports: np.ndarray) -> None:
        """Raise ValueError if a function, mask or bucket does not exist."""
        for field, limit in (("function", self.function_count), ("mask", 1 << self.bits), ("bucket", self.buckets)):
            if len(reports) and reports[field].max() >= limit:
                raise ValueError(f"reports: {field} {int(reports[field].max())} is not below {limit}")

    def counts(self, reports: np.ndarray) -> np.ndarray:
        """Return a table of coefficients for each function, followed by the number of reports of each function."""
        table = np.zeros(self.function_count << self.bits, np.int64)
        # Reports are sorted by function, so that its part of the table stays in the cache.
        ordered = reports[np.argsort(reports["function"], kind="stable")]
        for start in range(0, len(ordered), _BLOCK_SIZE):
            part = ordered[start : start + _BLOCK_SIZE]
            masks = expand_mask(part["mask"].astype(np.int64), self.bits, self.checks)
            add_terms(table, part["function"].astype(np.int64) << self.bits, masks, part["bucket"])
        people = np.bincount(reports["function"], minlength=self.function_count)
        return np.concatenate((table, people))

    def support_counts(self, counts: np.ndarray, level: int) -> tuple[np.ndarray, np.ndarray]:
        """Return, for each function of a level, the support of each position, and the number of reports."""
        level_functions = slice(level * self.rows, (level + 1) * self.rows)
        tables = counts[: -self.function_count].reshape(self.function_count, -1)[level_functions]
        return walsh_hadamard(tables) >> self.checks, counts[-self.function_count :][level_functions]

    def repeat_rate(self, supports: np.ndarray, people: np.ndarray) -> float:
        """Return an unbiased estimate of the probability that two people have the same value.

        It uses the variance of the support over positions. A report's contribution has the mean `mean_in_own` at its
        own position and 0 at all others, where its square has the mean buckets - 1.
        """
        mean_in_own = float(self.truth) * (self.buckets - 1)
        own = self.buckets * (self.buckets - 2) * float(self.rates[0]) + 1
        squares = ((supports * float(self.buckets) - people[:, None]) ** 2).sum()
        noise = people.sum() * (((1 << self.bits) - 1) * (self.buckets - 1) + own)
        pairs = float((people * (people - 1.0)).sum())
        agreement = (squares - noise) / (mean_in_own**2 * max(pairs, 1.0))
        chance = 1 / (1 << self.bits)
        return float((agreement - chance) / (1 - chance))

    def probability(self, report: Any, hashes: np.ndarray) -> Fraction:
        """Return the exact probability of a report, including its function and mask, given a person's hashes."""
        function, mask, bucket = (int(part) for part in report)
        level = function // self.rows
        position = hash_to_position(hashes[level : level + 1], function, self.bits)
        own = int(parity_buckets(expand_mask(np.array([mask]), self.bits, self.checks), position)[0])
        uniform_rate = (1 - self.truth) / self.buckets
        drawn = Fraction(self.weights[level], sum(self.weights) * self.rows) / (1 << self.bits)
        return drawn * (uniform_rate + self.truth if own == bucket else uniform_rate)

    def outcomes(self) -> Iterator[tuple[int, int, int]]:
        """Return every function with every mask and every bucket."""
        if self.function_count * self.buckets << self.bits > _MAX_OUTCOMES:
            raise ValueError("sketch has too many possible reports to list. Use pmf for the probability of one.")
        return product(range(self.function_count), range(1 << self.bits), range(self.buckets))
