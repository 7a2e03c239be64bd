"""Plot the effects of an explainable boosting model: steps over a number's bins, or one bar per category."""

import math
from typing import Any

import numpy as np

from discreet.plotting import BLUE, GREY, INK, ORANGE, panels

_COLUMNS = 3
_HEIGHT = 2.1  # inches per row of panels
_MAX_LABELS = 12  # categories that are named; of more, those with the largest effects
_MAX_LABEL_LENGTH = 16
_MARGIN_LABEL = "shaded: 95 % margins, approximate, noise only"


def draw_effects(model: Any) -> list[Any]:
    """Draw the effect of every feature, the most important first, and return the axes."""
    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)])
    importance = [
        float(np.average(np.abs(values), weights=counts))
        for values, counts in zip(model.effects_, model.bin_counts_, strict=True)
    ]
    rows = math.ceil(len(names) / _COLUMNS)
    figure, axes = panels(_COLUMNS, rows, height=_HEIGHT + 0.4 / rows)
    order = np.argsort(importance)[::-1]
    for ax, j in zip(axes, order, strict=False):
        is_numeric = isinstance(model.bins_[j], np.ndarray)
        (_draw_steps if is_numeric else _draw_categories)(ax, model, j)
        ax.set_title(str(names[j]), parse_math=False)
    for ax in axes[len(names) :]:
        ax.set_visible(False)
    unit = "log-odds" if hasattr(model, "classes_") else "target"
    figure.suptitle(f"Effects on the {unit}, centred ({_MARGIN_LABEL})", color=INK, x=0.01, ha="left")
    return list(axes[: len(names)])


def _draw_steps(ax: Any, model: Any, j: int) -> None:
    ends = np.concatenate([[model.feature_bounds_[j][0]], model.bins_[j], [model.feature_bounds_[j][1]]])
    values, margins = model.effects_[j][1:], model.margins_[j][1:]
    ax.fill_between(
        ends,
        np.append(values - margins, (values - margins)[-1]),
        np.append(values + margins, (values + margins)[-1]),
        step="post",
        color=BLUE,
        alpha=0.2,
        lw=0,
    )
    ax.stairs(values, ends, color=BLUE, baseline=None)
    ax.axhline(0, color=GREY, lw=0.6)


def _draw_categories(ax: Any, model: Any, j: int) -> None:
    values, margins = model.effects_[j][1:], model.margins_[j][1:]
    shown = np.sort(np.argsort(-np.abs(values), kind="stable")[:_MAX_LABELS])
    places = np.arange(len(shown))
    ax.bar(places, values[shown], color=ORANGE, width=0.7)
    ax.bar(
        places, 2 * margins[shown], bottom=values[shown] - margins[shown], color=INK, alpha=0.15, width=0.7, linewidth=0
    )
    ax.axhline(0, color=GREY, lw=0.6)
    labels = [str(model.bins_[j][k])[:_MAX_LABEL_LENGTH] for k in shown]
    ax.set_xticks(places, labels, rotation=60 if max(map(len, labels)) > 3 else 0, ha="right", parse_math=False)
    ax.tick_params(axis="x", labelsize=6)
