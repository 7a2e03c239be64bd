"""Pictures of audits. matplotlib is loaded only when one is drawn."""

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.figures import BLUE, INK, ORANGE, RED, entitle, explain, panels, style

if TYPE_CHECKING:
    from discreet.audit.result import AuditResult, Guessed, Seen

_HERE, _THERE, _EVENT, _ALLOWED = BLUE, ORANGE, "#e8e8e8", "#b9c4cf"
_BARS = 60
_CHANCES = "chance on D", "chance on D2"  # as exact laws have them in their details


def figure_of(result: "AuditResult") -> Any:
    """Draw what was seen, on both data sets or of guesses, and the claim beside what was proved."""
    draw = _drawn(result)
    layout: dict[str, Any] = {"width_ratios": (3, 2)} if draw else {}
    figure, axes = panels(2 if draw else 1, **layout)
    with style():
        if draw:
            draw(axes[0])
        _draw_claim(axes[-1], result)
        explain(figure, axes[:-1])
        entitle(figure, _finding(result))
    return figure


def _finding(result: "AuditResult") -> str:
    low = "∞" if math.isinf(result.epsilon_low) else f"{result.epsilon_low:.3g}"
    if result.claim is None:
        return f"{result.verdict}: epsilon is at least {low}"
    return f"The claim of epsilon {float(result.claim):g} is {result.verdict}: at least {low} was measured"


def _drawn(result: "AuditResult") -> Any:
    """Return what draws the left panel; None if there is nothing but the claim."""
    from discreet.audit.result import Guessed  # noqa: PLC0415 - which imports this module to draw

    seen = result.seen
    if isinstance(seen, Guessed):
        return lambda axes: _draw_guesses(axes, seen)
    if seen is not None:
        return lambda axes: _draw_answers(axes, seen) if seen.relation == "yes" else _draw_laws(axes, seen)
    if result.counts is not None:
        shares = result.counts
        spans = [share.interval() for share in shares]
        return lambda axes: _draw_shares(axes, result.event, [share.value for share in shares], spans)
    if all(name in result.details for name in _CHANCES):
        return lambda axes: _draw_shares(axes, result.event, [result.details[name] for name in _CHANCES], [])
    return None


def _draw_laws(axes: Any, seen: "Seen") -> None:
    """Draw both histograms as steps; the event is a shaded stretch."""
    sides = [each[np.isfinite(each)] for each in (seen.here, seen.there)]
    edges = _edges(np.concatenate([*sides, [seen.bound]]))
    low, high = edges[0], edges[-1]
    for values, size, colour, name in zip(
        sides, (seen.here.size, seen.there.size), (_HERE, _THERE), ("D", "D2"), strict=True
    ):
        counts = np.histogram(np.clip(values, low, high), edges)[0]
        axes.stairs(counts / size, edges, color=colour, lw=1.5, fill=False, label=f"on {name}")
    width = edges[1] - edges[0]
    half = width / 2 if _are_whole(np.concatenate(sides)) else 0.0
    ends = {
        ">=": (seen.bound - half, high),
        "<=": (low, seen.bound + half),
        "==": (seen.bound - width / 2, seen.bound + width / 2),
    }
    axes.axvspan(*ends[seen.relation], color=_EVENT, lw=0, zorder=0, label="the distinguishing event")
    axes.set(xlabel=seen.name, ylabel="share of the runs", xlim=(low, high))


def _edges(values: np.ndarray) -> np.ndarray:
    low, high = np.quantile(values, [0.002, 0.998])
    if _are_whole(values) and high - low <= _BARS:
        return np.arange(math.floor(low), math.ceil(high) + 2) - 0.5
    if high <= low:
        return np.array([low - 1.0, low + 1.0])
    return np.linspace(low, high, _BARS + 1)


def _are_whole(values: np.ndarray) -> bool:
    return bool((values == np.rint(values)).all())


def _draw_answers(axes: Any, seen: "Seen") -> None:
    """Draw how often the answer was yes and no, on either data set."""
    for offset, values, colour, name in ((-0.2, seen.here, _HERE, "D"), (0.2, seen.there, _THERE, "D2")):
        shares = [float(np.mean(values == answer)) for answer in (1.0, 0.0)]
        axes.bar([offset, 1 + offset], shares, width=0.36, color=colour, label=f"on {name}")
    axes.set_xticks([0, 1], ["yes", "no"])
    axes.set(ylabel="share of the runs", ylim=(0, 1.05))
    _entitle(axes, seen.name)


def _draw_shares(axes: Any, event: str, shares: Sequence[float], spans: Sequence[tuple[float, float]]) -> None:
    """Draw how often the event was seen, with intervals, or how likely it is."""
    axes.bar([0, 1], shares, color=[_HERE, _THERE], width=0.6)
    for place, (low, high) in enumerate(spans):
        lengths = [[shares[place] - low], [high - shares[place]]]
        axes.errorbar(place, shares[place], lengths, ecolor=INK, capsize=3)
    axes.set_xticks([0, 1], ["on D", "on D2"])
    axes.set(ylabel="share of the runs" if spans else "probability")
    _entitle(axes, event)


def _draw_guesses(axes: Any, seen: "Guessed") -> None:
    """Draw how many guesses were right, and under it how many are allowed."""
    bars = [
        ("right", seen.right, _HERE),
        *((f"allowed\n{name}", most, _ALLOWED) for name, most in seen.allowed.items()),
    ]
    for place, (_, count, colour) in enumerate(bars):
        axes.barh(place, count, color=colour, height=0.5)
        axes.text(count, place, f" {count:,}", va="center", fontsize=9)
    axes.axvline(seen.guesses / 2, color=INK, lw=1, ls=":")
    axes.text(seen.guesses / 2, -0.45, " half", fontsize=8, color=INK)
    axes.set_yticks(range(len(bars)), [name for name, *_ in bars])
    axes.set(xlim=(0, 1.12 * seen.guesses), ylim=(len(bars) - 0.4, -0.6), xlabel=f"of {seen.guesses:,} guesses")


def _entitle(axes: Any, text: str) -> None:
    axes.set_title(textwrap.fill(textwrap.shorten(text, 110, placeholder="…"), 55), fontsize=8, parse_math=False)


def _draw_claim(axes: Any, result: "AuditResult") -> None:
    """Draw the claim and what was proved as bars on one scale, infinity as an arrow."""
    colour = _HERE if result.holds else RED
    bars = [("measured\nat least", result.epsilon_low, colour)]
    if result.claim is not None:
        bars.insert(0, ("claimed", float(result.claim), INK))
    top = 1.25 * max([value for _, value, _ in bars if math.isfinite(value)] + [0.1])
    for place, (_, value, fill) in enumerate(bars):
        height = min(value, top)
        axes.barh(place, height, color=fill, height=0.5)
        axes.text(height, place, f" {value:.3g}" if math.isfinite(value) else " ∞", va="center", fontsize=9)
    axes.set_yticks(range(len(bars)), [name for name, *_ in bars])
    axes.set(xlim=(0, 1.15 * top), ylim=(len(bars) - 0.4, -0.6), xlabel="epsilon")
