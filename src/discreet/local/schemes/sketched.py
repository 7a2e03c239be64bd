"""Reports about values without a list: which public function was used, and the place it gives, by parity hashing."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from discreet.kernel.noise.chance import dice, tosses
from discreet.kernel.noise.keystream import stream
from discreet.local.marks import sorted_into
from discreet.local.schemes.parities import add_terms, buckets_of, masks_of
from discreet.local.schemes.supporting import smallest
from discreet.local.schemes.walsh import walsh

_TOGETHER = 1 << 16
_LISTED = 1 << 16


@dataclass(frozen=True)
class Sketched:
    """A person has one mark for each level, and reports one of them: level i by chance, weights[i] times in all.

    Each level has `rows` functions that sort marks into 2^bits places; the person takes one by chance. A report is
    (function, mask, bucket), where the bucket is the place's by the mask, through generalised randomized response.
    """

    weights: tuple[int, ...]
    rows: int
    bits: int
    checks: int
    odds: Fraction

    @property
    def name(self) -> str:
        """The protocol, and what a reader must know of it."""
        levels = " ".join(map(str, self.weights))
        return f"sketch {self.rows} of 2^{self.bits}, {self.checks} checks, levels {levels}"

    @property
    def functions(self) -> int:
        """How many public functions there are."""
        return len(self.weights) * self.rows

    @property
    def buckets(self) -> int:
        """How many buckets a mask has."""
        return 1 << self.checks

    @property
    def truth(self) -> Fraction:
        """How often the bucket is not left to chance."""
        return (self.odds - 1) / (self.odds - 1 + self.buckets)

    @property
    def rates(self) -> tuple[Fraction, Fraction]:
        """How often a report supports its owner's value, and any other, which may be sorted into the same place."""
        any_ = (1 - self.truth) / self.buckets
        meet = Fraction(1, 1 << self.bits) + (1 - Fraction(1, 1 << self.bits)) / self.buckets
        return any_ + self.truth, any_ + self.truth * meet

    @property
    def most_counted(self) -> int:
        """The most that one report adds to a count: every set of checks may meet in one place."""
        return self.buckets

    @property
    def dtype(self) -> np.dtype:
        """The function, the mask, and the bucket."""
        parts = (("function", self.functions), ("mask", 1 << self.bits), ("bucket", self.buckets))
        return np.dtype([(part, smallest(count)) for part, count in parts])

    def perturb(self, marks: np.ndarray) -> np.ndarray:
        """Return a report for each person's marks.

        Claim: given the function and the mask, which no value has an influence on, the bucket of a person's own
            value is reported with odds times the probability of any other bucket, exactly.
        Proof: function and mask come from dice alone. Any bucket has (1-truth)/buckets from the dice, the own bucket
            truth more; and truth = (odds-1)·(1-truth)/buckets by its definition.
        Needs: tosses, dice.
        Checked by: test_sketched_reports_have_the_law_that_is_claimed,
            test_the_worst_log_ratio_of_a_sketch_is_the_claimed_epsilon
        Seal: 7b602cfb81a8
        """
        source = stream()
        reports = np.empty(len(marks), self.dtype)
        for start in range(0, len(marks), _TOGETHER):
            part, own = reports[start : start + _TOGETHER], marks[start : start + _TOGETHER]
            part["function"] = self._functions(dice(source, len(part), sum(self.weights) * self.rows))
            mask = dice(source, len(part), 1 << self.bits)
            buckets = buckets_of(masks_of(mask, self.bits, self.checks), self._places(own, part["function"]))
            told = tosses(source, len(part), self.truth)
            part["mask"] = mask
            part["bucket"] = np.where(told, buckets, dice(source, len(part), self.buckets))
        return reports

    def _functions(self, drawn: np.ndarray) -> np.ndarray:
        levels = np.repeat(np.arange(len(self.weights)), self.weights)[drawn // self.rows]
        return np.asarray(levels * self.rows + drawn % self.rows)

    def _places(self, marks: np.ndarray, functions: np.ndarray) -> np.ndarray:
        """Return the place of each person's mark of the function's level."""
        places = np.empty(len(marks), np.int64)
        for function in np.unique(functions).tolist():
            chosen = functions == function
            places[chosen] = sorted_into(marks[chosen, function // self.rows], function, self.bits)
        return places

    def check(self, reports: np.ndarray) -> None:
        """Stop at a function, a mask or a bucket that there is not."""
        for field, limit in (("function", self.functions), ("mask", 1 << self.bits), ("bucket", self.buckets)):
            if len(reports) and reports[field].max() >= limit:
                raise ValueError(f"reports: {field} {int(reports[field].max())} is not below {limit}")

    def counts(self, reports: np.ndarray) -> np.ndarray:
        """Return a table of terms for each function, and after all of them how many people used each."""
        table = np.zeros(self.functions << self.bits, np.int64)
        # One function after another: its part of the table stays in the processor's own memory.
        ordered = reports[np.argsort(reports["function"], kind="stable")]
        for start in range(0, len(ordered), _TOGETHER):
            part = ordered[start : start + _TOGETHER]
            masks = masks_of(part["mask"].astype(np.int64), self.bits, self.checks)
            add_terms(table, part["function"].astype(np.int64) << self.bits, masks, part["bucket"])
        people = np.bincount(reports["function"], minlength=self.functions)
        return np.concatenate((table, people))

    def supports(self, counts: np.ndarray, level: int) -> tuple[np.ndarray, np.ndarray]:
        """Return, for each function of a level, how many reports support each place; and how many there are."""
        chosen = slice(level * self.rows, (level + 1) * self.rows)
        tables = counts[: -self.functions].reshape(self.functions, -1)[chosen]
        return walsh(tables) >> self.checks, counts[-self.functions :][chosen]

    def repeats(self, supports: np.ndarray, people: np.ndarray) -> float:
        """Return how often two people have the same value, unbiased, from the spread of the numbers of supports.

        What a report adds to a place's sum has the average `seen` in its own place and 0 in all others; its square
        has the average buckets - 1 in them.
        """
        seen = float(self.truth) * (self.buckets - 1)
        own = self.buckets * (self.buckets - 2) * float(self.rates[0]) + 1
        squares = ((supports * float(self.buckets) - people[:, None]) ** 2).sum()
        noise = people.sum() * (((1 << self.bits) - 1) * (self.buckets - 1) + own)
        pairs = float((people * (people - 1.0)).sum())
        together = (squares - noise) / (seen**2 * max(pairs, 1.0))
        chance = 1 / (1 << self.bits)
        return float((together - chance) / (1 - chance))

    def probability(self, report: Any, marks: np.ndarray) -> Fraction:
        """Return how likely a report is, given a person's marks; the drawing of its function and mask included."""
        function, mask, bucket = (int(part) for part in report)
        level = function // self.rows
        place = sorted_into(marks[level : level + 1], function, self.bits)
        own = int(buckets_of(masks_of(np.array([mask]), self.bits, self.checks), place)[0])
        any_ = (1 - self.truth) / self.buckets
        drawn = Fraction(self.weights[level], sum(self.weights) * self.rows) / (1 << self.bits)
        return drawn * (any_ + self.truth if own == bucket else any_)

    def outcomes(self) -> Iterator[tuple[int, int, int]]:
        """Return every function with every mask and every bucket."""
        if self.functions * self.buckets << self.bits > _LISTED:
            raise ValueError("sketch: its reports are too many to list; pmf gives the probability of any of them")
        return product(range(self.functions), range(1 << self.bits), range(self.buckets))
