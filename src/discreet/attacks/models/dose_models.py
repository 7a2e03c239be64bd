"""Models of a dose: non-private, with the easy fix, and private."""

from fractions import Fraction
from typing import Literal

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.attacks.attack import DefenceRelease, Game
from discreet.attacks.data.dose_cohort import DoseCohort
from discreet.attacks.defences import CURATOR, EASY, NOTHING
from discreet.attacks.models.adapters import Predictor, checked_predictor
from discreet.attacks.private_answers import ask_curator

DoseModelKind = Literal["linear", "tree"]
_ROUNDING_STEP = 2.5  # mg: doses are rounded to halves of a tablet
_MIN_LEAF_SIZE = 5  # patients
_BAND_COUNT = 4  # equal-width bands of the first field, for the curator's table of averages
_AVERAGES_SQL = "SELECT genotype, band, AVG(dose) AS dose FROM data GROUP BY genotype, band"


def rounded(model: Predictor, step: float) -> Predictor:
    """Return a model whose recommended doses are rounded."""
    return Predictor(lambda X: np.rint(np.asarray(model.predict(X)) / step) * step)


def average_doses(cells: np.ndarray, first_field_bounds: tuple[float, float]) -> Predictor:
    """Return a model that reads a table of average doses by genotype and band of the first field."""
    return Predictor(lambda X: cells[X[:, -1].astype(int), band_indices(X[:, 0], first_field_bounds)])


def band_indices(values: np.ndarray, bounds: tuple[float, float]) -> np.ndarray:
    """Return the band of each value, clamped to the bounds.

    >>> band_indices(np.array([-1.0, 0, 3, 9]), (0, 9)).tolist()
    [0, 0, 1, 3]
    """
    low, high = bounds
    return np.clip((values - low) / (high - low) * _BAND_COUNT, 0, _BAND_COUNT - 1).astype(int)


def _fit_linear(patients: DoseCohort) -> Predictor:
    from sklearn.linear_model import LinearRegression  # noqa: PLC0415 - an extra

    return Predictor(LinearRegression().fit(patients.features(), patients.dose).predict)


def _fit_tree(patients: DoseCohort, min_leaf_size: int) -> Predictor:
    from sklearn.tree import DecisionTreeRegressor  # noqa: PLC0415 - an extra

    # scikit-learn breaks ties between equal columns at random: fix the seed, so that the same patients give one tree.
    tree = DecisionTreeRegressor(min_samples_leaf=min_leaf_size, random_state=0)
    return Predictor(tree.fit(patients.features(), patients.dose).predict)


def _fit_easily(game: Game, patients: DoseCohort) -> Predictor:
    if game.settings.model == "tree":
        return _fit_tree(patients, _MIN_LEAF_SIZE)
    return rounded(_fit_linear(patients), _ROUNDING_STEP)


def _fit_privately(game: Game, patients: DoseCohort) -> Predictor:
    if game.settings.model == "tree":
        return private_averages(patients, game.epsilon)
    low, high = patients.bounds
    model = dc.learn.LinearRegression(
        epsilon=game.epsilon, bounds=([*low, 0], [*high, 2]), target_bounds=patients.dose_bounds
    )
    return Predictor(model.fit(patients.features(), patients.dose).predict)


def private_averages(patients: DoseCohort, epsilon: Fraction) -> Predictor:
    """Return the private counterpart of a tree: private averages in cells that do not depend on the data."""
    bounds = float(patients.bounds[0][0]), float(patients.bounds[1][0])
    band, dose = band_indices(patients.known[:, 0], bounds), np.clip(patients.dose, *patients.dose_bounds)
    columns = {"genotype": [0, 1, 2], "band": list(range(_BAND_COUNT)), "dose": patients.dose_bounds}
    frame = pa.table({"genotype": patients.genotype, "band": band, "dose": dose})
    cells = np.full((3, _BAND_COUNT), sum(patients.dose_bounds) / 2)
    for row in ask_curator(frame, _AVERAGES_SQL, epsilon, columns).to_pylist():
        if row["dose"] is not None:
            cells[row["genotype"], row["band"]] = row["dose"]
    return average_doses(cells, bounds)


def user_dose_model(game: Game, patients: DoseCohort) -> Predictor:
    """Return the model that the user's defence fits."""
    return checked_predictor(game.ask_user(patients))


RELEASES = {
    NOTHING: DefenceRelease(
        "a linear regression of the dose",
        lambda game, patients: _fit_tree(patients, 1) if game.settings.model == "tree" else _fit_linear(patients),
    ),
    EASY: DefenceRelease("the same model, with predictions rounded to 2.5 mg", _fit_easily),
    CURATOR: DefenceRelease("a private linear regression", _fit_privately),
}
