"""A Laplace release made finer afterwards, for the difference of the epsilons: an answer on account.

With q1 and q2 < q1 the ratios exp(-1/scale) of the release that was shown and of the finer one, a draw of the wider
noise is a draw of the narrower one plus Z, which is independent of it: 0 with probability (q2/q1)·((1-q1)/(1-q2))²,
else wide noise. Here the narrower draw is found for a wider one that was shown already. Two ratios say it all:
r = q2/q1 and s = q1·q2.
"""

from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet.kernel import noise
from discreet.kernel.exact import exp_bounds, typed
from discreet.kernel.mechanism import Laplace, _added, _drawn
from discreet.kernel.noise.inversion import Boundaries, Inversion
from discreet.kernel.noise.keystream import stream

_ENDS = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_LEAST = Fraction(1, 10**200)  # of 1/after - 1/before: beyond it floats that only filter would overflow


def refine(noisy: np.ndarray, exact: np.ndarray, before: Laplace, after: Laplace) -> np.ndarray:
    """Return values with the noise of `after`, for the same exact values that `before` made `noisy`.

    Claim: if noisy - exact has the law of `before`, the result minus exact has that of `after`, and noisy is the result
        plus a Z that is independent of it and of the exact values; exactly, and in each entry independently. So both
        together have the epsilon of a release with `after` alone, whatever was asked, and decided by it, in between.
    Proof: the generating function (1-q)²/((1-qz)(1-q/z)) of q1 over that of q2 is p0 plus 1 - p0 times that of q1, for
        p0 = r·((1-q1)/(1-q2))², between 0 and 1 as q/(1-q)² grows: this is Z. By Bayes' rule, with N = 1 - r·s and
        K = (1-r)(1-s)/N, given noisy - exact = n >= 0 the finer noise is m with probability K·s^-m for m < 0, K·r^m
        for 0 <= m <= n, K·r^n·s^(m-n) for m > n, and (r-s)·r^n/N more for m = n; mirrored for n < 0.
        A jump is 0 with probability (r-s)/N, else Laplace noise of ratio s: ±j has K·s^j for j > 0, and it is
        not negative with (1-s)/N. A climb is k with probability (1-r)·r^k: those of k and of -1-k in the Laplace law
        of ratio r. _met takes m = jump if that is below 0; else the climb if it is below n: (1-s)/N·(1-r)·r^m = K·r^m;
        else, with r^n, n plus the jump. These are the probabilities above.
        Draws do not depend on the values, so their time does not. In the density of a whole transcript the two values
        have the factor P[result - exact]·P[Z = noisy - result], and the second knows nothing of the exact values: for
        every single transcript the log-ratio on neighbours is that of the result and of the other releases.
        Of rho this says nothing: given noisy, the log-ratio still ranges over twice the epsilon of `after`, and who
        refines only where the first draw told little loses more than the difference of the two rhos.
    Needs: Sampler.draw, Inversion.draw, _stays, _added; `exact` are the values that were made noisy. A release is
        refined once, and then its refinement: two refinements of one lose more. A noisy value at an end of int64 may
        have been cut, and is refused for what was shown, not for what is exact. A refined one is cut as in perturb.
    Checked by: test_every_pair_of_draws_together_gives_the_conditional_law, test_words_are_inverted_by_the_exact_law,
        test_real_refinements_follow_the_conditional_law, test_the_pair_loses_what_the_finer_release_alone_loses,
        test_a_release_in_between_may_decide_whether_to_refine,
        test_two_refinements_of_one_release_would_lose_more_than_was_paid,
        test_the_difference_of_rho_would_be_too_little
    Seal: 9887b77023c8

    >>> shown = Laplace(10).perturb(np.array([1000, 20]))
    >>> finer = refine(shown, np.array([1000, 20]), Laplace(10), Laplace(2))
    """
    slow, fast = _falls(before, after)
    for values, name in ((noisy, "noisy"), (exact, "exact")):
        if type(values) is not np.ndarray or values.dtype != np.int64:
            raise ValueError(f"{name} must be a plain array of int64")
    if noisy.shape != exact.shape:
        raise ValueError("noisy and exact must have the same shape")
    if np.isin(noisy, _ENDS).any():
        raise ValueError("noisy: a value at an end of int64 may have been cut there, and cannot be refined; ask anew")
    if not noisy.size:
        return noisy.copy()
    climbs = _drawn(noise.laplace(slow.denominator, slow.numerator), noisy.size)
    jumps = _drawn(noise.laplace(fast.denominator, fast.numerator), noisy.size)
    jumps = jumps * _coin(before.scale, after.scale).draw(stream(), noisy.size)
    return _met(noisy.reshape(-1), exact.reshape(-1), np.maximum(climbs, ~climbs), jumps).reshape(noisy.shape)


def _met(noisy: np.ndarray, exact: np.ndarray, climbs: np.ndarray, jumps: np.ndarray) -> np.ndarray:
    """Go from the exact value a jump away from the noisy one, or a climb towards it; who arrives there jumps on."""
    below = noisy < exact
    side = 1 - 2 * below
    # Sums are moved to the ends of int64, where no noisy value is: these comparisons are those of the true sums.
    near = _added(exact, side * np.where(jumps < 0, jumps, climbs))
    far = _added(noisy, side * jumps)
    on_the_way = (near < noisy) & ~below | (near > noisy) & below
    # A choice without branches, whose time would tell.
    met: np.ndarray = far ^ ((far ^ near) & -on_the_way.astype(np.int64))
    return met


def _falls(before: Laplace, after: Laplace) -> tuple[Fraction, Fraction]:
    """Return the exponents of r and s: how fast climbs and jumps fall."""
    wide, narrow = 1 / typed(Laplace, before, "before").scale, 1 / typed(Laplace, after, "after").scale
    if narrow - wide < _LEAST:
        raise ValueError("after must have a smaller scale than before: a release is refined by taking noise away")
    return narrow - wide, narrow + wide


@lru_cache(maxsize=64)
def _coin(before: Fraction, after: Fraction) -> Inversion:
    """Return the coin that shows 0 where a jump is 0 in any case, else 1."""
    return Inversion(lambda bits: _stays(before, after, bits))


def _stays(before: Fraction, after: Fraction, bits: int) -> Boundaries:
    """Return floor(p·2^bits) of p = (r-s)/(1-rs) = r·(1-q1²)/(1-q2²).

    Claim: this is the exact floor, and p·2^bits is not an integer.
    Proof: p grows with r and q2² and falls with q1², so their enclosures enclose it; a floor is used only if both ends
        have the same one, else the guard bits are doubled. The three are integer powers of one exp(-c) with c rational,
        which is transcendental, and so is p, a rational function of it that is not constant: it falls to 0 with it.
    Needs: exp_bounds.
    Checked by: test_the_coin_has_its_exact_boundary
    Seal: d20730544af0
    """
    guard = 64
    while True:
        precision = bits + guard
        one, exponents = 1 << precision, (1 / after - 1 / before, 2 / before, 2 / after)
        r, wide, narrow = (exp_bounds(x, precision) for x in exponents)
        low = r[0] * (one - wide[1]) // (one - narrow[0])
        if narrow[1] < one and low >> guard == -(r[1] * (wide[0] - one) // (one - narrow[1])) >> guard:
            return Boundaries(0, [low >> guard])
        guard *= 2
