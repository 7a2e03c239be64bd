"""Figures of attack results and comparisons. matplotlib is imported only when a figure is drawn."""

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.attacks.defences import epsilon_text
from discreet.attacks.evidence import exp_epsilon
from discreet.attacks.result import AttackResult, ExposureByRarity, format_value, percent
from discreet.attacks.scores import RocCurve
from discreet.plotting import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    RED,
    add_legend,
    format_plain_numbers,
    panels,
    set_epsilon_ticks,
    set_title,
    style,
)

if TYPE_CHECKING:
    from discreet.attacks.comparison import Comparison


DEFENCE_LABELS = {"nothing": "no defence", "easy": "the easy fix", "curator": "the curator"}
DEFENCE_COLOURS = {"nothing": RED, "easy": ORANGE, "curator": BLUE, "own": INK}


def result_figure(result: AttackResult) -> Any:
    """Draw one result: its own figure, its ROC curve, or success beside the baseline; and the exposure by rarity."""
    figure, axes = panels(1 if result.exposure is None else 2)
    with style():
        if result.draw is not None:
            result.draw(axes[0])
        elif result.curve is not None:
            draw_roc_curve(axes[0], result, result.curve)
            draw_epsilon_bound(axes[0], result)
        else:
            draw_success(axes[0], result)
        if result.exposure is not None:
            draw_exposure(axes[1], result.exposure, DEFENCE_COLOURS[result.defence])
        add_legend(figure, axes, columns=3)
        name = result.attack.capitalize().replace("_", " ")
        set_title(figure, f"{name} against {defence_label(result)}: {result_headline(result)}")
    return figure


def defence_label(result: AttackResult) -> str:
    """Return the label of a result's defence."""
    label = DEFENCE_LABELS.get(result.defence, str(result.against))
    return label if result.epsilon is None else f"{label} at {epsilon_text(result.epsilon)}"


def result_headline(result: AttackResult) -> str:
    """Return a headline: the success, and the baseline."""
    baseline = f"{result.evidence.baseline_name} {percent(result.evidence.baseline)}"
    return f"{percent(result.success)} {result.metric}; {baseline}"


def share_label(metric: str) -> str:
    """Return the axis label of a share, wrapped."""
    return textwrap.fill(f"share {metric}", 30)


def draw_success(axes: Any, result: AttackResult) -> None:
    """Draw success and baseline as bars, and the bound from epsilon as a line."""
    bars = [("attack", result.success, DEFENCE_COLOURS[result.defence]), ("guessing", result.baseline, GREY)]
    for position, (_, value, colour) in enumerate(bars):
        axes.bar(position, value, color=colour, width=0.6)
        axes.text(position, value, format_value(value), ha="center", va="bottom", fontsize=8)
    axes.set_xticks(range(len(bars)), [label for label, *_ in bars])
    axes.set_ylabel(share_label(result.metric))
    if result.ceiling is not None:
        axes.axhline(result.ceiling, color=INK, ls="--", lw=1, label=f"{epsilon_text(result.epsilon)} allows")


def draw_roc_curve(axes: Any, result: AttackResult, curve: RocCurve) -> None:
    """Draw the ROC curve on logarithmic axes, because low false positive rates matter most."""
    smallest_rate = 1 / max(curve.non_member_count, 2)
    axes.plot(
        np.maximum(curve.fpr, smallest_rate / 2),
        np.maximum(curve.tpr, smallest_rate / 2),
        color=DEFENCE_COLOURS[result.defence],
        lw=1.5,
        label=f"{defence_label(result)} (AUC {curve.auc:.2f})",
    )
    axes.set(xscale="log", yscale="log", xlim=(smallest_rate, 1), ylim=(smallest_rate, 1.05))
    axes.set(xlabel="false positive rate (non-members)", ylabel="true positive rate (members)")
    format_plain_numbers(axes.xaxis, axes.yaxis)


def draw_epsilon_bound(axes: Any, result: AttackResult) -> None:
    """Draw the line of guessing and, if an epsilon is claimed, the bound from it."""
    fpr = np.geomspace(1e-5, 1, 200)
    axes.plot(fpr, fpr, color=GREY, ls=":", lw=1, label="guessing")
    if result.epsilon is not None:
        ratio_bound = exp_epsilon(float(result.epsilon))
        allowed = np.minimum(ratio_bound * fpr + result.delta, 1 - (1 - fpr - result.delta) / ratio_bound)
        axes.plot(fpr, allowed, color=INK, ls="--", lw=1, label=f"{epsilon_text(result.epsilon)} allows")


def draw_exposure(axes: Any, exposure: ExposureByRarity, colour: str) -> None:
    """Draw success by decile of rarity, with intervals."""
    shares = exposure.deciles
    deciles, values = range(1, len(shares) + 1), np.array([share.value for share in shares])
    ends = np.array([share.interval() for share in shares])
    axes.bar(deciles, values, color=colour, alpha=0.85)
    axes.errorbar(deciles, values, yerr=np.abs(ends.T - values), fmt="none", ecolor=INK, lw=0.8)
    label = textwrap.fill(f"deciles of people by rarity ({exposure.rarity_label}), rarest last", 40)
    axes.set(xlabel=label, ylabel="success rate (95 % interval)", ylim=(0, 1.05))
    axes.set_xticks(list(deciles))


_LINE_WIDTHS = {"nothing": 4.0}  # wide, so that it stays visible where the easy fix changes nothing
_BOUND_LABEL = "upper bound from epsilon"
_CURATOR_LABEL = "the curator (95 % interval)"


def comparison_figure(comparison: "Comparison") -> Any:
    """Draw success against epsilon on the left, and implied against claimed epsilon on the right."""
    figure, axes = panels(3 if comparison.has_accuracy else 2)
    private = sorted((each for each in comparison.results if each.epsilon is not None), key=_epsilon_of)
    without_epsilon = [each for each in comparison.results if each.epsilon is None]
    with style():
        _draw_success_by_epsilon(axes[0], without_epsilon, private)
        _draw_implied_epsilon(axes[1], without_epsilon, private)
        if comparison.has_accuracy:
            _draw_accuracy(axes[2], without_epsilon[0], private)
        add_legend(figure, axes, columns=3)
        set_title(figure, _comparison_headline(without_epsilon, private))
    return figure


def _comparison_headline(without_epsilon: list[AttackResult], private: list[AttackResult]) -> str:
    """Return a headline: success with each defence, for the curator at the epsilon nearest to 1."""
    reference = min(private, key=lambda result: abs(np.log(_epsilon_of(result))))
    successes = [f"{percent(each.success)} with {defence_label(each)}" for each in without_epsilon]
    successes.append(f"{percent(reference.success)} with {defence_label(reference)}")
    baseline = f"{reference.evidence.baseline_name} {percent(reference.evidence.baseline)}"
    return f"{reference.attack.capitalize().replace('_', ' ')} attack: success {', '.join(successes)} ({baseline})"


def _draw_success_by_epsilon(axes: Any, without_epsilon: list[AttackResult], private: list[AttackResult]) -> None:
    epsilons = [_epsilon_of(result) for result in private]
    for result in without_epsilon:
        label = defence_label(result)
        axes.axhline(
            result.success, color=DEFENCE_COLOURS[result.defence], lw=_LINE_WIDTHS.get(result.defence, 1.5), label=label
        )
    successes = np.array([result.success for result in private])
    ends = np.array([result.evidence.interval() for result in private])
    axes.errorbar(epsilons, successes, np.abs(ends.T - successes), fmt="o-", color=BLUE, label=_CURATOR_LABEL)
    for values, line_style, colour, label in (
        ([result.ceiling for result in private], "--", INK, _BOUND_LABEL),
        ([result.evidence.baseline for result in private], ":", GREY, private[0].evidence.baseline_name),
    ):
        if len(private) == 1:  # a line through one point would be invisible
            axes.axhline(values[0], color=colour, ls=line_style, lw=1.2, label=label)
        else:
            axes.plot(epsilons, values, line_style, color=colour, lw=1.2, label=label)
    set_epsilon_ticks(axes, epsilons, "claimed epsilon")
    axes.set(ylim=(-0.03, 1.05), ylabel=share_label(private[0].metric))


def _draw_implied_epsilon(axes: Any, without_epsilon: list[AttackResult], private: list[AttackResult]) -> None:
    epsilons = np.array([_epsilon_of(result) for result in private])
    lows = [result.implied.low for result in (*without_epsilon, *private)]
    floor, top = epsilons.min() / 10, 3 * max(epsilons.max(), *lows)
    implied = np.array([(each.low, each.estimate, each.high) for each in (result.implied for result in private)])
    low, estimate, high = np.clip(implied, floor, top).T
    axes.errorbar(epsilons, estimate, (estimate - low, high - estimate), fmt="o", color=BLUE, label=_CURATOR_LABEL)
    line = np.array([epsilons.min() / 1.5, epsilons.max() * 1.5])
    axes.plot(line, line, "--", color=INK, lw=1.2, label=_BOUND_LABEL)
    for result in without_epsilon:
        lower_bound = max(result.implied.low, floor)
        label = defence_label(result)
        axes.axhline(
            lower_bound, color=DEFENCE_COLOURS[result.defence], lw=_LINE_WIDTHS.get(result.defence, 1.5), label=label
        )
    set_epsilon_ticks(axes, list(epsilons), "claimed epsilon")
    axes.set(yscale="log", ylabel="epsilon implied by the attack", ylim=(floor * 0.8, top))
    format_plain_numbers(axes.yaxis)


def _draw_accuracy(axes: Any, without_defence: AttackResult, private: list[AttackResult]) -> None:
    """Draw the accuracy on members and non-members of the model without a defence, and of the private ones."""
    epsilons = [_epsilon_of(result) for result in private]
    for index, (line_style, side) in enumerate((("--", "members"), ("-", "non-members"))):
        exact = (without_defence.accuracy or (0.0, 0.0))[index]
        axes.axhline(exact, color=DEFENCE_COLOURS["nothing"], ls=line_style, lw=1.5)
        values = [(result.accuracy or (0.0, 0.0))[index] for result in private]
        axes.plot(epsilons, values, "o", ls=line_style, color=BLUE)
        axes.plot([], [], color=GREY, ls=line_style, label=f"accuracy on {side}")
    set_epsilon_ticks(axes, epsilons, "claimed epsilon")
    axes.set(ylim=(-0.03, 1.05), ylabel="accuracy of the model")


def _epsilon_of(result: AttackResult) -> float:
    return float(result.epsilon or 0)
