"""The trade-off of one attack, drawn: what it reaches and the epsilon it implies, against the epsilon promised."""

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.attacks.drawing import COLOURS, share_label, shield_words
from discreet.attacks.result import AttackResult, percent
from discreet.figures import BLUE, GREY, INK, entitle, epsilon_ticks, explain, panels, plain_numbers, style

if TYPE_CHECKING:
    from discreet.attacks.comparing import Comparison

_WIDTHS = {"nothing": 4.0}  # so that it is seen below the easy fix, where that changes nothing
_ALLOWED = "most that epsilon allows"
_CURATOR = "the curator (95 % interval)"


def figure_of(comparison: "Comparison") -> Any:
    """Draw success against epsilon on the left, and implied against promised epsilon on the right."""
    figure, axes = panels(2)
    private = sorted((each for each in comparison.results if each.epsilon is not None), key=_epsilon)
    exposed = [each for each in comparison.results if each.epsilon is None]
    with style():
        _draw_success(axes[0], exposed, private)
        _draw_implied(axes[1], exposed, private)
        explain(figure, axes, columns=3)
        entitle(figure, _finding(exposed, private))
    return figure


def _finding(exposed: list[AttackResult], private: list[AttackResult]) -> str:
    """Say what the attack reaches without a defence and with each, at the epsilon that is nearest to 1."""
    near = min(private, key=lambda result: abs(np.log(_epsilon(result))))
    reached = [f"{percent(each.success)} with {shield_words(each)}" for each in exposed]
    reached.append(f"{percent(near.success)} with {shield_words(near)}")
    beside = f"{near.evidence.beside} {percent(near.evidence.baseline)}"
    return f"{near.attack.capitalize().replace('_', ' ')} succeeds in {', '.join(reached)} ({beside})"


def _draw_success(axes: Any, exposed: list[AttackResult], private: list[AttackResult]) -> None:
    prices = [_epsilon(result) for result in private]
    for result in exposed:
        label = shield_words(result)
        axes.axhline(result.success, color=COLOURS[result.defence], lw=_width(result), label=label)
    reached = np.array([result.success for result in private])
    ends = np.array([result.evidence.interval() for result in private])
    axes.errorbar(prices, reached, np.abs(ends.T - reached), fmt="o-", color=BLUE, label=_CURATOR)
    for values, look, colour, label in (
        ([result.ceiling for result in private], "--", INK, _ALLOWED),
        ([result.evidence.baseline for result in private], ":", GREY, private[0].evidence.beside),
    ):
        if len(private) == 1:  # a line of one point is not seen
            axes.axhline(values[0], color=colour, ls=look, lw=1.2, label=label)
        else:
            axes.plot(prices, values, look, color=colour, lw=1.2, label=label)
    epsilon_ticks(axes, prices, "epsilon promised")
    axes.set(ylim=(-0.03, 1.05), ylabel=share_label(private[0].metric))


def _draw_implied(axes: Any, exposed: list[AttackResult], private: list[AttackResult]) -> None:
    prices = np.array([_epsilon(result) for result in private])
    lows = [result.implied.low for result in (*exposed, *private)]
    floor, top = prices.min() / 10, 3 * max(prices.max(), *lows)
    implied = np.array([(each.low, each.seen, each.high) for each in (result.implied for result in private)])
    low, seen, high = np.clip(implied, floor, top).T
    axes.errorbar(prices, seen, (seen - low, high - seen), fmt="o", color=BLUE, label=_CURATOR)
    line = np.array([prices.min() / 1.5, prices.max() * 1.5])
    axes.plot(line, line, "--", color=INK, lw=1.2, label=_ALLOWED)
    for result in exposed:
        least = max(result.implied.low, floor)
        label = shield_words(result)
        axes.axhline(least, color=COLOURS[result.defence], lw=_width(result), label=label)
    epsilon_ticks(axes, list(prices), "epsilon promised")
    axes.set(yscale="log", ylabel="epsilon implied by the attack", ylim=(floor * 0.8, top))
    plain_numbers(axes.yaxis)


def _width(result: AttackResult) -> float:
    return _WIDTHS.get(result.defence, 1.5)


def _epsilon(result: AttackResult) -> float:
    return float(result.epsilon or 0)
