"""Registers: lists of people with names, beside tables of patients without."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.attacks.checking import arrow_table, generator
from discreet.attacks.tables.folders import real_table
from discreet.attacks.tables.made_up import CONDITIONS, birth_dates, conditions, zip_codes
from discreet.attacks.tables.patients import Patients, checked
from discreet.attacks.tables.reading import whole_numbers
from discreet.kernel.exact import whole

FILES = ("linkage_synthetic_demographic.parquet", "linkage_synthetic_medical.parquet")
_ZIPS = 400
_ELSEWHERE = 0.1  # of the patients, the share that is not in the register
_OTHERS = 0.5  # for each patient, so many people of the register who are none


@dataclass(frozen=True, eq=False)
class Register:
    """Patients, and a list of people (`people`) with the same columns that anybody can get.

    `who` has the place in `people` of each patient, -1 if they are not in it: the truth, by which names are scored.

    >>> table = pa.table({"age": [30, 41], "ill": ["flu", "no"]})
    >>> town = pa.table({"name": ["Ana", "Bob", "Eva"], "age": [41, 30, 30]})
    >>> Register(Patients(table, "age", "ill"), town, who=[1, 0]).who
    array([1, 0])
    """

    patients: Patients
    people: Any
    who: Any

    def __post_init__(self) -> None:
        checked(self.patients, Patients, "Patients(table, quasi, sensitive)", "patients")
        people = arrow_table(self.people, "people")
        missing = [name for name in self.patients.quasi if name not in people.column_names]
        if missing:
            raise ValueError(f"people has no column {missing[0]!r}: give the columns of quasi, {self.patients.quasi}")
        who = whole_numbers(self.who, "who")
        if who.shape != (self.patients.table.num_rows,) or who.min() < -1 or who.max() >= people.num_rows:
            raise ValueError("who must have one place in people for each patient, -1 for those who are not in it")
        object.__setattr__(self, "people", people.select(self.patients.quasi))
        object.__setattr__(self, "who", who)


def governor(patients: int = 135_000, random_state: int | None = None) -> Register:
    """Make up so many patients with zip code, birth date and sex, and a voter roll that has most of them.

    >>> made = governor(1000, random_state=0)
    >>> made.people.num_rows, made.patients.quasi
    (1400, ['zip', 'born', 'sex'])
    """
    rng = generator(random_state)
    patients = whole(patients, "patients", 10)
    absent = round(patients * _ELSEWHERE)
    count = patients + round(patients * _OTHERS)
    zips, ages = rng.integers(_ZIPS, size=count), rng.integers(18, 91, size=count)
    everybody = pa.table({
        "zip": zip_codes(zips),
        "born": birth_dates(ages, rng),
        "sex": np.array(["F", "M"])[rng.integers(2, size=count)],
    })  # fmt: skip
    ill = np.array(CONDITIONS)[conditions(zips[:patients], ages[:patients], rng)]
    table = everybody.slice(0, patients).append_column("condition", pa.array(ill))
    order = rng.permutation(np.arange(absent, count))  # a voter roll says nothing by its order
    who = np.full(count, -1)
    who[order] = np.arange(len(order))
    return Register(Patients(table, ["zip", "born", "sex"], "condition"), everybody.take(order), who[:patients])


def read_register(folder: Path) -> Register:
    """Read 30,000 fake patients and the list of the same people."""
    people = real_table(folder, FILES[0], ["ID", "Gender", "Age", "Zip"])
    medical = real_table(folder, FILES[1], ["ID", "Diagnosis"])
    numbered = people.append_column("place", pa.array(np.arange(people.num_rows)))
    kept = medical.join(numbered, "ID", join_type="inner")  # what the hospital has itself: the exact age and zip code
    who = np.asarray(kept["place"])
    return Register(Patients(kept, ["Gender", "Age", "Zip"], "Diagnosis"), people, who)
