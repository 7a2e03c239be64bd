"""The clipping report in words: one line below the table, and what it means."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.answer.bias import Bias
from discreet.answer.text import enumerate_words, round_down, round_up
from discreet.estimate.clipped_release import ClippedRelease, MeasuredClipping
from discreet.estimate.contribution_buckets import clipped_rows
from discreet.estimate.planned_release import (
    Frequencies,
    Mean,
    Measure,
    NoisyCount,
    NoisySum,
    PairMeasure,
    Quantile,
    Variance,
)
from discreet.kernel.ball import Norm
from discreet.kernel.totals import Count, CountDistinct, CountUnits, Sum

_DEVIATIONS = 2.0  # of the noise behind which units may be hidden
_BOUND_STEPS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)  # suggested bounds are these times a power of ten
_POWERS = 8
_WEIGHTED = {
    Mean: "averages",
    Variance: "variances",
    PairMeasure: "correlations and regressions",
    Quantile: "quantiles",
    Frequencies: "frequencies",
}

_ESTIMATE_NOTE = (
    "The lower bound of the clipping bias holds with 95 % confidence; the estimate is a best guess, not a bound."
)
_GROUPS_NOTE = (
    "The lower bound is for all groups together, not for a single one; the estimate of a group is in proportion to its "
    "count."
)
_RATIOS_NOTE = (
    "Counts and sums are clipped separately, which biases ratios of them. AVG(...), or a SUM divided by a COUNT in one "
    "SELECT list, is clipped alike above and below."
)
_HIDDEN_NOTE = "Below detection, a few {units} far above the bounds may be clipped unnoticed."


@dataclass(frozen=True)
class ReportWords:
    """What the report says of the query and the policy: the noun for units, and whether ratios are computed.

    `reason` is why clipping was not measured, if the policy says so.
    """

    units: str = "units"
    ratios: bool = False
    reason: str = ""


def clipping_sentence(clipped: ClippedRelease, words: ReportWords) -> str:
    """State how much clipping removed, and what that does to the numbers; nothing if they are quantiles only."""
    removed, measured = clipped.removed, clipped.measured
    if not any(isinstance(total, Count | CountUnits | Sum) for total in clipped.release.question.totals):
        return ""
    if removed is None or measured is None:
        return f"Clipping was not measured{words.reason}: {_effects(clipped, words)}."
    blind = _blind_sentence(clipped, words)
    noun = _measured_noun(clipped, measured, words)
    if removed.low < 1:
        if removed.high is not None:
            limit = f"fewer than about {round_up(removed.high)} {noun}"
            return f"{_subject(clipped, limit)} (below detection at this epsilon).{blind}"
        hidden = round_up(_most_exceeding(measured))
        return f"Fewer than about {hidden} {words.units} exceed the bounds (below detection at this epsilon).{blind}"
    amount = _subject(clipped, f"at least {round_down(removed.low)} {noun}{_share_phrase(clipped, removed)}")
    return f"{amount}: {_effects(clipped, words)}{_suggestion(clipped, measured, removed)}.{blind}"


def _measured_noun(clipped: ClippedRelease, measured: MeasuredClipping, words: ReportWords) -> str:
    """Return what was clipped: rows, units, or a part of a sum."""
    if isinstance(measured.counted, Sum):
        return f"of {clipped.count.label if clipped.count else 'the sums'}"
    return "rows" if isinstance(measured.counted, Count) else words.units


def _blind_sentence(clipped: ClippedRelease, words: ReportWords) -> str:
    """Say so if automatic bounds were chosen blindly, and what was used instead."""
    automatic = clipped.release.automatic
    if automatic is None or not automatic.blind:
        return ""
    if automatic.uses_declared:
        return f" Too few {words.units} to choose the bounds at this epsilon: those that the policy declares were used."
    return f" Too few {words.units} to choose the bounds well at this epsilon."


def clipping_notes(releases: Sequence[ClippedRelease], words: ReportWords) -> Iterator[str]:
    """Yield what the report means, and what it does not."""
    reports = [(clipped, removed) for clipped in releases if (removed := clipped.removed)]
    if reports:
        yield _ESTIMATE_NOTE
    if any(clipped.count and not clipped.has_one_group for clipped, _ in reports):
        yield _GROUPS_NOTE
    if any(removed.low < 1 and removed.high is None for _, removed in reports):
        yield _HIDDEN_NOTE.format(units=words.units)
    if nouns := list(dict.fromkeys(noun for clipped in releases for noun in _weighted_nouns(clipped, words))):
        named = enumerate_words(nouns)
        yield f"{words.units.capitalize()} with many rows count for less in {named}, because of clipping."
    if words.ratios and any(not clipped.release.question.bounds.cap_rows for clipped in releases):
        yield _RATIOS_NOTE


def _subject(clipped: ClippedRelease, amount: str) -> str:
    """State what was removed from the count, or what is above the bounds if only other numbers are shown."""
    if not clipped.count:
        return f"{amount.capitalize()} are above the bounds"
    return f"Clipping removed {amount}{'' if clipped.has_one_group else ' over all groups'}"


def _share_phrase(clipped: ClippedRelease, removed: Bias) -> str:
    """Return the share of the count that was removed, at least, and how certain that is."""
    remaining, low = clipped.count_in_all_groups, removed.low * clipped.expansion
    share = f"{round_down(100 * low / (remaining + low))} %, " if remaining and remaining > 0 else ""
    return f" ({share}95 % confidence)"


def _effects(clipped: ClippedRelease, words: ReportWords) -> str:
    """Return what clipping does to the numbers of a release."""
    measures = [measure for measure in clipped.release.measures if clipped.may_bias(measure)]
    is_detected = clipped.removed is not None and clipped.removed.low >= 1
    counted = clipped.count and isinstance(clipped.count.estimator, NoisyCount)
    certain = _count_noun(clipped, clipped.count) if clipped.count and counted and is_detected else None
    counts = [_count_noun(clipped, measure) for measure in measures if isinstance(measure.estimator, NoisyCount)]
    parts = [f"{noun} {'are' if noun == certain else 'may be'} too low" for noun in dict.fromkeys(counts)]
    parts += ["sums may be biased"] if any(isinstance(measure.estimator, NoisySum) for measure in measures) else []
    weighted = _weighted_nouns(clipped, words)
    parts += [f"{words.units} with many rows count for less in {enumerate_words(weighted)}"] if weighted else []
    return enumerate_words(parts)


def _weighted_nouns(clipped: ClippedRelease, words: ReportWords) -> list[str]:
    """Return the numbers in which clipping changes the weight of a unit."""
    kinds = [type(measure.estimator) for measure in clipped.release.measures]
    return [noun for kind, noun in _WEIGHTED.items() if kind in kinds] + ["ratios"] * words.ratios


def _count_noun(clipped: ClippedRelease, measure: Measure) -> str:
    assert isinstance(measure.estimator, NoisyCount)
    total = clipped.release.question.totals[measure.estimator.total]
    return "distinct counts" if isinstance(total, CountUnits | CountDistinct) else "counts"


def _most_exceeding(measured: MeasuredClipping) -> float:
    """Return about how many units can exceed the bounds: all above the radius, and two deviations of their noise."""
    above = measured.buckets.counts[np.array(measured.buckets.lows) >= measured.radius]
    return max(0.0, float(above.sum())) + _DEVIATIONS * measured.buckets.deviation * math.sqrt(len(above))


def _suggestion(clipped: ClippedRelease, measured: MeasuredClipping, removed: Bias) -> str:
    """Return advice on the bounds, unless they are automatic or the bias is within the margin."""
    if clipped.release.automatic or _is_small(clipped, removed.estimate, 1.0):
        return ""
    bounds = clipped.release.question.bounds
    name, bound = ("rows", bounds.rows) if isinstance(measured.counted, Count) else ("groups", bounds.groups)
    for candidate in sorted({math.ceil(step * 10**power) for power in range(_POWERS) for step in _BOUND_STEPS}):
        factor = candidate / bound
        if name == "groups" and bounds.norm is Norm.L2:
            factor = math.sqrt(factor)  # the l2 norm of k groups
        if factor <= 1:
            continue
        excess = clipped_rows(measured.buckets, measured.radius * factor).estimate
        if _is_small(clipped, excess and excess * clipped.spread, factor):
            return f'; consider {name} = {candidate:,} or {name} = "auto"'
    return f'; consider {name} = "auto"'


def _is_small(clipped: ClippedRelease, removed: float | None, factor: float) -> bool:
    """Return whether the mean bias of a group is at most its margin, with a radius `factor` times as large."""
    margin = clipped.count_margin
    if margin is None or removed is None:
        return False
    return removed * clipped.expansion / clipped.cell_count <= margin * factor
