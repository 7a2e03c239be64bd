"""RAPPOR's two steps: noise that a device draws once and keeps, and noise on top of it in every report."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.kernel.noise.chance import dice, tosses
from discreet.kernel.noise.keystream import stream
from discreet.local.rappor_filters import Filter, Rates
from discreet.local.schemes import packed
from discreet.local.schemes.supporting import smallest


@dataclass(frozen=True)
class Remembered:
    """Bits that were flipped once with probability `flip`, and of which each report has a copy with more noise.

    `noise` are the probabilities that a copy is set, of a bit that is not set and of one that is.
    """

    filter: Filter
    flip: Fraction
    noise: tuple[Fraction, Fraction]

    most_counted = 1

    @property
    def name(self) -> str:
        """What a reader must know."""
        return f"rappor {self.filter.name}, {self.noise[0]} {self.noise[1]}"

    @property
    def rates(self) -> Rates:
        """How likely one report shows a bit of the own value, and any other."""
        unset, set_ = self.noise
        return (1 - self.flip) * set_ + self.flip * unset, self.flip * set_ + (1 - self.flip) * unset

    @property
    def dtype(self) -> np.dtype:
        """A report is the number of the cohort, if there are several, and the bits."""
        return np.dtype(f"V{self._head + -(-self.filter.bits // 8)}")

    @property
    def _head(self) -> int:
        return smallest(self.filter.cohorts).itemsize if self.filter.cohorts > 1 else 0

    def permanent(self, places: np.ndarray) -> np.ndarray:
        """Return what each device keeps.

        Claim: what is kept, and so all reports of a device together, however many, is at most r^(2·hashes) times
            likelier under one place than under another, with r = (1-flip)/flip; RAPPOR makes that at most odds.
        Proof: the cohort is uniform whatever the place. Given it, every bit is set independently, those of the
            own place with 1-flip and all others with flip. Two places differ in the law of at most 2·hashes bits,
            each of which gives a factor of at most r. Reports are made of what is kept and of fresh coins.
        Needs: coins, tosses, dice, root_down.
        Checked by: test_what_a_device_keeps_loses_exactly_epsilon,
            test_what_devices_keep_has_the_law_that_is_claimed
        Seal: 14cb17ad5674
        """
        source = stream()
        kept = np.empty(len(places), self.dtype)
        for part in packed.blocks(len(kept), self.dtype.itemsize):
            people = part.stop - part.start
            cohort = dice(source, people, self.filter.cohorts)
            rows = packed.coin_rows(source, people, self.filter.bits, self.flip)
            for bits in self.filter.own(cohort, places[part]).T:
                packed.put(rows, bits, tosses(source, people, 1 - self.flip))
            kept[part] = self._joined(cohort, rows)
        return kept

    def instantaneous(self, kept: np.ndarray) -> np.ndarray:
        """Return a report for each device, with fresh noise on every bit."""
        source = stream()
        reports = np.empty(len(kept), self.dtype)
        for part in packed.blocks(len(kept), self.dtype.itemsize):
            cohort, rows = self._parted(kept[part])
            unset, set_ = (packed.coin_rows(source, len(rows), self.filter.bits, chance) for chance in self.noise)
            reports[part] = self._joined(cohort, (rows & set_) | (~rows & unset))
        return reports

    def perturb(self, places: np.ndarray) -> np.ndarray:
        """Return one report for each place, of devices that keep nothing.

        Claim: a report is at most odds times likelier under one place than under another.
        Proof: it is made of what `permanent` returns, which is not used again, and of fresh coins.
        Needs: permanent, coins.
        Checked by: test_reports_have_the_law_that_is_claimed
        Seal: ca2d83520a5a
        """
        return self.instantaneous(self.permanent(places))

    def check(self, reports: np.ndarray) -> None:
        """Stop at a cohort or a bit that there is not."""
        cohort, rows = self._parted(reports)
        if len(cohort) and cohort.max() >= self.filter.cohorts:
            raise ValueError(f"reports: {int(cohort.max())} is no cohort; they are 0 to {self.filter.cohorts - 1}")
        packed.check_padding(rows, self.filter.bits)

    def counts(self, reports: np.ndarray) -> np.ndarray:
        """Return for each cohort how many of its reports have each bit set."""
        cohort, rows = self._parted(reports)
        return packed.ones_by_group(rows, self.filter.bits, cohort, self.filter.cohorts).ravel()

    def estimate(self, counts: np.ndarray, people: int, spreads: float) -> tuple[np.ndarray, np.ndarray]:
        """Return shares and margins."""
        return self.filter.decoded(counts.reshape(self.filter.cohorts, -1), people, self.rates, spreads)

    def probability(self, report: Any, place: int) -> Fraction:
        """Return how likely one report is."""
        return self._probability(report, place, self.rates)

    def probability_of_permanent(self, kept: Any, place: int) -> Fraction:
        """Return how likely a device keeps this."""
        return self._probability(kept, place, (1 - self.flip, self.flip))

    def _probability(self, report: Any, place: int, rates: Rates) -> Fraction:
        row = packed.one_row(report, self.dtype.itemsize)
        cohort = int.from_bytes(row[: self._head].tobytes(), "little")
        bits = packed.bits_of(row[self._head :], self.filter.bits)
        if bits is None or cohort >= self.filter.cohorts:
            return Fraction(0)
        own, other = rates
        shown = bits[self.filter.own(np.array([cohort]), np.array([place]))[0]]
        mine, all_ = int(shown.sum()), int(bits.sum())
        unset = self.filter.bits - self.filter.hashes - (all_ - mine)
        of_own = own**mine * (1 - own) ** (self.filter.hashes - mine)
        return of_own * other ** (all_ - mine) * (1 - other) ** unset / self.filter.cohorts

    def outcomes(self) -> Iterator[bytes]:
        """Return every cohort with every pattern of bits."""
        rows = list(packed.all_rows(self.filter.bits, self.filter.cohorts))
        heads = (cohort.to_bytes(self._head, "little") for cohort in range(self.filter.cohorts))
        return (head + row for head in heads for row in rows)

    def _joined(self, cohort: np.ndarray, rows: np.ndarray) -> np.ndarray:
        head = cohort.astype(smallest(self.filter.cohorts)).view(np.uint8).reshape(len(rows), -1)[:, : self._head]
        return packed.reports_of(np.concatenate((head, rows), axis=1))

    def _parted(self, reports: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows = packed.rows_of(reports)
        if not self._head:
            return np.zeros(len(rows), np.int64), rows
        head = np.ascontiguousarray(rows[:, : self._head]).view(smallest(self.filter.cohorts))
        return head[:, 0].astype(np.int64), rows[:, self._head :]
