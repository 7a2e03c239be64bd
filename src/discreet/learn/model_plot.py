"""Plot a fitted mixture, clusters of two columns or the effects of features; matplotlib is imported on demand."""

from pathlib import Path
from typing import Any

import numpy as np

from discreet.learn.boosting.effects_plot import draw_effects
from discreet.learn.mixture.density import to_full_covariances
from discreet.plotting import ORANGE, RED, panels, save_figure, style

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
