"""Refine a stored Laplace answer: less noise, for the difference of the two epsilons.

Let q1 and q2 < q1 be the ratios exp(-1/scale) of the earlier and the refined release. A draw of the wider noise is a
draw of the narrower noise plus an independent Z, which is 0 with probability (q2/q1)·((1-q1)/(1-q2))² and else has the
wider distribution. Here the narrower draw is sampled given the wider one. It depends on two ratios only: r = q2/q1 and
s = q1·q2.
"""

import json
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from discreet.kernel import noise
from discreet.kernel.errors import Refused
from discreet.kernel.event import Event, canonical_json
from discreet.kernel.ledger.protocol import Ledger
from discreet.kernel.loss import Loss
from discreet.kernel.mechanism import Gaussian, Laplace, Sensitivity, add_saturating, draw_noise
from discreet.kernel.noise.inverse_transform import Boundaries, InverseTransformSampler
from discreet.kernel.noise.keystream import thread_keystream
from discreet.kernel.numbers import check_type, exp_bounds

_INT64_ENDS = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_MIN_DIFFERENCE = Fraction(1, 10**200)  # of 1/after - 1/before; below it, floats of the samplers would overflow


def refine(noisy: np.ndarray, exact: np.ndarray, before: Laplace, after: Laplace) -> np.ndarray:
    """Return the exact values with noise of `after`, given `noisy`, the same values with noise of `before`.

    Claim: if noisy - exact has the distribution of `before`, the result minus exact has that of `after`, and noisy is
        the result plus a Z that is independent of it and of the exact values; exactly, and in each entry independently.
        So both together have the epsilon of a release with `after` alone, whatever was released in between, and even if
        that decided whether to refine.
    Proof: the generating function (1-q)²/((1-qz)(1-q/z)) of q1 over that of q2 is p0 plus 1 - p0 times that of q1, for
        p0 = r·((1-q1)/(1-q2))², between 0 and 1 as q/(1-q)² grows: this is Z. By Bayes' rule, with N = 1 - r·s and
        K = (1-r)(1-s)/N, given noisy - exact = n >= 0 the refined noise is m with probability K·s^-m for m < 0, K·r^m
        for 0 <= m <= n, K·r^n·s^(m-n) for m > n, and (r-s)·r^n/N more for m = n; mirrored for n < 0.
        A jump is 0 with probability (r-s)/N, else Laplace noise of ratio s: ±j has K·s^j for j > 0, and it is
        not negative with (1-s)/N. A climb is k with probability (1-r)·r^k: those of k and of -1-k in the Laplace
        distribution of ratio r. _combine_draws takes m = jump if that is below 0; else the climb if it is below n:
        (1-s)/N·(1-r)·r^m = K·r^m; else, with r^n, n plus the jump. These are the probabilities above.
        The draws do not depend on the values, so neither does their time. In the density of a whole transcript the two
        values have the factor P[result - exact]·P[Z = noisy - result], whose second factor does not depend on the exact
        values: for every single transcript the log-ratio on neighbours is that of the result and of the other releases.
        This does not hold for rho: given noisy, the log-ratio still ranges over twice the epsilon of `after`, and an
        analyst who refines only where the first draw disclosed little loses more than the difference of the two rhos.
    Needs: Sampler.draw, InverseTransformSampler.draw, _zero_jump_boundaries, add_saturating; `exact` are the values
        that noise was added to. A release is refined only once, and then its refinement: two refinements of the same
        release lose more. A noisy value at an end of int64 may have been clamped, and is refused, which depends on the
        released value, not on the exact one. A refined value is clamped as in perturb.
    Checked by: test_every_pair_of_draws_together_gives_the_conditional_law, test_words_are_inverted_by_the_exact_law,
        test_real_refinements_follow_the_conditional_law, test_the_pair_loses_what_the_finer_release_alone_loses,
        test_a_release_in_between_may_decide_whether_to_refine,
        test_two_refinements_of_one_release_would_lose_more_than_was_paid,
        test_the_difference_of_rho_would_be_too_little
    Seal: 6fcaedb35292

    >>> shown = Laplace(10).perturb(np.array([1000, 20]))
    >>> finer = refine(shown, np.array([1000, 20]), Laplace(10), Laplace(2))
    """
    slow, fast = _decay_rates(before, after)
    for values, name in ((noisy, "noisy"), (exact, "exact")):
        if type(values) is not np.ndarray or values.dtype != np.int64:
            raise ValueError(f"{name} must be a plain array of int64")
    if noisy.shape != exact.shape:
        raise ValueError("noisy and exact must have the same shape")
    if np.isin(noisy, _INT64_ENDS).any():
        raise ValueError(
            "noisy: a value at an end of int64 may have been clamped and cannot be refined; request it again"
        )
    if not noisy.size:
        return noisy.copy()
    climbs = draw_noise(noise.laplace_sampler(slow.denominator, slow.numerator), noisy.size)
    jumps = draw_noise(noise.laplace_sampler(fast.denominator, fast.numerator), noisy.size)
    jumps = jumps * _zero_jump_sampler(before.scale, after.scale).draw(thread_keystream(), noisy.size)
    return _combine_draws(noisy.reshape(-1), exact.reshape(-1), np.maximum(climbs, ~climbs), jumps).reshape(noisy.shape)


def _combine_draws(noisy: np.ndarray, exact: np.ndarray, climbs: np.ndarray, jumps: np.ndarray) -> np.ndarray:
    """Jump from the exact value away from the noisy one, or climb towards it; on reaching it, jump on from there."""
    below = noisy < exact
    side = 1 - 2 * below
    # Sums are clamped to int64, and no noisy value is at its ends: the comparisons are those of the true sums.
    near = add_saturating(exact, side * np.where(jumps < 0, jumps, climbs))
    far = add_saturating(noisy, side * jumps)
    on_the_way = (near < noisy) & ~below | (near > noisy) & below
    # Branch-free, so that the time does not depend on the choice.
    refined: np.ndarray = far ^ ((far ^ near) & -on_the_way.astype(np.int64))
    return refined


def _decay_rates(before: Laplace, after: Laplace) -> tuple[Fraction, Fraction]:
    """Return the exponents of r and s: the decay rates of climbs and jumps."""
    wide, narrow = 1 / check_type(Laplace, before, "before").scale, 1 / check_type(Laplace, after, "after").scale
    if narrow - wide < _MIN_DIFFERENCE:
        raise ValueError("after must have a smaller scale than before: refining reduces the noise")
    return narrow - wide, narrow + wide


@lru_cache(maxsize=64)
def _zero_jump_sampler(before: Fraction, after: Fraction) -> InverseTransformSampler:
    """Return the sampler of 0 where the jump is set to 0, else 1."""
    return InverseTransformSampler(lambda bits: _zero_jump_boundaries(before, after, bits))


def _zero_jump_boundaries(before: Fraction, after: Fraction, bits: int) -> Boundaries:
    """Return floor(p·2^bits) of p = (r-s)/(1-rs) = r·(1-q1²)/(1-q2²).

    Claim: this is the exact floor, and p·2^bits is not an integer.
    Proof: p increases in r and q2² and decreases in q1², so their enclosures enclose it; a floor is used only if both
        ends have the same one, else the guard bits are doubled. The three are integer powers of one exp(-c) with c
        rational, which is transcendental, and so is p, a rational function of it that is not constant: both tend to 0.
    Needs: exp_bounds.
    Checked by: test_the_coin_has_its_exact_boundary
    Seal: 8d5a2fb18866
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


_SATURATED = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_SUPERSEDED = "another request charged for the same totals at the same time. Try again."


class StoredDraw(NamedTuple):
    """One total that an event released: its fingerprint, its position in the stored answer, noise and threshold."""

    fingerprint: str
    part: int
    position: int
    noise: Laplace | Gaussian
    threshold: int | None = None


@dataclass(frozen=True)
class EarlierDraw:
    """A stored draw to refine: the receipt of its charge, and its noise."""

    receipt: str
    noise: Laplace

    def __post_init__(self) -> None:
        if type(self.receipt) is not str or not isinstance(self.noise, Laplace):
            raise TypeError("an earlier draw needs a receipt and a Laplace mechanism")

    def mechanism_record(self, after: Laplace) -> str:
        """Return the canonical JSON that the ledger stores."""
        return canonical_json(
            {"name": "refined", "scale": str(after.scale), "before": str(self.noise.scale), "of": self.receipt}
        )

    def loss(self, after: Laplace, sensitivity: Sensitivity) -> Loss:
        """Return the additional loss of the refined draw.

        Claim: added to the loss of the earlier draw it bounds both, even if the earlier answer, or others since,
            decided whether and how far to refine.
        Proof: epsilon: whatever else a transcript contains, the density of the two values is P[refined - exact] times a
            factor without the exact value (refine), so their log-ratio is at most epsilon(after). Rho: given the
            earlier value, the log-ratio of the refined one ranges over 2·epsilon(after), and a range r has rho r²/8 (by
            Hoeffding's lemma: Cesar and Rogers 2021); the difference of the two rhos would be too little.
        Needs: Laplace.loss, refine, recall_values.
        Checked by: test_refining_costs_the_difference_and_a_whole_rho,
            test_the_law_of_a_refined_answer_on_neighbours_stays_within_the_finer_price
        Seal: 650038f6dc33
        """
        before, finer = self.noise.loss(sensitivity), after.loss(sensitivity)
        if before.epsilon is None or finer.epsilon is None or not finer.epsilon > before.epsilon:
            raise ValueError("after must have less noise than the earlier draw")
        return Loss.of_bounds(finer.epsilon - before.epsilon, finer.rho)


def recall_values(fingerprint: str, earlier: EarlierDraw, ledger: Ledger) -> np.ndarray:
    """Return the noisy values of the draw to refine.

    Claim: they were released with this fingerprint and this noise, and nothing with this fingerprint was charged since.
    Proof: the charge is found by its fingerprint and its receipt, its noise is read from its record, and the ledger
        confirms that it is the latest. A value at an end of int64 may have been clamped and no longer has the
        distribution, so it is refused.
    Needs: Ledger.answers, Ledger.latest_receipt; Ledger.charge, which checks the latter again in its transaction.
    Checked by: test_only_the_newest_stored_draw_with_its_own_noise_is_refined
    Seal: f5902d4b62b2
    """
    stored = {event.id: (event, answer) for event, answer in ledger.answers([fingerprint]) if answer is not None}
    if earlier.receipt not in stored or ledger.latest_receipt(fingerprint) != earlier.receipt:
        raise Refused(_SUPERSEDED)
    event, answer = stored[earlier.receipt]
    draws = [draw for draw in stored_draws(event) if draw.fingerprint == fingerprint]
    if len(draws) != 1 or draws[0].noise != earlier.noise or draws[0].threshold is not None:
        raise ValueError("earlier: the stored draw has a different noise")
    values = stored_column(answer, draws[0])
    if np.isin(values, _SATURATED).any():
        raise ValueError("earlier: a value at an end of int64 may have been clamped and cannot be refined")
    return values


def stored_draws(event: Event) -> list[StoredDraw]:
    """Return the draws that an event released."""
    data = json.loads(event.mechanism)
    mechanisms = data["parts"] if data.get("name") == "several" else [data]
    positions = [
        (fingerprint, part, index)
        for part, fingerprints in enumerate(event.fingerprints)
        for index, fingerprint in enumerate(fingerprints)
        if fingerprint
    ]
    return (
        [
            StoredDraw(*position, *_read_mechanism(mechanism))
            for position, mechanism in zip(positions, mechanisms, strict=True)
        ]
        if positions
        else []
    )


def stored_column(answer: bytes | None, draw: StoredDraw) -> np.ndarray:
    """Return the stored values of one total."""
    rows = json.loads(answer or b"")[draw.part]["values"]
    return np.array([row[draw.position] for row in rows], np.int64)


def _read_mechanism(data: Any) -> tuple[Laplace | Gaussian, int | None]:
    match data["name"]:
        case "threshold":
            return _read_mechanism(json.loads(data["noise"]))[0], int(data["cut"])
        case "laplace" | "refined":
            return Laplace(data["scale"]), None
        case "gaussian":
            return Gaussian(data["scale"]), None
    raise ValueError(f"{data['name']!r} is not an additive mechanism")
