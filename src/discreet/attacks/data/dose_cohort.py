"""Patients with a dose, a genotype and further fields: your own, simulated, or of the warfarin consortium."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.attacks.attack import Source
from discreet.attacks.validation import (
    array_or_object,
    column_bounds,
    float_array,
    float_matrix,
    read_data_table,
    require,
    set_fields,
)

_FILE = "warfarin_iwpc.parquet"

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
        genotype = array_or_object(self.genotype)
        require(
            known.ndim == 2 and dose.shape == known.shape[:1] and genotype.shape == dose.shape,
            "known must have one row, and genotype and dose one entry, per patient",
        )
        require(
            np.isfinite(known).all() and np.isfinite(dose).all(),
            "known and dose must be finite numbers: leave out patients with missing values",
        )
        low, high = column_bounds(self.bounds, known.shape[1])
        dose_low, dose_high = (float(end[0]) for end in column_bounds(self.dose_bounds, 1, "dose_bounds"))
        require(
            genotype.dtype.kind in "iu" and not set(np.unique(genotype)) - {0, 1, 2},
            "genotype must be 0, 1 or 2 for each patient: the number of copies of one allele",
        )
        set_fields(
            self, known=known, dose=dose, genotype=genotype, bounds=(low, high), dose_bounds=(dose_low, dose_high)
        )

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


def read_cohort(folder: Path) -> DoseCohort:
    """Read the patients of the warfarin consortium without missing values."""
    rows = read_data_table(folder, _FILE, _COLUMNS).drop_null().to_pydict()
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


COHORT = Source(
    DoseCohort,
    "DoseCohort(known, genotype, dose, bounds)",
    simulate_cohort,
    built_in="2,000 simulated patients with realistic correlations between genes, body measurements and doses",
    files=(_FILE,),
    read=read_cohort,
)
