"""The people whom a model learns from: generated ones, and people who checked in at places."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from discreet.attacks.checking import file_in, generator
from discreet.attacks.models.inputs import codes, ends, matrix
from discreet.kernel.exact import whole

_LOCATIONS = "location30_mia.parquet"
_STRAY = 0.27  # the share of the products of its kind that a person buys or leaves differently, on average


@dataclass(frozen=True)
class Labelled:
    """People with their numbers and a class each; `bounds` are what is known about the numbers without the data.

    `X` has a row for each person: an array, or a table, whose columns' names are kept. `y` has their classes: whole
    numbers from 0, or texts, which get numbers in the order of `names`. There are as many as `classes` says, or as `y`
    has. Numbers are from 0 to 1 unless `bounds` say otherwise, for all columns or for each.

    >>> Labelled(np.eye(40), np.arange(40) % 2).classes
    2
    >>> people = Labelled({"age": [30, 40], "smokes": [0, 1]}, ["ill", "well"], bounds=([0, 0], [120, 1]))
    >>> people.columns, people.names, people.y.tolist()
    (('age', 'smokes'), ('ill', 'well'), [0, 1])
    """

    X: Any
    y: Any
    bounds: Any = (0, 1)
    classes: int = 0
    columns: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        (X, columns), (y, names) = matrix(self.X, "X"), codes(self.y, "y")
        if X.ndim != 2 or y.shape != X.shape[:1] or not X.size:
            raise ValueError("X must have a row for each person, and y a class for each row")
        if not np.isfinite(X).all():
            raise ValueError("X must have finite numbers only; fill in or leave out what is missing")
        known = columns or tuple(self.columns)
        _check_bounds(X, self.bounds, known)
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "y", y)
        object.__setattr__(self, "classes", max(whole(self.classes, "classes"), int(y.max()) + 1))
        object.__setattr__(self, "columns", known)
        object.__setattr__(self, "names", names or tuple(self.names))

    def __len__(self) -> int:
        return len(self.y)

    def some(self, chosen: np.ndarray) -> "Labelled":
        """Return the people at these places, or where this is true."""
        return replace(self, X=self.X[chosen], y=self.y[chosen])


def _check_bounds(X: np.ndarray, bounds: Any, columns: tuple[str, ...]) -> None:
    """Stop where numbers lie outside of their bounds: a private model would clip them, and learn something else."""
    low, high = ends(bounds, X.shape[1])
    outside = np.flatnonzero((np.clip(X, low, high) != X).any(axis=0))
    if outside.size:
        place = int(outside[0])
        name = repr(columns[place]) if columns else place
        raise ValueError(
            f"X, column {name}, has numbers outside of its bounds, {low[place]:g} to {high[place]:g}: say "
            "bounds=(low, high), what is known of the numbers without the data, or clip them"
        )


def purchases(random_state: int | None, *, people: int = 1000, stray: float = _STRAY) -> Labelled:
    """Return people who bought some of 60 products, of ten kinds of customers; some are far from their kind.

    >>> purchases(0).X.shape, purchases(0).classes
    ((1000, 60), 10)
    """
    rng = generator(random_state)
    kinds = rng.random((10, 60)) < 0.5
    y = rng.integers(10, size=people)
    own = 2 * stray * rng.beta(2, 2, people)  # outliers are what attacks live on
    bought = kinds[y] ^ (rng.random((people, 60)) < own[:, None])
    return Labelled(bought.astype(float), y, classes=10)


def locations(folder: Path) -> Labelled:
    """Return the people of the Location data of Shokri et al.: places visited, and one of 30 kinds of people."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - of the core, but slow to import

    table = pq.read_table(file_in(folder, _LOCATIONS))
    visited = np.stack(table["x"].to_numpy(zero_copy_only=False))
    return Labelled(visited.astype(float), table["label"].to_numpy().astype(np.int64) - 1)


def rarity(people: Labelled) -> np.ndarray:
    """Return how far each person is from the centre of their class: an overfitted model learns outliers by heart.

    >>> rarity(Labelled([[0.0], [0.0], [0.0], [4.0]], [0, 0, 1, 1], bounds=(0, 4))).round(2).tolist()
    [0.0, 0.0, 1.15, 1.15]
    """
    member = np.arange(people.classes)[:, None] == people.y
    centres = member @ people.X / np.maximum(member.sum(axis=1), 1)[:, None]
    width = people.X.std(axis=0)
    return np.asarray(np.linalg.norm((people.X - centres[people.y]) / np.where(width > 0, width, 1), axis=1))
