"""Figures of attacks on models: members beside non-members, maps, and recovered images."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.attacks.data.city import City
from discreet.attacks.evidence import EventEvidence
from discreet.attacks.models.city_mixtures import MixtureParameters
from discreet.plotting import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    RED,
    add_legend,
    panels,
    set_epsilon_ticks,
    set_title,
    style,
)

if TYPE_CHECKING:
    from discreet.attacks.models.hidden_rows import HiddenRowsStudy

_BAR_WIDTH = 0.38


def draw_member_rates(axes: Any, *, evidence_by_defence: Mapping[str, EventEvidence], guessing: float) -> None:
    """Draw bars for members and non-members under each defence, with intervals, and the line of guessing."""
    places = np.arange(len(evidence_by_defence))
    for shift, side, colour, label in (
        (-_BAR_WIDTH / 2, "members", RED, "members"),
        (_BAR_WIDTH / 2, "non_members", GREY, "non-members"),
    ):
        shares = [getattr(evidence, side) for evidence in evidence_by_defence.values()]
        values = np.array([share.value for share in shares])
        ends = np.array([share.interval() for share in shares])
        axes.bar(places + shift, values, _BAR_WIDTH * 0.95, color=colour, label=label)
        axes.errorbar(places + shift, values, yerr=np.abs(ends.T - values), fmt="none", ecolor=INK, lw=0.8)
        for place, value in zip(places + shift, values, strict=True):
            axes.text(place, value + 0.02, f"{value:.2f}", ha="center", va="bottom", fontsize=7)
    axes.axhline(guessing, color=INK, ls=":", lw=1, label="guessing")
    axes.set(ylim=(0, 1.1), ylabel="success rate (95 % interval)")
    axes.set_xticks(places, [name.replace(", epsilon", "\nepsilon") for name in evidence_by_defence], fontsize=7)


LOCATED_KEY = "located"  # the key in a result's details: the share of members who were located
_CROWD_COLOUR = "#b8bdc6"
_MAX_CROWD_SHOWN = 400  # keeps the figure small


def draw_city_map(
    axes: Any, *, city: City, mixture: MixtureParameters, is_member: np.ndarray, is_located: np.ndarray
) -> None:
    """Draw the crowd, the released components as ellipses of one standard deviation, and the lone people."""
    from matplotlib.patches import Ellipse  # noqa: PLC0415 - an extra

    some = city.crowd[:: 1 + len(city.crowd) // _MAX_CROWD_SHOWN]
    axes.scatter(*some.T, s=2, color=_CROWD_COLOUR, lw=0, label="the crowd")
    for mean, covariance in zip(mixture.means, mixture.covariances, strict=True):
        sizes, turns = np.linalg.eigh(covariance)
        angle = float(np.degrees(np.arctan2(turns[1, 1], turns[0, 1])))
        widths = 2 * np.sqrt(np.maximum(sizes[::-1], 0))
        axes.add_patch(Ellipse(mean, *widths, angle=angle, fill=False, ec=BLUE, lw=0.8, alpha=0.7))
    axes.scatter(*mixture.means.T, marker="+", s=22, color=BLUE, lw=0.9, label="released means")
    not_located, located_members = is_member & ~is_located, is_member & is_located
    axes.scatter(*city.loners[~is_member].T, s=22, fc="none", ec=GREY, lw=0.8, label="lone, not in the data")
    axes.scatter(*city.loners[not_located].T, s=22, color=INK, lw=0, label="lone, in the data")
    axes.scatter(*city.loners[located_members].T, s=34, fc="none", ec=RED, lw=1.6, label="lone, located")
    ends = (-0.03 * city.side, 1.03 * city.side)
    axes.set(xlim=ends, ylim=ends, aspect="equal", xlabel="km", ylabel="km")


@dataclass(frozen=True)
class ImageMosaic:
    """Labelled rows of square images, drawn one above the other.

    >>> ImageMosaic({"recovered": np.zeros((3, 4)), "real": np.ones((3, 4))}).tiled_image().shape
    (8, 12)
    """

    rows: Mapping[str, np.ndarray]

    def __call__(self, axes: Any) -> None:
        """Draw the rows."""
        tiles = self.tiled_image()
        axes.imshow(tiles, cmap="gray_r", vmin=0, vmax=1)
        row_height = len(tiles) / len(self.rows)
        middles = row_height * np.arange(len(self.rows)) + (row_height - 1) / 2
        axes.set_yticks(middles, list(self.rows))
        axes.set_xticks([])
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)

    def tiled_image(self) -> np.ndarray:
        """Return one image that contains all images, with gaps between them."""
        return np.concatenate([_image_strip(images) for images in self.rows.values()])


def _image_strip(images: np.ndarray) -> np.ndarray:
    side = int(np.sqrt(images.shape[1]))
    framed = np.pad(images.reshape(-1, side, side), ((0, 0), (1, 1), (1, 1)), constant_values=np.nan)
    return np.asarray(framed.transpose(1, 0, 2).reshape(side + 2, -1))


def hidden_rows_figure(study: "HiddenRowsStudy") -> Any:
    """Draw the accuracy of mixtures against epsilon, and how often the learner recognises a person's row."""
    from discreet.attacks.models.hidden_rows import AWARE, CURATOR, GAUSSIAN, LAPLACE, PLAIN, PRIVATE  # noqa: PLC0415

    figure, (left, right) = panels(2)
    ways = [
        (CURATOR, PRIVATE, BLUE, "-"),
        (LAPLACE, AWARE, RED, "-"),
        (LAPLACE, PLAIN, RED, ":"),
        (GAUSSIAN, AWARE, ORANGE, "-"),
        (GAUSSIAN, PLAIN, ORANGE, ":"),
    ]
    with style():
        left.axhline(study.exact_score, color=INK, ls="--", lw=1, label="non-private mixture")
        for trusted, method, colour, line in ways:
            points = study.of(trusted, method)
            epsilons = [each.epsilon for each in points]
            scores, label = [each.score for each in points], f"{trusted}, {method}"
            left.plot(epsilons, scores, "o", ls=line, color=colour, label=label)
            if method != PLAIN:  # the learner sees the same rows
                shares = np.array([each.learner.success for each in points])
                ends = np.array([each.learner.interval() for each in points])
                right.errorbar(epsilons, shares, np.abs(ends.T - shares), fmt="o-", color=colour)
        curator = study.of(CURATOR, PRIVATE)
        epsilons = [each.epsilon for each in curator]
        right.plot(epsilons, [each.ceiling for each in curator], "--", color=GREY, lw=1, label="allowed by epsilon")
        readers = [each.reader.success for each in curator]
        right.plot(epsilons, readers, "s:", color=BLUE, label="a reader of the curator's mixture")
        for axes in (left, right):
            set_epsilon_ticks(axes, epsilons)
        left.set(ylabel="log-likelihood of a new row")
        left.set_title("How good the mixture is")
        right.set(ylabel="rows recognised among two\n(95 % interval)", ylim=(0.45, 1.03))
        right.set_title("How well the learner recognises a row")
        add_legend(figure, [left, right], columns=2)
        set_title(figure, _hidden_rows_headline(study))
    return figure


def _hidden_rows_headline(study: "HiddenRowsStudy") -> str:
    from discreet.attacks.models.hidden_rows import AWARE, CURATOR, LAPLACE, PRIVATE  # noqa: PLC0415

    curator, home = study.of(CURATOR, PRIVATE)[-1], study.of(LAPLACE, AWARE)[-1]
    return (
        f"Hiding rows from the learner costs accuracy: at epsilon {home.epsilon:g}, Laplace noise at home scores "
        f"{study.exact_score - home.score:.2f} below a non-private mixture, a trusted curator "
        f"{max(study.exact_score - curator.score, 0):.2f}"
    )
