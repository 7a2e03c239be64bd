"""Mechanisms that are wrong on purpose. Each is a mistake that somebody has shipped."""

import math
from fractions import Fraction

import numpy as np

EPSILON = Fraction(1, 2)  # what each of them claims for a count
SCALE = 1 / EPSILON


def laplace_pmf(scale):
    q = math.exp(-1 / scale)
    return lambda k: (1 - q) / (1 + q) * q ** abs(k)


def uniform_pmf(k):
    """Noise of the same spread on -3 … 3."""
    return 1 / 7 if abs(k) <= 3 else 0.0


def no_noise_pmf(k):
    return float(k == 0)


half_noise_pmf = laplace_pmf(float(SCALE) / 2)


def two_zeros_pmf(k):
    """A sign and a size, where minus zero was not drawn again."""
    q = math.exp(-1 / SCALE)
    return (1 - q) * q ** abs(k) * (1.0 if k == 0 else 0.5)


def cut_pmf(k):
    """Laplace noise that never leaves -8 … 8: drawn again, or taken from a table that ends."""
    kept = laplace_pmf(float(SCALE))
    return kept(k) / math.fsum(kept(j) for j in range(-8, 9)) if abs(k) <= 8 else 0.0


def folded_pmf(k):
    """Laplace noise whose tail was moved to the ends -8 and 8."""
    kept = laplace_pmf(float(SCALE))
    q = math.exp(-1 / SCALE)
    return 0.0 if abs(k) > 8 else q**8 / (1 + q) if abs(k) == 8 else kept(k)


def sampled(pmf, count, seed):
    """Return samples of a law of bounded reach; what is broken here is the law, not the sampler."""
    values = np.arange(-200, 201)
    weights = np.array([pmf(int(k)) for k in values])
    return np.random.default_rng(seed).choice(values, count, p=weights / weights.sum())


LAWS = {
    "no noise": no_noise_pmf,
    "uniform noise": uniform_pmf,
    "half the noise": half_noise_pmf,
    "two zeros": two_zeros_pmf,
    "cut tail": cut_pmf,
    "folded tail": folded_pmf,
}


class FloatLaplace:
    """The textbook: value - b·sign·ln(u) in doubles, with u a multiple of 2^-53."""

    def __init__(self, scale):
        self.scale = scale

    def release(self, value, rng):
        u = int(rng.integers(1, 1 << 53))
        return value + (1 if rng.integers(2) else -1) * self._size(u)

    def _size(self, u):
        return -self.scale * math.log(u * 2.0**-53)

    def reachable(self, y, value):
        """Tell whether any u gives y: only its neighbourhood can, for the logarithm is monotone."""
        size = abs(y - value)
        middle = round(math.exp(-size / self.scale) * 2.0**53)
        near = range(max(1, middle - 64), min(1 << 53, middle + 65))
        sign = 1 if y >= value else -1
        return any(value + sign * self._size(u) == y for u in near)


class SeededNoise:
    """A "reproducible" release."""

    def __init__(self, seed):
        self.seed = seed

    def perturb(self, values):
        noise = np.random.default_rng(self.seed).geometric(0.4, (2, *np.shape(values)))
        return values + noise[0] - noise[1]


def clipped_sum(rows, low=0, high=10):
    """Each unit's rows are clipped together, then added."""
    units = {}
    for unit, value in rows:
        units[unit] = units.get(unit, 0) + value
    return sum(min(high, max(low, value)) for value in units.values())


def sum_without_clip(rows):
    return sum(value for _, value in rows)


def sum_of_clipped_rows(rows, low=0, high=10):
    """Rows are clipped, units are not."""
    return sum(min(high, max(low, value)) for _, value in rows)


class RefundingCurator:
    """Gives the price back when a question fails."""

    def __init__(self, rows, budget):
        self.rows, self.budget, self.spent = rows, budget, Fraction(0)

    def ask(self, question, price):
        if self.spent + price > self.budget:
            raise PermissionError
        self.spent += price
        try:
            question(self.rows)
        except ZeroDivisionError:
            self.spent -= price
            raise


class LateCurator:
    """Charges only for answers: reads first, pays afterwards."""

    def __init__(self, rows, budget):
        self.rows, self.budget, self.spent = rows, budget, Fraction(0)

    def ask(self, question, price):
        if self.spent + price > self.budget:
            raise PermissionError
        question(self.rows)
        self.spent += price


def sparse_vector_without_query_noise(answers, threshold, pmf, reach=200):
    """Return the law of "above" and "below" for all answers, with noise on the threshold alone and no stop."""
    law = {}
    for z in range(-reach, reach + 1):
        outcome = tuple(answer >= threshold + z for answer in answers)
        law[outcome] = law.get(outcome, 0.0) + pmf(z)
    return law


def above_threshold(answers, threshold, pmf, pmf_of_answers, reach=60):
    """Return the law of the first answer above, by the book: fresh noise on each answer, and a stop."""
    law = {}
    ends = range(-reach, reach + 1)
    tail = {}
    for k in reversed(range(-2 * reach - 20, 2 * reach + 21)):
        tail[k] = tail.get(k + 1, 0.0) + pmf_of_answers(k)
    for z in ends:
        going = pmf(z)
        for i, answer in enumerate(answers):
            above = tail[max(-2 * reach - 20, threshold + z - answer)]
            law[i] = law.get(i, 0.0) + going * above
            going *= 1 - above
        law[None] = law.get(None, 0.0) + going
    return law
