"""Plots of audit results. matplotlib is imported only when one is drawn."""

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.plotting import BLUE, INK, ORANGE, RED, add_legend, panels, set_title, style

if TYPE_CHECKING:
    from discreet.audit.result import AuditResult, CanaryGuesses, FeatureSamples

_D_COLOUR, _D2_COLOUR, _EVENT_COLOUR, _ALLOWED_COLOUR = BLUE, ORANGE, "#e8e8e8", "#b9c4cf"
_MAX_BARS = 60
_PROBABILITY_KEYS = "probability on D", "probability on D2"  # in the details of exact audits


def plot_audit(result: "AuditResult") -> Any:
    """Draw the outcomes on both data sets, or the guesses, and the claim beside the lower bound."""
    draw = _left_panel(result)
    layout: dict[str, Any] = {"width_ratios": (3, 2)} if draw else {}
    figure, axes = panels(2 if draw else 1, **layout)
    with style():
        if draw:
            draw(axes[0])
        _draw_claim(axes[-1], result)
        add_legend(figure, axes[:-1])
        set_title(figure, _title(result))
    return figure


def _title(result: "AuditResult") -> str:
    low = "∞" if math.isinf(result.epsilon_low) else f"{result.epsilon_low:.3g}"
    if result.claim is None:
        return f"{result.verdict}: epsilon is at least {low}"
    return f"The claim of epsilon {float(result.claim):g} is {result.verdict}: the lower bound is {low}"


def _left_panel(result: "AuditResult") -> Any:
    """Return the function that draws the left panel, or None if there is nothing to draw but the claim."""
    from discreet.audit.result import CanaryGuesses  # noqa: PLC0415 - which imports this module to draw

    data = result.plot_data
    if isinstance(data, CanaryGuesses):
        return lambda axes: _draw_guesses(axes, data)
    if data is not None:
        return lambda axes: _draw_answers(axes, data) if data.relation == "yes" else _draw_histograms(axes, data)
    if result.counts is not None:
        proportions = result.counts
        intervals = [proportion.interval() for proportion in proportions]
        return lambda axes: _draw_proportions(
            axes, result.event, [proportion.value for proportion in proportions], intervals
        )
    if all(name in result.details for name in _PROBABILITY_KEYS):
        return lambda axes: _draw_proportions(
            axes, result.event, [result.details[name] for name in _PROBABILITY_KEYS], []
        )
    return None


def _draw_histograms(axes: Any, samples: "FeatureSamples") -> None:
    """Draw both histograms as steps, with the event shaded."""
    sides = [sample[np.isfinite(sample)] for sample in (samples.on_d, samples.on_d2)]
    edges = _bin_edges(np.concatenate([*sides, [samples.bound]]))
    low, high = edges[0], edges[-1]
    for values, size, colour, name in zip(
        sides, (samples.on_d.size, samples.on_d2.size), (_D_COLOUR, _D2_COLOUR), ("D", "D2"), strict=True
    ):
        counts = np.histogram(np.clip(values, low, high), edges)[0]
        axes.stairs(counts / size, edges, color=colour, lw=1.5, fill=False, label=f"on {name}")
    width = edges[1] - edges[0]
    half = width / 2 if _are_integers(np.concatenate(sides)) else 0.0
    ends = {
        ">=": (samples.bound - half, high),
        "<=": (low, samples.bound + half),
        "==": (samples.bound - width / 2, samples.bound + width / 2),
    }
    axes.axvspan(*ends[samples.relation], color=_EVENT_COLOUR, lw=0, zorder=0, label="distinguishing event")
    axes.set(xlabel=samples.name, ylabel="share of runs", xlim=(low, high))


def _bin_edges(values: np.ndarray) -> np.ndarray:
    low, high = np.quantile(values, [0.002, 0.998])
    if _are_integers(values) and high - low <= _MAX_BARS:
        return np.arange(math.floor(low), math.ceil(high) + 2) - 0.5
    if high <= low:
        return np.array([low - 1.0, low + 1.0])
    return np.linspace(low, high, _MAX_BARS + 1)


def _are_integers(values: np.ndarray) -> bool:
    return bool((values == np.rint(values)).all())


def _draw_answers(axes: Any, samples: "FeatureSamples") -> None:
    """Draw the shares of yes and no on both data sets."""
    for offset, values, colour, name in ((-0.2, samples.on_d, _D_COLOUR, "D"), (0.2, samples.on_d2, _D2_COLOUR, "D2")):
        shares = [float(np.mean(values == answer)) for answer in (1.0, 0.0)]
        axes.bar([offset, 1 + offset], shares, width=0.36, color=colour, label=f"on {name}")
    axes.set_xticks([0, 1], ["yes", "no"])
    axes.set(ylabel="share of runs", ylim=(0, 1.05))
    _set_title(axes, samples.name)


def _draw_proportions(
    axes: Any, event: str, proportions: Sequence[float], intervals: Sequence[tuple[float, float]]
) -> None:
    """Draw the observed proportions of the event with intervals, or its probabilities."""
    axes.bar([0, 1], proportions, color=[_D_COLOUR, _D2_COLOUR], width=0.6)
    for index, (low, high) in enumerate(intervals):
        lengths = [[proportions[index] - low], [high - proportions[index]]]
        axes.errorbar(index, proportions[index], lengths, ecolor=INK, capsize=3)
    axes.set_xticks([0, 1], ["on D", "on D2"])
    axes.set(ylabel="share of runs" if intervals else "probability")
    _set_title(axes, event)


def _draw_guesses(axes: Any, data: "CanaryGuesses") -> None:
    """Draw the number of correct guesses, and below it how many are allowed."""
    bars = [
        ("correct", data.correct, _D_COLOUR),
        *((f"allowed\n{name}", limit, _ALLOWED_COLOUR) for name, limit in data.allowed.items()),
    ]
    for index, (_, count, colour) in enumerate(bars):
        axes.barh(index, count, color=colour, height=0.5)
        axes.text(count, index, f" {count:,}", va="center", fontsize=9)
    axes.axvline(data.guesses / 2, color=INK, lw=1, ls=":")
    axes.text(data.guesses / 2, -0.45, " half", fontsize=8, color=INK)
    axes.set_yticks(range(len(bars)), [name for name, *_ in bars])
    axes.set(xlim=(0, 1.12 * data.guesses), ylim=(len(bars) - 0.4, -0.6), xlabel=f"of {data.guesses:,} guesses")


def _set_title(axes: Any, text: str) -> None:
    axes.set_title(textwrap.fill(textwrap.shorten(text, 110, placeholder="…"), 55), fontsize=8, parse_math=False)


def _draw_claim(axes: Any, result: "AuditResult") -> None:
    """Draw the claim and the lower bound as bars on one scale."""
    colour = _D_COLOUR if result.holds else RED
    bars = [("lower\nbound", result.epsilon_low, colour)]
    if result.claim is not None:
        bars.insert(0, ("claimed", float(result.claim), INK))
    top = 1.25 * max([value for _, value, _ in bars if math.isfinite(value)] + [0.1])
    for index, (_, value, fill) in enumerate(bars):
        height = min(value, top)
        axes.barh(index, height, color=fill, height=0.5)
        axes.text(height, index, f" {value:.3g}" if math.isfinite(value) else " ∞", va="center", fontsize=9)
    axes.set_yticks(range(len(bars)), [name for name, *_ in bars])
    axes.set(xlim=(0, 1.15 * top), ylim=(len(bars) - 0.4, -0.6), xlabel="epsilon")
