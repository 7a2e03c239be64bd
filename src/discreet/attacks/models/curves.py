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
    from discreet.attacks.drawing import COLOURS, INK, draw_curve, draw_limits, panels  # noqa: PLC0415 - an extra

    if not results or any(result.curve is None or result.exposure is None for result in results):
        raise ValueError("results: give at least one result, of attacks that give scores and tell who is exposed")
    figure, (left, right) = panels(2)
    for result in results:
        draw_curve(left, result)
        shares = [share.value for share in result.exposure.deciles] if result.exposure is not None else []
        right.plot(range(1, len(shares) + 1), shares, "o-", color=COLOURS[result.defence], lw=1.2, ms=3)
    draw_limits(left, results[-1])
    by = results[0].exposure.by if results[0].exposure is not None else ""
    right.set(xlabel=f"tenths of people by {by}", ylabel="members found at 1% of strangers", ylim=(-0.03, 1.05))
    right.set_xticks(range(1, 11))
    figure.suptitle(results[0].attack.replace("_", " "), fontsize=10, color=INK)
    return figure
