"""The trade-off of one attack, drawn: what it reaches and the epsilon it implies, against the epsilon promised."""

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.attacks.drawing import COLOURS, GREY, INK, SAFE, panels
from discreet.attacks.result import AttackResult

if TYPE_CHECKING:
    from discreet.attacks.comparing import Comparison

_WORDS = {"nothing": "no defence", "easy": "the easy fix"}
_WIDTHS = {"nothing": 4.0}  # so that it is seen below the easy fix, where that changes nothing


def figure_of(comparison: "Comparison") -> Any:
    """Draw success against epsilon on the left, and implied against promised epsilon on the right."""
    figure, (left, right) = panels(2)
    _draw_success(left, comparison)
    _draw_implied(right, comparison)
    figure.suptitle(comparison.results[0].attack.replace("_", " "), fontsize=10, color=INK)
    return figure


def _draw_success(axes: Any, comparison: "Comparison") -> None:
    private = _private(comparison)
    prices = [float(result.epsilon) for result in private]
    for result in comparison.results:
        if result.epsilon is None:
            label = _WORDS.get(result.defence, result.defence)
            axes.axhline(result.success, color=COLOURS[result.defence], lw=_width(result), label=label)
    reached = np.array([result.success for result in private])
    ends = np.array([result.evidence.interval() for result in private])
    axes.errorbar(prices, reached, np.abs(ends.T - reached), fmt="o-", color=SAFE, lw=1.5, label="the curator")
    beside = private[0].evidence.beside
    for values, style, colour, label in (
        ([result.ceiling for result in private], "--", INK, "epsilon allows"),
        ([result.evidence.baseline for result in private], ":", GREY, beside),
    ):
        if len(private) == 1:  # a line of one point is not seen
            axes.axhline(values[0], color=colour, ls=style, lw=1.2, label=label)
        else:
            axes.plot(prices, values, style, color=colour, lw=1.2, label=label)
    axes.set(xscale="log", xlabel="epsilon", ylim=(-0.03, 1.05))
    axes.set_ylabel(comparison.results[0].metric, fontsize=8)
    _ticks(axes, prices)
    _explain(axes)


def _draw_implied(axes: Any, comparison: "Comparison") -> None:
    private = _private(comparison)
    prices = np.array([float(result.epsilon) for result in private])
    lows = [result.implied.low for result in comparison.results]
    floor, top = prices.min() / 10, 3 * max(prices.max(), *lows)
    implied = np.array([(each.low, each.seen, each.high) for each in (result.implied for result in private)])
    low, seen, high = np.clip(implied, floor, top).T
    axes.vlines(prices, low, high, color=SAFE, lw=3, alpha=0.5, label="implied by the attack, 95 %")
    axes.plot(prices, seen, "o", color=SAFE, ms=4)
    line = np.array([prices.min() / 1.5, prices.max() * 1.5])
    axes.plot(line, line, "--", color=INK, lw=1, label="promised")
    for result in comparison.results:
        if result.epsilon is None:
            word = _WORDS.get(result.defence, result.defence)
            least = max(result.implied.low, floor)
            axes.axhline(least, color=COLOURS[result.defence], lw=_width(result), label=f"{word}, at least")
    axes.set(xscale="log", yscale="log", xlabel="epsilon promised", ylabel="epsilon implied", ylim=(floor * 0.8, top))
    _ticks(axes, list(prices))
    _explain(axes)


def _explain(axes: Any) -> None:
    """Put the legend below the axes, where it hides nothing."""
    axes.legend(frameon=False, fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=3)


def _width(result: AttackResult) -> float:
    return _WIDTHS.get(result.defence, 1.5)


def _private(comparison: "Comparison") -> list[Any]:
    return sorted((result for result in comparison.results if result.epsilon is not None), key=lambda r: r.epsilon)


def _ticks(axes: Any, prices: list[float]) -> None:
    axes.set_xticks(prices, [f"{price:g}" for price in prices])
    axes.set_xticks([], minor=True)
