"""Partition selection: show a group only if the noisy weight of its units reaches a threshold."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import isqrt

import numpy as np

from discreet.kernel.event import canonical_json
from discreet.kernel.expr import MAX_TEXT_LENGTH
from discreet.kernel.loss import ZERO_LOSS, Loss
from discreet.kernel.mechanism import Gaussian, Laplace, Sensitivity
from discreet.kernel.numbers import as_integer, power_down, round_up
from discreet.kernel.question import GroupKey, Question, SelectedGroups
from discreet.kernel.totals import SelectionWeight

KeyWeights = tuple[list[GroupKey], np.ndarray]  # keys, and the selection weight of each

_MAX_LEFT_OUT = 50_000  # keys that the SELECT of a later round lists
_UNLISTABLE = re.compile(f"\0|.{{{MAX_TEXT_LENGTH + 1}}}", re.DOTALL).search  # see check_value
_PRECISION_BITS = 256
_MAX_UNBLOCKED = 100  # if a unit may be in more groups, delta is bounded for blocks of k


@dataclass(frozen=True)
class Threshold:
    """Shows a group if its noisy weight in units is at least `cut`.

    A unit in k groups has the weight size·min(1, sqrt(groups/k)) in each, rounded down; k is at most `most`.

    >>> from discreet.kernel.mechanism import Laplace
    >>> f"{float(Threshold(Laplace(1), cut=20, groups=1).loss().delta):.1e}"
    '4.1e-09'
    """

    noise: Laplace | Gaussian
    cut: int
    groups: int
    size: int = 1
    most: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.noise, Laplace | Gaussian):
            raise TypeError(f"noise must be a Laplace or Gaussian mechanism, not {type(self.noise).__name__}")
        for name in ("cut", "groups", "size"):
            object.__setattr__(self, name, as_integer(getattr(self, name), name, minimum=1))
        object.__setattr__(self, "most", as_integer(self.most or self.groups, "most", minimum=self.groups))

    @property
    def sensitivity(self) -> Sensitivity:
        """The sensitivity of the weights of all groups."""
        return Sensitivity.of_norms(isqrt(self.groups * self.size**2 * self.most), self.groups * self.size**2)

    def loss(self) -> Loss:
        """Return the loss of showing the groups that pass, with their noisy weights.

        Claim: the loss of the noise for `sensitivity`, and delta = max over k of 1 - (1 - P[Z >= cut - w_k])^k, where
            w_k = floor(size·min(1, sqrt(groups/k))), k = 1 … most, rounded up.
        Proof: a unit in k groups moves k totals by at most w_k each, which is at most groups·size² in squared l2, and
            in l1 at most size·sqrt(groups·k) for k >= groups, and less for fewer. Remove the unit: groups that contain
            other units stay, and for them the loss of the noise holds, because the threshold is post-processing. At
            most k groups contained this unit alone: they can be shown only with it, each with probability P[Z >= cut -
            w_k], independently. If k can be above 100, blocks of k are bounded by the largest weight and the largest k
            of the block together. A block whose last·P[Z >= cut - size] is not above the maximum so far is skipped: it
            cannot exceed it.
        Needs: worst_block, Threshold.block_delta, Threshold.weight_in, Threshold.sensitivity, Laplace.loss,
            Gaussian.loss, laplace_tail_up, gaussian_tail_up, power_down, round_up.
        Checked by: test_threshold_delta_is_the_probability_that_a_lone_unit_is_shown,
            test_clipped_units_cost_no_more_than_the_worst_k, test_no_k_moves_the_weights_by_more_than_is_charged
        """
        return self.noise.loss(self.sensitivity) + Loss(0, 0, worst_block(self)[0])

    def weight_in(self, k: int) -> int:
        """Return the weight of a unit in each of its k groups."""
        return min(self.size, isqrt(self.groups * self.size**2 // k))

    def block_delta(self, block: tuple[int, int]) -> Fraction:
        """Return an upper bound, over a block of k, of the probability that any group of a single unit is shown."""
        first, last = block
        one = 1 << _PRECISION_BITS
        hidden = max(0, one - self._pass_probability(self.weight_in(first)))
        return round_up(Fraction(one - power_down(hidden, last, _PRECISION_BITS), one), 40)

    def _pass_probability(self, weight: int) -> int:
        """Return an upper bound of the probability that a group of this weight is shown, times 2^_PRECISION_BITS."""
        return self.noise.tail_up(self.cut - weight, _PRECISION_BITS)

    def passes(self, noisy: np.ndarray) -> np.ndarray:
        """Return which groups are shown, given their noisy weights."""
        return np.asarray(noisy) >= self.cut

    def __str__(self) -> str:
        return canonical_json(
            {
                "name": "threshold",
                "noise": str(self.noise),
                "cut": str(self.cut),
                "groups": str(self.groups),
                "size": str(self.size),
                "most": str(self.most),
            }
        )


@dataclass(frozen=True)
class PartitionSelection:
    """Rounds of partition selection: a group is shown if it passes one, and then takes no part in the next ones.

    Where popular keys are shown first, a unit has fewer keys left, and weighs more in each of them.
    """

    rounds: tuple[Threshold, ...]

    def loss(self, sensitivity: Sensitivity) -> Loss:
        """Return the loss of all rounds, each of which reads weights of this sensitivity.

        Claim: rho (or epsilon) and delta of the rounds add up, whatever earlier rounds showed.
        Proof: given the groups that were shown, the weights of a round are again those of Threshold: of a unit with k
            groups left, at most `most`, w_k in each. The noise of a round is fresh. So the rounds are releases of which
            each is chosen by earlier outputs alone, and their losses add up (Loss.__add__).
        Needs: Threshold.loss, Loss.__add__, Laplace.loss, Gaussian.loss.
        Checked by: test_the_distribution_of_two_rounds_stays_within_their_loss,
            test_a_key_that_one_unit_owns_is_shown_with_probability_at_most_delta_in_all_rounds
        """
        return sum(
            (each.noise.loss(sensitivity) + Loss(0, 0, each.loss().delta) for each in self.rounds), start=ZERO_LOSS
        )

    def select(self, question: Question, read: Callable[[Question], KeyWeights]) -> dict[GroupKey, int]:
        """Return the shown groups, sorted by key, with their noisy weights; `read` returns the weights of a question.

        Claim: it depends on the data through the noisy weights of the rounds alone: fresh noise on every weight, of
            units with keys that were not shown.
        Proof: the order of the lines. Which keys a round leaves out is a function of those that are shown: they are
            sorted, because the order of the engine may depend on the data. Those that cannot be listed in SQL, or are
            too many, are candidates again, with a weight that is bounded like any other; a key that has none exists
            for units that do not count, and is no candidate.
        Needs: SelectedGroups, select_key_weights, Threshold.passes, Laplace.perturb, Gaussian.perturb, _sort_keys.
        Checked by: test_each_round_has_fresh_noise_and_leaves_out_what_is_shown,
            test_a_key_that_no_unit_counts_for_is_shown_in_a_later_round_only,
            test_keys_that_sql_can_list_are_left_out_of_the_next_round,
            test_a_weight_of_one_is_a_candidate_and_none_is_not,
            test_the_distribution_of_two_rounds_stays_within_their_loss
        """
        shown: dict[GroupKey, int] = {}
        for threshold in self.rounds:
            if shown:
                listed = tuple(key for key in _sort_keys(shown) if not any(map(_UNLISTABLE, map(str, key))))[
                    :_MAX_LEFT_OUT
                ]
                question = replace(
                    question, groups=SelectedGroups(question.max_selection_keys, listed), totals=(SelectionWeight(),)
                )
            keys, weights = read(question)
            candidates = np.flatnonzero(weights > 0)
            noisy = threshold.noise.perturb(weights[candidates])
            passed = threshold.passes(noisy)
            shown = dict(zip((keys[row] for row in candidates[passed]), noisy[passed].tolist(), strict=True)) | shown
        return {key: shown[key] for key in _sort_keys(shown)}

    def __str__(self) -> str:
        return canonical_json({"name": "partition selection", "rounds": [str(each) for each in self.rounds]})


def partition_threshold(question: Question, noise: Laplace | Gaussian, cut: int) -> Threshold:
    """Return one round of partition selection for the groups of a question.

    Claim: a unit with k keys, of those not yet shown, moves the selection weight of each by at most
        size·min(1, sqrt(groups/k)), and k is at most `most` for every unit that counts.
    Proof: with clipping: the weights of select_key_weights, with groups = 1; a unit with more than max_selection_keys
        keys adds 0, and a key is shown only if its weight is above zero. Without clipping: its `max_rows_per_unit` rows
        are in at most that many groups, each with at most that many of them.
    Needs: select_key_weights, select_counts_and_sums, Threshold.loss, Question.max_selection_keys,
        Question.needs_clipping, Question.fraction_bits.
    Checked by: test_a_key_that_one_unit_owns_is_shown_with_probability_at_most_delta,
        test_a_row_of_its_own_is_shown_with_probability_at_most_delta
    """
    if not question.needs_clipping:
        rows = question.relation.shape.max_rows_per_unit or 1
        return Threshold(noise, cut, groups=rows, size=rows)
    return Threshold(noise, cut, 1, 1 << question.fraction_bits(question.totals[0]), question.max_selection_keys)


def _sort_keys(keys: Iterable[GroupKey]) -> list[GroupKey]:
    """Return keys in ascending order, NULL last."""
    return sorted(keys, key=lambda key: [(part is None, part) for part in key])


@lru_cache(maxsize=256)
def worst_block(threshold: Threshold) -> tuple[Fraction, tuple[int, int]]:
    """Return delta and the block of k that attains it."""
    top = threshold._pass_probability(threshold.size)  # noqa: SLF001
    worst = (Fraction(-1), (threshold.groups, threshold.groups))
    for block in reversed(_blocks(threshold.groups, threshold.most)):
        if Fraction(block[1] * top, 1 << _PRECISION_BITS) > worst[0]:
            worst = max(worst, (threshold.block_delta(block), block))
    return min(Fraction(1), worst[0]), worst[1]


def _blocks(groups: int, most: int) -> list[tuple[int, int]]:
    """Return ranges that cover k = groups … most; a smaller k has the same weight and a lower probability."""
    blocks, first = [], groups
    while first <= most:
        last = first if most <= _MAX_UNBLOCKED else min(most, first + first // 16)
        blocks.append((first, last))
        first = last + 1
    return blocks
