"""Exact vectorised noise of any scale: a table draws a bucket, uniform bits a value in it, and rejection corrects."""

import threading
from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet.kernel.noise.distribution import NoiseDistribution
from discreet.kernel.noise.inverse_transform import InverseTransformSampler
from discreet.kernel.noise.keystream import (
    RandomSource,
    process_token,
    random_integer,
    random_words,
    thread_keystream,
    wipe,
)
from discreet.kernel.numbers import exp_bounds

BLOCK_SIZE = 1 << 15  # draws per block, so that temporary arrays stay in the processor's cache
POOL_SIZE = 256  # draws made in advance for draw_one
_DIGIT_BITS = 6
_INT64_BITS = 62


class Sampler:
    """Draws integers with probability proportional to exp(-alpha·|x| - beta·x²).

    A small scale needs one table. For a large one, magnitudes are grouped in buckets of 2^low: tables draw a bucket by
    the weight of its first magnitude, uniform bits choose within it, one more bit makes it x or -1-x, and the candidate
    is accepted with probability exp(-gap), the ratio of its weight to that of the bucket's first magnitude.
    """

    def __init__(self, alpha: Fraction, beta: Fraction, source: RandomSource | None = None) -> None:
        self._alpha, self._beta, self._source = alpha, beta, source
        self._pools = threading.local()
        self._bucket_bits = coarse = _bucket_bits(alpha, beta)
        if not coarse:
            self._table = InverseTransformSampler(NoiseDistribution(alpha, beta).two_sided_cdf)
        else:
            self._table = InverseTransformSampler(NoiseDistribution(alpha * 2**coarse, beta * 4**coarse).one_sided_cdf)
        # A geometric distribution is memoryless: digits of the bucket number are independent, so buckets can be finer.
        self._digit_bits = 0 if beta else min(coarse, _DIGIT_BITS)
        self._low_bit_count = low = coarse - self._digit_bits
        # Whether int64 is too narrow depends on the scale; symbols beyond the table are checked separately.
        self._exceeds_int64 = low + (self._table.last << self._digit_bits).bit_length() > _INT64_BITS
        if self._digit_bits:
            finer = NoiseDistribution(alpha * 2**low, beta)
            self._digit = InverseTransformSampler(lambda bits: finer.digit_cdf(1 << self._digit_bits, bits))
        # The parameters in units of a bucket.
        self._bucket_alpha, self._bucket_beta = float(alpha * 2**low), float(beta * 4**low)
        # A coin below this accepts any candidate of its bucket: exp(-gap) >= 1 - gap >= 1 - the bucket's largest gap.
        # It is rounded down by a whole unit of 2^-15, far more than the error of these floats.
        largest = self._bucket_alpha + self._bucket_beta * (2 * np.arange(self._table.last + 1) + 1)
        self._accept_below = (2 * np.maximum(np.floor((1 - largest) * (1 << 15)) - 1, 0)).astype(np.uint16)
        self._accept_below[-1] = 0  # for all buckets beyond the table

    def draw(self, count: int) -> np.ndarray:
        """Return independent draws as int64, or as Python integers if one of them is larger.

        Claim: each is x with probability exp(-alpha·|x| - beta·x²)/Z, exactly, and independent of the others.
        Proof: without buckets it is the claim of InverseTransformSampler.draw. With them, magnitude m of bucket t is
            proposed, with either sign, with a probability proportional to w(t·2^low), and x = m or -1-m is accepted
            with probability w(|x|)/w(t·2^low) = exp(-gap) <= 1, so accepted values have a probability proportional to
            w(|x|). Candidates are independent, keep their order, and the surplus is dropped at the end, by number, not
            by value.
        Needs: InverseTransformSampler.draw, NoiseDistribution.two_sided_cdf, NoiseDistribution.one_sided_cdf,
            NoiseDistribution.digit_cdf, Sampler._accept, Keystream.bytes, random_words, random_integer.
        Checked by: test_draws_have_the_exact_distribution_when_every_path_is_enumerated,
            test_chi_square_accepts_the_distribution_and_rejects_nearby_ones,
            test_many_small_draws_have_the_distribution
        """
        while True:
            token = process_token()
            drawn = self._draw_from(self._source or thread_keystream(), count)
            if process_token() is token:
                return drawn
            # A signal handler forked meanwhile, and this is the child: the draws belong to the parent.

    def _draw_from(self, source: RandomSource, count: int) -> np.ndarray:
        parts: list[np.ndarray] = []
        missing = count
        while missing > 0:
            drawn = self._accepted_candidates(source, min(BLOCK_SIZE, missing + missing // 16 + 4))
            parts.append(drawn[:missing])
            missing -= len(drawn)
        return parts[0] if len(parts) == 1 else np.concatenate(parts or [np.zeros(0, np.int64)])

    def draw_one(self) -> np.ndarray:
        """Return one draw as an array, from a pool of draws made in advance.

        No step depends on the value, so the time does not disclose it; converting it to a Python integer, which takes
        longer for large or negative values, is left to the caller.
        """
        pool = self._pools
        while True:
            token = process_token()  # before the draw: a child forked in between must not use it
            if getattr(pool, "life", None) is not token:
                pool.supply, pool.life = (self.draw(POOL_SIZE), iter(range(POOL_SIZE))), token
            # Both from one supply, and the index is taken atomically: a signal handler that also draws gets another.
            values, indices = pool.supply
            index = next(indices, None)
            if index is not None:
                return np.array(values[index : index + 1])
            pool.life = None

    def _accepted_candidates(self, source: RandomSource, count: int) -> np.ndarray:
        """Return the accepted ones of `count` candidates."""
        buckets = self._table.draw(source, count)
        if not self._bucket_bits:
            return buckets
        if self._digit_bits:
            buckets = (buckets << self._digit_bits) + self._digit.draw(source, count)
        coins, lows = random_words(source, count, np.uint16), self._low_bits(source, count)
        undecided = np.flatnonzero(coins >= self._sure_acceptance(buckets))
        if self._exceeds_int64 or int(buckets.max()).bit_length() + self._low_bit_count > _INT64_BITS:
            buckets = buckets.astype(object)  # no candidate is ever truncated
        drawn: np.ndarray = (buckets << self._low_bit_count) + lows
        drawn ^= -(coins & np.uint16(1)).astype(np.int64)
        if len(undecided):
            accepted = self._accept(source, buckets[undecided], lows[undecided], coins[undecided])
            drawn = np.delete(drawn, undecided[~accepted])
        wipe(coins, lows)
        return drawn

    def _sure_acceptance(self, buckets: np.ndarray) -> np.ndarray | np.uint16:
        if not self._bucket_beta:
            return np.uint16(self._accept_below[0])  # the same for all geometric buckets
        rows = np.minimum(buckets, len(self._accept_below) - 1)
        sure: np.ndarray = self._accept_below.take(rows.astype(np.int64, copy=False))
        return sure

    def _low_bits(self, source: RandomSource, count: int) -> np.ndarray:
        """Return uniform integers below 2^low."""
        low = self._low_bit_count
        if not low:
            return np.zeros(count, np.int64)
        if self._exceeds_int64:
            size = -(-low // 8) * 8
            return np.array([random_integer(source, size) >> (size - low) for _ in range(count)], object)
        dtype = np.uint16 if low <= 16 else np.uint32 if low <= 32 else np.uint64
        return (random_words(source, count, dtype) & dtype((1 << low) - 1)).astype(np.int64)

    def _accept(self, source: RandomSource, buckets: np.ndarray, lows: np.ndarray, coins: np.ndarray) -> np.ndarray:
        """Return which candidates are accepted, each with probability exp(-gap).

        Claim: acceptance has probability exp(-gap) exactly, with gap = alpha·d + beta·d·(2·first + d), where d is the
            distance of |x| from the first magnitude of its bucket.
        Proof: a candidate is accepted if V < exp(-gap) for a uniform V, of which 15 bits are the coin's and 48 are
            drawn here. For 0 <= gap <= 1, exp(-gap) is between the Taylor polynomials of degree 5 and 6. The floats
            decide only where V is farther than 2^-40 from both: a gap with a relative error of 2^-49 and thirty
            correctly rounded operations on numbers of at most 1 give an error below 2^-46. All other cases are decided
            in integers.
        Needs: bernoulli_exp, random_words; IEEE 754 addition and multiplication.
        Checked by: test_the_correcting_bernoulli_draw_is_exact_to_the_last_bit
        """
        prefix = random_words(source, len(coins), np.uint64) >> np.uint64(16)
        prefix |= (coins >> np.uint16(1)).astype(np.uint64) << np.uint64(48)
        uniform = prefix * 2.0**-63
        d = lows + (coins & np.uint16(1))
        fraction = d.astype(np.float64) * 2.0**-self._low_bit_count
        gap = fraction * (self._bucket_alpha + self._bucket_beta * (2.0 * buckets.astype(np.float64) + fraction))
        below = 1 - gap * (1 - gap / 2 * (1 - gap / 3 * (1 - gap / 4 * (1 - gap / 5))))
        cube = gap * gap * gap
        above = below + cube * cube / 720
        heads: np.ndarray = uniform < below - 2.0**-40
        undecided = np.flatnonzero((~heads & (uniform <= above + 2.0**-40)) | (gap > 1))
        for position in undecided:
            distance, first = int(d[position]), int(buckets[position]) << self._low_bit_count
            exact = self._alpha * distance + self._beta * distance * (2 * first + distance)
            heads[position] = bernoulli_exp(source, exact, int(prefix[position]), 63)
        return heads


def bernoulli_exp(source: RandomSource, exponent: Fraction, prefix: int = 0, bits: int = 0) -> bool:
    """Return True with probability exp(-exponent); `prefix` may give the first `bits` bits of the uniform variable.

    Claim: True has probability exp(-exponent), exactly.
    Proof: True means V < exp(-exponent) for a uniform V, whose bits are drawn until the enclosure of exp(-exponent)
        decides.
    Needs: exp_bounds, Keystream.bytes.
    Checked by: test_the_correcting_bernoulli_draw_is_exact_to_the_last_bit
    """
    while True:
        if bits:
            low, high = exp_bounds(exponent, bits)
            if prefix + 1 <= low:
                return True
            if prefix >= high:
                return False
        prefix, bits = prefix << 64 | random_integer(source, 64), bits + 64


def _bucket_bits(alpha: Fraction, beta: Fraction) -> int:
    """Return 0 if one table is enough for the scale, else the bits of a bucket; tables have about 300 entries."""
    if alpha:
        return ((alpha.denominator - 1) // (6 * alpha.numerator)).bit_length() if 21 * alpha < 2 else 0
    return (((beta.denominator - 1) // (1568 * beta.numerator)).bit_length() + 1) // 2


@lru_cache(maxsize=128)
def laplace_sampler(numerator: int, denominator: int) -> Sampler:
    """Return the cached sampler of discrete Laplace noise of scale numerator/denominator."""
    return Sampler(Fraction(denominator, numerator), Fraction(0))


@lru_cache(maxsize=128)
def gaussian_sampler(numerator: int, denominator: int) -> Sampler:
    """Return the cached sampler of discrete Gaussian noise with sigma = numerator/denominator."""
    return Sampler(Fraction(0), Fraction(denominator**2, 2 * numerator**2))
