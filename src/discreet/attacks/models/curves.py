"""Curves of several results in one picture: who is found while how many strangers are accused."""

from collections.abc import Sequence
from typing import Any

from discreet.attacks.result import AttackResult


def curves(results: Sequence[AttackResult]) -> Any:
    """Draw the curves of results on the left, with what the last one's epsilon allows, and who is exposed on the right.

    >>> from discreet import attacks
    >>> from discreet.attacks.models.people import purchases
    >>> result = attacks.shadow(purchases(0, people=200), targets=1, shadows=2, random_state=0)
    >>> len(curves([result]).axes)
    2
    """
    from discreet.attacks.drawing import COLOURS, draw_curve, draw_limits, shield_words  # noqa: PLC0415 - an extra
    from discreet.figures import entitle, explain, panels, style  # noqa: PLC0415

    if not results or any(result.curve is None or result.exposure is None for result in results):
        raise ValueError("results: give at least one result, of attacks that give scores and tell who is exposed")
    figure, (left, right) = panels(2)
    with style():
        for result in results:
            draw_curve(left, result)
            shares = [share.value for share in result.exposure.deciles] if result.exposure is not None else []
            right.plot(range(1, len(shares) + 1), shares, "o-", color=COLOURS[result.defence], ms=3)
        draw_limits(left, results[-1])
        by = results[0].exposure.by if results[0].exposure is not None else ""
        right.set(xlabel=f"tenths of people by {by}", ylabel="found at 1 % of non-members", ylim=(-0.03, 1.05))
        right.set_xticks(range(1, 11))
        explain(figure, [left], columns=3)
        areas = [f"{result.success:.2f} against {shield_words(result)}" for result in results]
        entitle(figure, f"{results[0].attack.capitalize().replace('_', ' ')}: AUC {', '.join(areas)}")
    return figure
