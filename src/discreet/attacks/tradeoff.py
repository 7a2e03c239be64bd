"""The trade-off of one attack, drawn: what it reaches and the epsilon it implies, against the epsilon promised."""

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.attacks.drawing import COLOURS, GREY, INK, SAFE, panels

if TYPE_CHECKING:
    from discreet.attacks.comparing import Comparison

_WORDS = {"nothing": "no defence", "easy": "the easy fix"}


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
            axes.axhline(result.success, color=COLOURS[result.defence], lw=1.5, label=label)
    axes.plot(prices, [result.success for result in private], "o-", color=SAFE, lw=1.5, label="the curator")
    axes.plot(prices, [result.ceiling for result in private], "--", color=INK, lw=1, label="epsilon allows")
    axes.plot(prices, [result.baseline for result in private], ":", color=GREY, lw=1.2, label="guessing")
    axes.set(xscale="log", xlabel="epsilon", ylim=(-0.03, 1.05))
    axes.set_ylabel(comparison.results[0].metric, fontsize=8)
    _ticks(axes, prices)
    axes.legend(frameon=False, fontsize=7)


def _draw_implied(axes: Any, comparison: "Comparison") -> None:
    private = _private(comparison)
    prices = np.array([float(result.epsilon) for result in private])
    implied = [result.implied for result in private]
    top = max(prices.max() * 1.3, *(each.low for each in implied)) + 0.1
    low = np.array([each.low for each in implied])
    high = np.minimum([each.high for each in implied], top)
    axes.vlines(prices, low, high, color=SAFE, lw=3, alpha=0.5, label="implied by the attack, 95 %")
    axes.plot(prices, [min(each.seen, top) for each in implied], "o", color=SAFE, ms=4)
    line = np.geomspace(prices.min() / 1.5, prices.max() * 1.5, 50)
    axes.plot(line, line, "--", color=INK, lw=1, label="promised")
    for result in comparison.results:
        if result.epsilon is None:
            word = _WORDS.get(result.defence, result.defence)
            axes.axhline(min(result.implied.low, top), color=COLOURS[result.defence], lw=1.5, label=f"{word}, at least")
    axes.set(xscale="log", xlabel="epsilon promised", ylabel="epsilon implied", ylim=(-0.03 * top, top * 1.05))
    _ticks(axes, list(prices))
    axes.legend(frameon=False, fontsize=7, loc="upper left")


def _private(comparison: "Comparison") -> list[Any]:
    return sorted((result for result in comparison.results if result.epsilon is not None), key=lambda r: r.epsilon)


def _ticks(axes: Any, prices: list[float]) -> None:
    axes.set_xticks(prices, [f"{price:g}" for price in prices])
    axes.set_xticks([], minor=True)
