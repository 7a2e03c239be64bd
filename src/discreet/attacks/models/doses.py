"""Models that say how much of a drug a patient needs: exact, with the easy fix, and private."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.attacks.defences import CURATOR, EASY, NOTHING, Shield
from discreet.attacks.models.patients import Treated
from discreet.attacks.models.returned import predictor

Kind = Literal["linear", "tree"]
_TABLET = 2.5  # mg: doses are rounded to halves of a tablet
_LEAF = 5  # patients that share a leaf of the tree
_BANDS = 4  # equal parts of the first field's range, for the curator's table of averages
_AVERAGES = "SELECT genotype, band, AVG(dose) AS dose FROM data GROUP BY genotype, band"


class Model(Protocol):
    """What an outsider sees of a model: the dose that it recommends for any features."""

    def predict(self, X: np.ndarray) -> Any:
        """Return a dose for each row: the known fields, and the genotype last."""
        ...


@dataclass(frozen=True)
class Rounded:
    """A model whose recommendations are rounded."""

    model: Model
    step: float

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the rounded doses."""
        return np.asarray(np.rint(np.asarray(self.model.predict(X)) / self.step) * self.step)


@dataclass(frozen=True)
class Averages:
    """A table of average doses by genotype and by the band that the first field falls into."""

    cells: np.ndarray
    ends: tuple[float, float]

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Look the doses up."""
        return np.asarray(self.cells[X[:, -1].astype(int), bands(X[:, 0], self.ends)])


def trainer(protected: Shield, kind: Kind) -> Callable[[Treated], Model]:
    """Return how a model of this kind is made of a clinic's patients under a defence."""
    if protected.make is not None:
        return partial(_own, protected.make)
    if kind not in ("linear", "tree"):
        raise ValueError(f'model must be "linear" or "tree", not {kind!r}')
    made: dict[tuple[str, str], Callable[..., Model]] = {
        (NOTHING, "linear"): _linear,
        (EASY, "linear"): _rounded,
        (CURATOR, "linear"): partial(_private_linear, protected),
        (NOTHING, "tree"): partial(_tree, 1),
        (EASY, "tree"): partial(_tree, _LEAF),
        (CURATOR, "tree"): partial(_private_averages, protected),
    }
    return made[protected.word, kind]


def bands(values: np.ndarray, ends: tuple[float, float]) -> np.ndarray:
    """Return the part of the range that each value falls into.

    >>> bands(np.array([-1.0, 0, 3, 9]), (0, 9)).tolist()
    [0, 0, 1, 3]
    """
    low, high = ends
    return np.clip((values - low) / (high - low) * _BANDS, 0, _BANDS - 1).astype(int)


def _own(make: Callable[[Treated], Any], patients: Treated) -> Model:
    return predictor(make(patients))


def _linear(patients: Treated) -> Model:
    from sklearn.linear_model import LinearRegression  # noqa: PLC0415 - an extra

    model: Model = LinearRegression().fit(patients.features(), patients.dose)
    return model


def _rounded(patients: Treated) -> Model:
    return Rounded(_linear(patients), _TABLET)


def _private_linear(protected: Shield, patients: Treated) -> Model:
    low, high = patients.bounds
    model: Model = dc.learn.LinearRegression(
        epsilon=protected.price, bounds=([*low, 0], [*high, 2]), target_bounds=patients.doses
    ).fit(patients.features(), patients.dose)
    return model


def _tree(leaf: int, patients: Treated) -> Model:
    from sklearn.tree import DecisionTreeRegressor  # noqa: PLC0415 - an extra

    # The tree breaks ties between equal columns by chance; the same patients shall give the same tree.
    model: Model = DecisionTreeRegressor(min_samples_leaf=leaf, random_state=0).fit(patients.features(), patients.dose)
    return model


def _private_averages(protected: Shield, patients: Treated) -> Model:
    """Return a tree's private cousin: averages in cells that nobody chose by looking at the patients."""
    ends = float(patients.bounds[0][0]), float(patients.bounds[1][0])
    band = bands(patients.known[:, 0], ends)
    frame = pa.table({"genotype": patients.genotype, "band": band, "dose": np.clip(patients.dose, *patients.doses)})
    columns = {"genotype": [0, 1, 2], "band": list(range(_BANDS)), "dose": patients.doses}
    with dc.open(frame, unit="row", budget=protected.price, columns=columns, ledger=":memory:") as curator:
        told = curator.ask(_AVERAGES, epsilon=protected.price).to_arrow().to_pydict()
    cells = np.full((3, _BANDS), sum(patients.doses) / 2)
    for genotype, place, dose in zip(told["genotype"], told["band"], told["dose"], strict=True):
        if dose is not None:
            cells[genotype, place] = dose
    return Averages(cells, ends)
