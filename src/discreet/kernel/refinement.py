"""Refine a stored Laplace answer: less noise, for the difference of the two epsilons.

Let q1 and q2 < q1 be the ratios exp(-1/scale) of the earlier and the refined release. A draw of the wider noise is a
draw of the narrower noise plus an independent Z, which is 0 with probability (q2/q1)·((1-q1)/(1-q2))² and else has the
wider distribution. Here the narrower draw is sampled given the wider one. It depends on two ratios only: r = q2/q1 and
s = q1·q2.
"""

import json
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from discreet.kernel import noise
from discreet.kernel.errors import Refused, require
from discreet.kernel.event import Event, canonical_json
from discreet.kernel.ledger.ledger import Ledger
from discreet.kernel.loss import Loss
from discreet.kernel.mechanism import Laplace, Sensitivity, add_saturating, draw_noise
from discreet.kernel.noise.inverse_transform import Boundaries, InverseTransformSampler
from discreet.kernel.noise.keystream import thread_keystream
from discreet.kernel.numbers import check_type, exp_bounds

_INT64_ENDS = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_SUPERSEDED = "another request charged for the same totals at the same time. Try again."
_MIN_DIFFERENCE = Fraction(1, 10**200)  # of 1/after - 1/before; below it, floats of the samplers would overflow


def refine(noisy: np.ndarray, exact: np.ndarray, before: Laplace, after: Laplace) -> np.ndarray:
    """Return the exact values with noise of `after`, given `noisy`, the same values with noise of `before`.

    Claim: if noisy - exact has the distribution of `before`, the result minus exact has that of `after`, and noisy is
        the result plus a Z that is independent of it and of the exact values; exactly, and in each entry independently.
        So both together have the epsilon of a release with `after` alone, whatever was released in between, and even if
        that decided whether to refine.
    Proof: the generating function (1-q)²/((1-qz)(1-q/z)) of q1 over that of q2 is p0 plus 1 - p0 times that of q1, for
        p0 = r·((1-q1)/(1-q2))², below 1 as q/(1-q)² grows: this is Z. By Bayes' rule, with N = 1 - rs and
        K = (1-r)(1-s)/N, given noisy - exact = n >= 0 the refined noise is m with probability K·s^-m for m < 0, K·r^m
        for 0 <= m <= n, K·r^n·s^(m-n) for m > n, and (r-s)·r^n/N more for m = n; mirrored for n < 0. A jump is 0 with
        probability (r-s)/N, else Laplace noise of ratio s: ±j has K·s^j for j > 0, and it is not negative with
        (1-s)/N. A climb is k with (1-r)·r^k. _combine_draws takes m = jump if that is below 0; else the climb if it is
        below n, which has (1-s)/N·(1-r)·r^m = K·r^m; else, with r^n, n plus the jump.
        In the density of a transcript the two values have the factor P[result - exact]·P[Z = noisy - result], whose
        second factor does not depend on the exact values: the log-ratio on neighbours is that of the result.
    Needs: Sampler.draw, draw_noise, InverseTransformSampler.draw, _combine_draws, _decay_rates, _zero_jump_boundaries,
        add_saturating; both are vectors of int64, `exact` are the values that noise was added to, and noisy was not
        clamped (recall_values) and is refined once.
    Checked by: test_all_pairs_of_draws_give_the_conditional_distribution,
        test_words_are_inverted_by_the_exact_distribution, test_real_refinements_follow_the_conditional_distribution,
        test_the_pair_loses_what_the_refined_release_alone_loses,
        test_a_release_in_between_may_decide_whether_to_refine,
        test_two_refinements_of_one_release_would_lose_more_than_was_charged

    >>> shown = Laplace(10).perturb(np.array([1000, 20]))
    >>> finer = refine(shown, np.array([1000, 20]), Laplace(10), Laplace(2))
    """
    require(noisy.shape == exact.shape, "noisy and exact must have the same shape")
    climbs, jumps = (
        draw_noise(noise.laplace_sampler(rate.denominator, rate.numerator), noisy.size)
        for rate in _decay_rates(before, after)
    )
    zero_jumps = InverseTransformSampler(partial(_zero_jump_boundaries, before.scale, after.scale))
    jumps = jumps * zero_jumps.draw(thread_keystream(), noisy.size)
    return _combine_draws(noisy, exact, np.maximum(climbs, ~climbs), jumps)


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
    wide, narrow = (1 / check_type(Laplace, each, "before and after").scale for each in (before, after))
    require(narrow - wide >= _MIN_DIFFERENCE, "after must have a smaller scale than before: refining reduces the noise")
    return narrow - wide, narrow + wide


def _zero_jump_boundaries(before: Fraction, after: Fraction, bits: int) -> Boundaries:
    """Return floor(p·2^bits) of p = (r-s)/(1-rs) = r·(1-q1²)/(1-q2²).

    Claim: this is the exact floor, and p·2^bits is not an integer.
    Proof: p increases in r and q2² and decreases in q1², so their enclosures enclose it; a floor is used only if both
        ends have the same one, else the guard bits are doubled. The three are integer powers of one exp(-c) with c
        rational, which is transcendental, and so is p, a rational function of it that is not constant: both tend to 0.
    Needs: exp_bounds.
    Checked by: test_the_refinement_draw_has_its_exact_boundary
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


@dataclass(frozen=True)
class Refinement:
    """A mechanism that refines the stored draw with this receipt from the noise `before` to `after`."""

    receipt: str
    before: Laplace
    after: Laplace

    def __post_init__(self) -> None:
        check_type(str, self.receipt, "receipt")
        _decay_rates(self.before, self.after)  # checks both

    def loss(self, sensitivity: Sensitivity) -> Loss:
        """Return the additional loss of the refined draw.

        Claim: added to the loss of the earlier draw it bounds both, even if the earlier answer, or others since,
            decided whether and how far to refine.
        Proof: epsilon: the log-ratio of the two values is at most epsilon(after), whatever else a transcript contains
            (refine). Rho: given the earlier value, the log-ratio of the refined one ranges over 2·epsilon(after), and a
            range r has rho r²/8 (by Hoeffding's lemma: Cesar and Rogers 2021). The difference of the two rhos would be
            too little: an analyst could refine only where the first draw disclosed little.
        Needs: Laplace.loss, Loss.of_bounds, refine, recall_values.
        Checked by: test_refining_costs_the_difference_and_the_full_rho, test_the_difference_of_rho_would_be_too_little,
            test_the_distribution_of_a_refined_answer_on_neighbours_stays_within_the_refined_cost
        """
        l1 = check_type(Sensitivity, sensitivity, "sensitivity").l1
        return Loss.of_bounds(l1 / self.after.scale - l1 / self.before.scale, self.after.loss(sensitivity).rho)

    def __str__(self) -> str:
        """Return the canonical JSON that the ledger stores."""
        scales = {"scale": str(self.after.scale), "before": str(self.before.scale)}
        return canonical_json({"name": "refined", "of": self.receipt, **scales})


def recall_values(fingerprint: str, refinement: Refinement, ledger: Ledger, source: str) -> np.ndarray:
    """Return the noisy values of the draw to refine.

    Claim: they were released with this fingerprint, from this source and with the noise `before`, and nothing with this
        fingerprint was charged since; without a source, that is if the data may have changed, nothing is returned.
    Proof: the charge is found by its fingerprint and its receipt, its noise and its source are read from its record,
        and the ledger confirms that it is the latest. A value that may have been clamped no longer has the
        distribution: refused.
    Needs: recorded_draws, Ledger.answers, Ledger.latest_receipt, Ledger.charge (which checks the latter again in its
        transaction).
    Checked by: test_only_the_newest_stored_draw_with_its_own_noise_is_refined, test_a_clamped_value_is_not_refined,
        test_only_a_draw_from_the_same_declared_source_is_refined
    """
    stored = {event.id: (event, answer) for event, answer in ledger.answers([fingerprint]) if answer is not None}
    if refinement.receipt not in stored or ledger.latest_receipt(fingerprint) != refinement.receipt:
        raise Refused(_SUPERSEDED)
    event, answer = stored[refinement.receipt]
    draws = [draw for draw in recorded_draws(event) if draw[0] == fingerprint]
    records = [(record["name"], record.get("scale")) for _, _, _, record in draws]
    if records not in [[(name, str(refinement.before.scale))] for name in ("laplace", "refined")]:
        raise ValueError("before: the stored draw has a different noise")
    _, part, index, _ = draws[0]
    noisy = json.loads(answer)[part]
    if not source or noisy["source"] != source:
        raise ValueError("before: a draw can be refined only if its data is declared to be unchanged, at its location")
    values = np.array([row[index] for row in noisy["values"]], np.int64)
    if np.isin(values, _INT64_ENDS).any():
        raise ValueError("before: a value at an end of int64 may have been clamped and cannot be refined")
    return values


def recorded_draws(event: Event) -> list[tuple[str, int, int, dict[str, Any]]]:
    """Return the totals that an event released: fingerprint, part and index in the stored answer, mechanism record."""
    record = json.loads(event.mechanism)
    positions = [
        (fingerprint, part, index)
        for part, fingerprints in enumerate(event.fingerprints)
        for index, fingerprint in enumerate(fingerprints)
        if fingerprint
    ]
    records = record["parts"] if record.get("name") == "several" else [record]
    return [(*position, each) for position, each in zip(positions, records, strict=bool(positions))]
