"""Treated with what is known about them, a dose that fits them, and a genotype that is nobody's business."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.attacks.checking import file_in
from discreet.attacks.models.inputs import ends, entries, floats, matrix

FILE = "warfarin_iwpc.parquet"

# Ends that a clinic knows without its data: decades of life, centimetres, kilograms, no or yes, copies of an allele.
_FIELDS = {
    "age": (0, 9),
    "height": (140, 200),
    "weight": (40, 140),
    "Asian": (0, 1),
    "Black": (0, 1),
    "White": (0, 1),
    "CYP2C9*2": (0, 2),
    "CYP2C9*3": (0, 2),
}
_DOSES = (0.0, 100.0)  # mg a week
_GENOTYPES = ("A/A", "A/G", "G/G")
_RACES = {"Asian": "Asian", "Black": "Black or African American", "White": "White"}
_VKORC1, _CYP2C9 = "vkorc1_m1639_consensus", "cyp2c9_consensus"
_COLUMNS = ("age", "height_cm", "weight_kg", "race", "dose_mg_week", _CYP2C9, _VKORC1)


@dataclass(frozen=True)
class Treated:
    """What a clinic has: fields that others may know, the dose, and the genotype, in copies of one allele (0, 1, 2).

    `known` may be a table. `bounds` are the lowest and the highest value of every field, `doses` those of the dose,
    both known beforehand.

    >>> Treated(known=[[4.0], [6.0]], genotype=[0, 2], dose=[20.0, 40.0], bounds=([0], [9])).features().tolist()
    [[4.0, 0.0], [6.0, 2.0]]
    """

    known: Any
    genotype: Any
    dose: Any
    bounds: Any
    doses: tuple[float, float] = _DOSES

    def __post_init__(self) -> None:
        (known, _), dose = matrix(self.known, "known"), floats(self.dose, "dose")
        genotype = entries(self.genotype, "genotype")
        if known.ndim != 2 or dose.shape != known.shape[:1] or genotype.shape != dose.shape:
            raise ValueError("known must have a row, genotype and dose an entry, for each patient")
        if not (np.isfinite(known).all() and np.isfinite(dose).all()):
            raise ValueError("known and dose must be numbers without gaps: leave out patients who lack some")
        low, high = ends(self.bounds, known.shape[1])
        least, most = (float(end[0]) for end in ends(self.doses, 1, "doses"))
        if genotype.dtype.kind not in "iu" or set(np.unique(genotype)) - {0, 1, 2}:
            raise ValueError("genotype must be 0, 1 or 2 for each patient: the copies of one allele")
        for name, value in (("known", known), ("dose", dose), ("genotype", genotype), ("bounds", (low, high))):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "doses", (least, most))

    def __len__(self) -> int:
        return len(self.dose)

    def features(self, genotype: int | None = None) -> np.ndarray:
        """Return what a model of the dose gets: the known fields and the genotype, their own or this one for all."""
        last = self.genotype if genotype is None else np.full(len(self), genotype)
        return np.column_stack([self.known, last]).astype(float)

    def at(self, places: np.ndarray) -> "Treated":
        """Return some of the patients."""
        return Treated(self.known[places], self.genotype[places], self.dose[places], self.bounds, self.doses)


def generated(rng: np.random.Generator, size: int = 2000) -> Treated:
    """Return made-up patients, whose genes, bodies and doses go together about as those of real ones do."""
    race = rng.choice(4, size, p=[0.33, 0.09, 0.51, 0.07])
    alleles = rng.binomial(2, np.array([0.09, 0.9, 0.61, 0.65])[race])
    two, three = rng.binomial(2, 0.07, size), rng.binomial(2, 0.05, size)
    age = np.clip(np.rint(rng.normal(6, 1.5, size)), 1, 9)
    height = rng.normal(168, 10, size) - 5 * (race == 0)
    weight = np.clip(rng.normal(81, 18, size) + 0.7 * (height - 168) - 14 * (race == 0), 35, 200)
    usual = 19 + 9 * alleles - 2.2 * (age - 6) + 0.15 * (weight - 76) - 5 * two - 8 * three
    dose = np.clip(usual * rng.lognormal(-0.06, 0.36, size), 2, 200)
    known = np.column_stack([age, height, weight, *(race == place for place in range(3)), two, three])
    return Treated(known, alleles, dose, _ends())


def load(folder: Path) -> Treated:
    """Read the patients of the warfarin consortium whose fields, dose and both genes are known."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - only the real data need a reader

    rows = pq.read_table(file_in(folder, FILE), columns=list(_COLUMNS)).drop_null().to_pydict()
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
    return Treated(known, genotype, rows["dose_mg_week"], _ends())


def _ends() -> tuple[list[float], list[float]]:
    low, high = zip(*_FIELDS.values(), strict=True)
    return list(map(float, low)), list(map(float, high))
