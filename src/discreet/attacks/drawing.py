"""Pictures of attacks. matplotlib is loaded only when one is drawn."""

import textwrap
from typing import Any

import numpy as np

from discreet.attacks.implied import rise
from discreet.attacks.result import AttackResult, percent, shown
from discreet.figures import BLUE, GREY, INK, ORANGE, RED, entitle, explain, panels, plain_numbers, style

WORDS = {"nothing": "no defence", "easy": "the easy fix", "curator": "the curator"}
COLOURS = {"nothing": RED, "easy": ORANGE, "curator": BLUE, "own": INK}


def figure_of(result: AttackResult) -> Any:
    """Draw one result: its own picture, or its curve, or success beside guessing; and who is most exposed."""
    figure, axes = panels(1 if result.exposure is None else 2)
    with style():
        if result.draw is not None:
            result.draw(axes[0])
        elif result.curve is not None:
            draw_curve(axes[0], result)
            draw_limits(axes[0], result)
        else:
            draw_success(axes[0], result)
        if result.exposure is not None:
            draw_exposure(axes[1], result)
        explain(figure, axes, columns=3)
        entitle(
            figure, f"{result.attack.capitalize().replace('_', ' ')} against {shield_words(result)}: {reached(result)}"
        )
    return figure


def shield_words(result: AttackResult) -> str:
    """Name the defence that a result was reached against."""
    words = WORDS.get(result.defence, str(result.shield))
    return words if result.epsilon is None else f"{words} at epsilon {result.epsilon}"


def reached(result: AttackResult) -> str:
    """Say in words what an attack reached: the finding that its picture shows."""
    return f"{percent(result.success)} {result.metric}; {result.evidence.beside} {percent(result.evidence.baseline)}"


def share_label(metric: str) -> str:
    """Return the label of an axis of shares: all of the metric, on as many lines as it needs."""
    return textwrap.fill(f"share {metric}", 30)


def draw_success(axes: Any, result: AttackResult) -> None:
    """Draw success, guessing, and what epsilon allows as bars."""
    bars = [("attack", result.success, COLOURS[result.defence]), ("guessing", result.baseline, GREY)]
    for place, (_, value, colour) in enumerate(bars):
        axes.bar(place, value, color=colour, width=0.6)
        axes.text(place, value, shown(value), ha="center", va="bottom", fontsize=8)
    axes.set_xticks(range(len(bars)), [label for label, *_ in bars])
    axes.set_ylabel(share_label(result.metric))
    if result.ceiling is not None:
        axes.axhline(result.ceiling, color=INK, ls="--", lw=1, label=f"epsilon {result.epsilon} allows")


def draw_curve(axes: Any, result: AttackResult) -> None:
    """Draw members found against strangers taken for members, on logarithmic axes: their beginning matters."""
    curve = result.curve
    if curve is None:
        raise TypeError(f"{result.attack} gives no scores, so there is no curve")
    least = 1 / max(curve.strangers, 2)
    axes.plot(
        np.maximum(curve.fpr, least / 2),
        np.maximum(curve.tpr, least / 2),
        color=COLOURS[result.defence],
        lw=1.5,
        label=f"{shield_words(result)} (AUC {curve.auc:.2f})",
    )
    axes.set(xscale="log", yscale="log", xlim=(least, 1), ylim=(least, 1.05))
    axes.set(xlabel="share of non-members taken for members", ylabel="share of members found")
    plain_numbers(axes.xaxis, axes.yaxis)


def draw_limits(axes: Any, result: AttackResult) -> None:
    """Draw the line of guessing and, if an epsilon was promised, the line that it allows."""
    fpr = np.geomspace(1e-5, 1, 200)
    axes.plot(fpr, fpr, color=GREY, ls=":", lw=1, label="guessing")
    if result.epsilon is not None:
        most = rise(float(result.epsilon))
        allowed = np.minimum(most * fpr + result.delta, 1 - (1 - fpr - result.delta) / most)
        axes.plot(fpr, allowed, color=INK, ls="--", lw=1, label=f"epsilon {result.epsilon} allows")


def draw_exposure(axes: Any, result: AttackResult) -> None:
    """Draw success by tenths of rarity, with intervals."""
    if result.exposure is None:
        raise TypeError(f"{result.attack} does not tell who is most exposed")
    shares = result.exposure.deciles
    places, values = range(1, len(shares) + 1), np.array([share.value for share in shares])
    ends = np.array([share.interval() for share in shares])
    axes.bar(places, values, color=COLOURS[result.defence], alpha=0.85)
    axes.errorbar(places, values, yerr=np.abs(ends.T - values), fmt="none", ecolor=INK, lw=0.8)
    label = textwrap.fill(f"tenths of people by {result.exposure.by}, rarest last", 40)
    axes.set(xlabel=label, ylabel="share hit (95 % interval)", ylim=(0, 1.05))
    axes.set_xticks(list(places))
