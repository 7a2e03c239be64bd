"""Pictures of attacks. matplotlib is loaded only when one is drawn."""

from typing import Any

import numpy as np

from discreet.attacks.implied import rise
from discreet.attacks.result import AttackResult, shown

HARM, FIX, SAFE, INK, GREY = "#c0392b", "#d9822b", "#3b6ea8", "#333333", "#8a8f98"
COLOURS = {"nothing": HARM, "easy": FIX, "curator": SAFE, "own": INK}


def panels(count: int) -> tuple[Any, list[Any]]:
    """Return a figure of our size with so many axes side by side, whose frames are open at the top and the right."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - half a second, and an extra
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'discreet[attacks]'") from None
    figure = Figure(figsize=(4.5 * count, 3.4), layout="constrained")
    axes = np.atleast_1d(figure.subplots(1, count)).tolist()
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes


def figure_of(result: AttackResult) -> Any:
    """Draw one result: its own picture, or its curve, or success beside guessing; and who is most exposed."""
    figure, axes = panels(1 if result.exposure is None else 2)
    if result.draw is not None:
        result.draw(axes[0])
    elif result.curve is not None:
        draw_curve(axes[0], result)
        draw_limits(axes[0], result)
    else:
        draw_success(axes[0], result)
    if result.exposure is not None:
        draw_exposure(axes[1], result)
    figure.suptitle(f"{result.attack} against {result.shield}", fontsize=10, color=INK)
    return figure


def draw_success(axes: Any, result: AttackResult) -> None:
    """Draw success, guessing, and what epsilon allows as bars."""
    bars = [("attack", result.success, COLOURS[result.defence]), ("guessing", result.baseline, GREY)]
    for place, (label, value, colour) in enumerate(bars):
        axes.bar(place, value, color=colour, width=0.6, label=label)
        axes.text(place, value, shown(value), ha="center", va="bottom", fontsize=8)
    axes.set_xticks(range(len(bars)), [label for label, *_ in bars])
    axes.set_ylabel(result.metric, fontsize=8)
    if result.ceiling is not None:
        axes.axhline(result.ceiling, color=INK, ls="--", lw=1)
        axes.text(
            len(bars) - 0.5, result.ceiling, f"epsilon {result.epsilon} allows", fontsize=7, ha="right", va="bottom"
        )


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
        label=f"{result.shield} (AUC {curve.auc:.2f})",
    )
    axes.set(xscale="log", yscale="log", xlim=(least, 1), ylim=(least, 1.05))
    axes.set(xlabel="strangers taken for members", ylabel="members found")
    axes.legend(frameon=False, fontsize=7, loc="lower right")


def draw_limits(axes: Any, result: AttackResult) -> None:
    """Draw the line of guessing and, if an epsilon was promised, the line that it allows."""
    fpr = np.geomspace(1e-5, 1, 200)
    axes.plot(fpr, fpr, color=GREY, ls=":", lw=1, label="guessing")
    if result.epsilon is not None:
        most = rise(float(result.epsilon))
        allowed = np.minimum(most * fpr + result.delta, 1 - (1 - fpr - result.delta) / most)
        axes.plot(fpr, allowed, color=INK, ls="--", lw=1, label=f"epsilon {result.epsilon} allows")
    axes.legend(frameon=False, fontsize=7, loc="lower right")


def draw_exposure(axes: Any, result: AttackResult) -> None:
    """Draw success by tenths of rarity, with intervals."""
    if result.exposure is None:
        raise TypeError(f"{result.attack} does not tell who is most exposed")
    shares = result.exposure.deciles
    places, values = range(1, len(shares) + 1), np.array([share.value for share in shares])
    ends = np.array([share.interval() for share in shares])
    axes.bar(places, values, color=COLOURS[result.defence], alpha=0.85)
    axes.errorbar(places, values, yerr=np.abs(ends.T - values), fmt="none", ecolor=INK, lw=0.8)
    axes.set(
        xlabel=f"tenths of people by {result.exposure.by}, rarest last", ylabel="hit by the attack", ylim=(0, 1.05)
    )
    axes.set_xticks(list(places))
