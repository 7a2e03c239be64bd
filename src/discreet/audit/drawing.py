"""Pictures of audits. matplotlib is loaded only when one is drawn."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from discreet.audit.result import AuditResult, Seen

_HERE, _THERE, _EVENT, _INK, _REFUTED = "#3b6ea8", "#d9822b", "#efe3c8", "#333333", "#c0392b"
_BARS = 60


def figure_of(result: "AuditResult") -> Any:
    """Draw the telling number on both data sets, with the event, and the claim beside what was proved."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - half a second, and an extra
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'discreet[attacks]'") from None
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    if result.seen is None:
        _draw_counts(left, result)
    else:
        _draw_laws(left, result.seen)
    _draw_claim(right, result)
    return figure


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
    axes.axvspan(*ends[seen.relation], color=_EVENT, lw=0, zorder=0, label="the telling event")
    axes.set(xlabel=seen.name, ylabel="share of the runs", xlim=(low, high))
    axes.legend(frameon=False, fontsize=8)


def _edges(values: np.ndarray) -> np.ndarray:
    low, high = np.quantile(values, [0.002, 0.998])
    if _are_whole(values) and high - low <= _BARS:
        return np.arange(math.floor(low), math.ceil(high) + 2) - 0.5
    if high <= low:
        return np.array([low - 1.0, low + 1.0])
    return np.linspace(low, high, _BARS + 1)


def _are_whole(values: np.ndarray) -> bool:
    return bool((values == np.rint(values)).all())


def _draw_counts(axes: Any, result: "AuditResult") -> None:
    shares = result.counts or ()
    for place, (share, colour) in enumerate(zip(shares, (_HERE, _THERE), strict=False)):
        low, high = share.interval()
        axes.bar(place, share.value, color=colour, width=0.6)
        axes.errorbar(place, share.value, [[share.value - low], [high - share.value]], ecolor=_INK, capsize=3)
    axes.set_xticks(range(len(shares)), ["on D", "on D2"] if len(shares) == 2 else ["right guesses"][: len(shares)])
    axes.set(ylabel="share of the runs", title=f"{result.event:.60}")
    axes.title.set_fontsize(8)


def _draw_claim(axes: Any, result: "AuditResult") -> None:
    """Draw the claim and what was proved as bars on one scale, infinity as an arrow."""
    colour = _HERE if result.holds else _REFUTED
    bars = [("proved\nat least", result.epsilon_low, colour)]
    if result.claim is not None:
        bars.insert(0, ("claimed", float(result.claim), _INK))
    top = 1.25 * max([value for _, value, _ in bars if math.isfinite(value)] + [0.1])
    for place, (_, value, fill) in enumerate(bars):
        height = min(value, top)
        axes.barh(place, height, color=fill, height=0.5)
        axes.text(height, place, f" {value:.3g}" if math.isfinite(value) else " ∞", va="center", fontsize=9)
    axes.set_yticks(range(len(bars)), [name for name, *_ in bars])
    axes.set(xlim=(0, 1.15 * top), ylim=(len(bars) - 0.4, -0.6), xlabel="epsilon")
    axes.set_title(f"the claim is {result.verdict}" if result.claim is not None else result.verdict, fontsize=10)
