"""Patients with a dose and a genotype, and models of the dose: non-private, with the easy fix, and private."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.attacks.defences import CURATOR, EASY, NOTHING, Defence
from discreet.attacks.models.adapters import checked_predictor
from discreet.attacks.validation import column_bounds, data_file, entry_array, float_array, float_matrix

WARFARIN_FILE = "warfarin_iwpc.parquet"

# Bounds known without the data: decades of life, centimetres, kilograms, no or yes, copies of an allele.
_FIELD_BOUNDS = {
    "age": (0, 9),
    "height": (140, 200),
    "weight": (40, 140),
    "Asian": (0, 1),
    "Black": (0, 1),
    "White": (0, 1),
    "CYP2C9*2": (0, 2),
    "CYP2C9*3": (0, 2),
}
_DOSE_BOUNDS = (0.0, 100.0)  # mg per week
_GENOTYPES = ("A/A", "A/G", "G/G")
_RACES = {"Asian": "Asian", "Black": "Black or African American", "White": "White"}
_VKORC1, _CYP2C9 = "vkorc1_m1639_consensus", "cyp2c9_consensus"
_COLUMNS = ("age", "height_cm", "weight_kg", "race", "dose_mg_week", _CYP2C9, _VKORC1)


@dataclass(frozen=True)
class DoseCohort:
    """Patients of a clinic: fields that the attacker knows, the dose, and the genotype (0, 1 or 2 copies of an allele).

    `known` may be a table. `bounds` are the lower and upper bounds of the fields, `dose_bounds` those of the dose; both
    are known without the data.

    >>> DoseCohort(known=[[4.0], [6.0]], genotype=[0, 2], dose=[20.0, 40.0], bounds=([0], [9])).features().tolist()
    [[4.0, 0.0], [6.0, 2.0]]
    """

    known: Any
    genotype: Any
    dose: Any
    bounds: Any
    dose_bounds: tuple[float, float] = _DOSE_BOUNDS

    def __post_init__(self) -> None:
        (known, _), dose = float_matrix(self.known, "known"), float_array(self.dose, "dose")
        genotype = entry_array(self.genotype, "genotype")
        if known.ndim != 2 or dose.shape != known.shape[:1] or genotype.shape != dose.shape:
            raise ValueError("known must have one row, and genotype and dose one entry, per patient")
        if not (np.isfinite(known).all() and np.isfinite(dose).all()):
            raise ValueError("known and dose must be finite numbers: leave out patients with missing values")
        low, high = column_bounds(self.bounds, known.shape[1])
        dose_low, dose_high = (float(end[0]) for end in column_bounds(self.dose_bounds, 1, "dose_bounds"))
        if genotype.dtype.kind not in "iu" or set(np.unique(genotype)) - {0, 1, 2}:
            raise ValueError("genotype must be 0, 1 or 2 for each patient: the number of copies of one allele")
        for name, value in (("known", known), ("dose", dose), ("genotype", genotype), ("bounds", (low, high))):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "dose_bounds", (dose_low, dose_high))

    def __len__(self) -> int:
        return len(self.dose)

    def features(self, genotype: int | None = None) -> np.ndarray:
        """Return the input of a dose model: the known fields and the genotype, their own or this one for all."""
        last = self.genotype if genotype is None else np.full(len(self), genotype)
        return np.column_stack([self.known, last]).astype(float)

    def subset(self, rows: np.ndarray) -> "DoseCohort":
        """Return the patients in these rows."""
        return DoseCohort(self.known[rows], self.genotype[rows], self.dose[rows], self.bounds, self.dose_bounds)


def simulate_cohort(rng: np.random.Generator, size: int = 2000) -> DoseCohort:
    """Simulate patients with realistic correlations between genes, body measurements and doses."""
    race = rng.choice(4, size, p=[0.33, 0.09, 0.51, 0.07])
    alleles = rng.binomial(2, np.array([0.09, 0.9, 0.61, 0.65])[race])
    star_two, star_three = rng.binomial(2, 0.07, size), rng.binomial(2, 0.05, size)
    age = np.clip(np.rint(rng.normal(6, 1.5, size)), 1, 9)
    height = rng.normal(168, 10, size) - 5 * (race == 0)
    weight = np.clip(rng.normal(81, 18, size) + 0.7 * (height - 168) - 14 * (race == 0), 35, 200)
    expected_dose = 19 + 9 * alleles - 2.2 * (age - 6) + 0.15 * (weight - 76) - 5 * star_two - 8 * star_three
    dose = np.clip(expected_dose * rng.lognormal(-0.06, 0.36, size), 2, 200)
    known = np.column_stack([age, height, weight, *(race == code for code in range(3)), star_two, star_three])
    return DoseCohort(known, alleles, dose, _all_field_bounds())


def load(folder: Path) -> DoseCohort:
    """Read the patients of the warfarin consortium without missing values."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - only for real data

    rows = pq.read_table(data_file(folder, WARFARIN_FILE), columns=list(_COLUMNS)).drop_null().to_pydict()
    race = np.array(rows["race"])
    known = np.column_stack(
        [
            [int(age[0]) for age in rows["age"]],  # "60 - 69" is the sixth decade, "90+" the ninth
            rows["height_cm"],
            rows["weight_kg"],
            *(race == word for word in _RACES.values()),
            *([each.count(star) for each in rows[_CYP2C9]] for star in ("*2", "*3")),
        ]
    )
    genotype = np.array([_GENOTYPES.index(each) for each in rows[_VKORC1]])
    return DoseCohort(known, genotype, rows["dose_mg_week"], _all_field_bounds())


def _all_field_bounds() -> tuple[list[float], list[float]]:
    low, high = zip(*_FIELD_BOUNDS.values(), strict=True)
    return list(map(float, low)), list(map(float, high))


DoseModelKind = Literal["linear", "tree"]
_ROUNDING_STEP = 2.5  # mg: doses are rounded to halves of a tablet
_MIN_LEAF_SIZE = 5  # patients
_BAND_COUNT = 4  # equal-width bands of the first field, for the curator's table of averages
_AVERAGES_SQL = "SELECT genotype, band, AVG(dose) AS dose FROM data GROUP BY genotype, band"


class DoseModel(Protocol):
    """The attacker's view of a model: the recommended dose for any features."""

    def predict(self, X: np.ndarray) -> Any:
        """Return one dose per row; a row is the known fields and the genotype last."""
        ...


@dataclass(frozen=True)
class RoundedDoseModel:
    """A model whose recommended doses are rounded."""

    model: DoseModel
    step: float

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the rounded doses."""
        return np.asarray(np.rint(np.asarray(self.model.predict(X)) / self.step) * self.step)


@dataclass(frozen=True)
class AverageDoseTable:
    """A table of average doses by genotype and band of the first field."""

    cells: np.ndarray
    first_field_bounds: tuple[float, float]

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the average doses of the rows' cells."""
        return np.asarray(self.cells[X[:, -1].astype(int), band_indices(X[:, 0], self.first_field_bounds)])


def dose_model_trainer(defence: Defence, kind: DoseModelKind) -> Callable[[DoseCohort], DoseModel]:
    """Return the function that trains a model of this kind under a defence."""
    if defence.user_function is not None:
        return partial(_user_model, defence.user_function)
    if kind not in ("linear", "tree"):
        raise ValueError(f'model must be "linear" or "tree", not {kind!r}')
    trainers: dict[tuple[str, str], Callable[..., DoseModel]] = {
        (NOTHING, "linear"): _fit_linear,
        (EASY, "linear"): _fit_rounded,
        (CURATOR, "linear"): partial(_fit_private_linear, defence),
        (NOTHING, "tree"): partial(_fit_tree, 1),
        (EASY, "tree"): partial(_fit_tree, _MIN_LEAF_SIZE),
        (CURATOR, "tree"): partial(_fit_private_averages, defence),
    }
    return trainers[defence.kind, kind]


def band_indices(values: np.ndarray, bounds: tuple[float, float]) -> np.ndarray:
    """Return the band of each value, clamped to the bounds.

    >>> band_indices(np.array([-1.0, 0, 3, 9]), (0, 9)).tolist()
    [0, 0, 1, 3]
    """
    low, high = bounds
    return np.clip((values - low) / (high - low) * _BAND_COUNT, 0, _BAND_COUNT - 1).astype(int)


def _user_model(user_function: Callable[[DoseCohort], Any], patients: DoseCohort) -> DoseModel:
    return checked_predictor(user_function(patients))


def _fit_linear(patients: DoseCohort) -> DoseModel:
    from sklearn.linear_model import LinearRegression  # noqa: PLC0415 - an extra

    model: DoseModel = LinearRegression().fit(patients.features(), patients.dose)
    return model


def _fit_rounded(patients: DoseCohort) -> DoseModel:
    return RoundedDoseModel(_fit_linear(patients), _ROUNDING_STEP)


def _fit_private_linear(defence: Defence, patients: DoseCohort) -> DoseModel:
    low, high = patients.bounds
    model: DoseModel = dc.learn.LinearRegression(
        epsilon=defence.curator_epsilon, bounds=([*low, 0], [*high, 2]), target_bounds=patients.dose_bounds
    ).fit(patients.features(), patients.dose)
    return model


def _fit_tree(min_leaf_size: int, patients: DoseCohort) -> DoseModel:
    from sklearn.tree import DecisionTreeRegressor  # noqa: PLC0415 - an extra

    # scikit-learn breaks ties between equal columns at random: fix the seed, so that the same patients give one tree.
    model: DoseModel = DecisionTreeRegressor(min_samples_leaf=min_leaf_size, random_state=0).fit(
        patients.features(), patients.dose
    )
    return model


def _fit_private_averages(defence: Defence, patients: DoseCohort) -> DoseModel:
    """Return the private counterpart of a tree: private averages in cells that do not depend on the data."""
    bounds = float(patients.bounds[0][0]), float(patients.bounds[1][0])
    band = band_indices(patients.known[:, 0], bounds)
    frame = pa.table(
        {"genotype": patients.genotype, "band": band, "dose": np.clip(patients.dose, *patients.dose_bounds)}
    )
    columns = {"genotype": [0, 1, 2], "band": list(range(_BAND_COUNT)), "dose": patients.dose_bounds}
    with dc.open(frame, unit="row", budget=defence.curator_epsilon, columns=columns, ledger=":memory:") as curator:
        answer = curator.ask(_AVERAGES_SQL, epsilon=defence.curator_epsilon).to_arrow().to_pydict()
    cells = np.full((3, _BAND_COUNT), sum(patients.dose_bounds) / 2)
    for genotype, band_index, dose in zip(answer["genotype"], answer["band"], answer["dose"], strict=True):
        if dose is not None:
            cells[genotype, band_index] = dose
    return AverageDoseTable(cells, bounds)
