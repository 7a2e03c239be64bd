"""The people whom a model learns from: generated ones, and people who checked in at places."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_LOCATIONS = "location30_mia.parquet"
_STRAY = 0.27  # the share of the products of its kind that a person buys or leaves differently, on average


@dataclass(frozen=True)
class Labelled:
    """People with their numbers and a class each; `bounds` are what is known about the numbers without the data.

    `X` has a row for each person, `y` their classes as whole numbers from 0; there are as many as `classes` says, or
    as `y` has.

    >>> Labelled(np.eye(40), np.arange(40) % 2).classes
    2
    """

    X: np.ndarray
    y: np.ndarray
    bounds: Any = (0, 1)
    classes: int = 0

    def __post_init__(self) -> None:
        X, y = np.asarray(self.X, float), np.asarray(self.y)
        if X.ndim != 2 or y.shape != X.shape[:1] or not y.size:
            raise ValueError("X must have a row for each person, and y a class for each row")
        if not np.isfinite(X).all():
            raise ValueError("X must have finite numbers only; fill in or leave out what is missing")
        if y.dtype.kind not in "iu" or y.min() < 0:
            raise ValueError("y must have the classes as whole numbers from 0")
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "y", y.astype(np.int64))
        object.__setattr__(self, "classes", max(self.classes, int(y.max()) + 1))

    def __len__(self) -> int:
        return len(self.y)

    def some(self, chosen: np.ndarray) -> "Labelled":
        """Return the people at these places, or where this is true."""
        return Labelled(self.X[chosen], self.y[chosen], self.bounds, self.classes)


def purchases(random_state: int | None, *, people: int = 1000, stray: float = _STRAY) -> Labelled:
    """Return people who bought some of 60 products, of ten kinds of customers; some are far from their kind.

    >>> purchases(0).X.shape, purchases(0).classes
    ((1000, 60), 10)
    """
    rng = np.random.default_rng(random_state)
    kinds = rng.random((10, 60)) < 0.5
    y = rng.integers(10, size=people)
    own = 2 * stray * rng.beta(2, 2, people)  # outliers are what attacks live on
    bought = kinds[y] ^ (rng.random((people, 60)) < own[:, None])
    return Labelled(bought.astype(float), y, classes=10)


def locations(folder: Path) -> Labelled:
    """Return the people of the Location data of Shokri et al.: places visited, and one of 30 kinds of people."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - of the core, but slow to import

    path = Path(folder) / _LOCATIONS
    if not path.exists():
        raise FileNotFoundError(f"{_LOCATIONS} is not in {folder}: name the folder that has it")
    table = pq.read_table(path)
    visited = np.stack(table["x"].to_numpy(zero_copy_only=False))
    return Labelled(visited.astype(float), table["label"].to_numpy().astype(np.int64) - 1)


def rarity(people: Labelled) -> np.ndarray:
    """Return how far each person is from the centre of their class: an overfitted model learns outliers by heart.

    >>> rarity(Labelled(np.array([[0.0], [0.0], [0.0], [4.0]]), np.array([0, 0, 1, 1]))).round(2).tolist()
    [0.0, 0.0, 1.15, 1.15]
    """
    member = np.arange(people.classes)[:, None] == people.y
    centres = member @ people.X / np.maximum(member.sum(axis=1), 1)[:, None]
    width = people.X.std(axis=0)
    return np.asarray(np.linalg.norm((people.X - centres[people.y]) / np.where(width > 0, width, 1), axis=1))
