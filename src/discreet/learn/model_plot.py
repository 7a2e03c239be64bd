"""Plot a fitted mixture, clusters of two columns or the effects of features; matplotlib is imported on demand."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from discreet.learn.mixture.density import to_full_covariances
from discreet.plotting import BLUE, GREY, INK, ORANGE, RED, panels, save_figure, style

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


_ELLIPSE_DEVIATIONS = (1, 2)  # standard deviations; the inner ellipse holds 39 % of a component, the outer 86 %


def draw(model: Any, path: str | Path | None = None, *, axes: Any = None) -> Any:
    """Draw a fitted model, save the figure if a path is given, and return the axes.

    A mixture and clusters need two columns. Of an explainable boosting model, every effect has axes of its own, in a
    list. The plot shows released parameters only, no data.

    >>> import numpy as np, discreet as dc
    >>> points = np.random.default_rng(0).normal(0, 1, (1000, 2))
    >>> mixture = dc.learn.GaussianMixture(1, epsilon=1, delta=1e-6, bounds=(-5, 5)).fit(points)
    >>> len(draw(mixture).patches)
    2
    """
    if hasattr(model, "effects_"):
        drawn = draw_effects(model)
        if path is not None:
            save_figure(drawn[0].figure, path)
        return drawn
    centres = getattr(model, "means_", getattr(model, "cluster_centers_", None))
    if centres is None or np.ndim(centres) != 2 or np.shape(centres)[1] != 2:
        raise TypeError("only fitted mixtures or clusters of two columns, and explainable boosting, can be drawn")
    with style():
        axes = _new_axes(model) if axes is None else axes
    weights = getattr(model, "weights_", None)
    if weights is None:
        counts = np.maximum(getattr(model, "counts_", np.ones(len(centres))), 0)
        weights = counts / max(counts.sum(), 1)
    if hasattr(model, "covariances_"):
        matrices = to_full_covariances(model.covariances_, model.covariance_type, *centres.shape)
        for centre, matrix, weight in zip(centres, matrices, weights, strict=True):
            _add_ellipses(axes, centre, matrix, float(weight))
    axes.scatter(*centres.T, s=4 + 120 * np.asarray(weights), color=RED, edgecolors="white", linewidths=0.6, zorder=3)
    if path is not None:
        save_figure(axes.figure, path)
    return axes


def _new_axes(model: Any) -> Any:
    _, (axes,) = panels(height=4.5)
    names = getattr(model, "feature_names_in_", ("first column", "second column"))
    axes.set_xlabel(str(names[0]), parse_math=False)
    axes.set_ylabel(str(names[1]), parse_math=False)
    axes.set_title(f"{type(model).__name__}: ellipses at 1 and 2 standard deviations, dot size by weight")
    return axes


def _add_ellipses(axes: Any, centre: np.ndarray, matrix: np.ndarray, weight: float) -> None:
    from matplotlib.patches import Ellipse  # noqa: PLC0415

    values, vectors = np.linalg.eigh(matrix)
    angle = float(np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1])))
    for deviations in _ELLIPSE_DEVIATIONS:
        width, height = 2 * deviations * np.sqrt(values[::-1])
        style = {"facecolor": ORANGE, "edgecolor": RED, "alpha": 0.04 + 0.4 * weight**0.5, "lw": 1}
        axes.add_patch(Ellipse((centre[0], centre[1]), width, height, angle=angle, **style))
