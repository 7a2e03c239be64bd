"""The picture of recovered images: a row for each defence, beside what they are to look like."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.figures import entitle, panels, style


@dataclass(frozen=True)
class Mosaic:
    """Named rows of square images, which an attack's picture shows one above the other.

    >>> Mosaic({"recovered": np.zeros((3, 4)), "real": np.ones((3, 4))}).tiles().shape
    (8, 12)
    """

    rows: Mapping[str, np.ndarray]

    def __call__(self, axes: Any) -> None:
        """Draw the rows."""
        tiles = self.tiles()
        axes.imshow(tiles, cmap="gray_r", vmin=0, vmax=1)
        high = len(tiles) / len(self.rows)
        middles = high * np.arange(len(self.rows)) + (high - 1) / 2
        axes.set_yticks(middles, list(self.rows))
        axes.set_xticks([])
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)

    def tiles(self) -> np.ndarray:
        """Return all images in one, with gaps between them."""
        return np.concatenate([_strip(images) for images in self.rows.values()])


def stacked(results: Sequence[Any]) -> Mosaic:
    """Return what there was to recover, above what the same attack recovered against several defences."""
    first = results[0].draw.rows
    real = list(first)[-1]
    recovered = {str(result.shield): next(iter(result.draw.rows.values())) for result in results}
    return Mosaic({real: first[real], **recovered})


def mosaics(found: Mapping[str, Sequence[Any]]) -> Any:
    """Draw what one attack recovered of several kinds of classes, one panel for each kind by its title."""
    figure, axes = panels(1, len(found), height=2.7)
    with style():
        for each, (title, results) in zip(axes, found.items(), strict=True):
            stacked(results)(each)
            each.set_title(title)
        entitle(figure, "Images recovered from a classifier: privacy hides the look of a person, not that of a class")
    return figure


def _strip(images: np.ndarray) -> np.ndarray:
    side = int(np.sqrt(images.shape[1]))
    framed = np.pad(images.reshape(-1, side, side), ((0, 0), (1, 1), (1, 1)), constant_values=np.nan)
    return np.asarray(framed.transpose(1, 0, 2).reshape(side + 2, -1))
