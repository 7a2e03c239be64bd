"""Patients without names, and a public register that lists most of them: simulated, or synthetic ones from files."""

from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.attacks.attack import Source
from discreet.attacks.data.patients import (
    CONDITIONS,
    PATIENTS,
    Patients,
    draw_birth_dates,
    draw_conditions,
    zip_codes,
)
from discreet.attacks.data.ratings import Ratings
from discreet.attacks.validation import (
    Seed,
    arrow_table,
    integer_array,
    random_generator,
    read_data_table,
    require_type,
    set_fields,
)
from discreet.kernel.numbers import as_integer

_FILES = ("linkage_synthetic_demographic.parquet", "linkage_synthetic_medical.parquet")
_PATIENT_COUNT = 4000
_ZIP_COUNT = 400
_UNREGISTERED_SHARE = 0.1  # the share of patients who are not in the register
_OTHERS_PER_PATIENT = 0.5  # people in the register who are not patients, per patient


@dataclass(frozen=True, eq=False)
class Register:
    """Patients, and a public list of people (`people`) with the same quasi-identifiers.

    `who` is the row in `people` of each patient, or -1: the true links, used only for scoring.

    >>> table = pa.table({"age": [30, 41], "condition": ["flu", "no"]})
    >>> town = pa.table({"name": ["Ana", "Bob", "Eva"], "age": [41, 30, 30]})
    >>> Register(Patients(table, "age", "condition"), town, who=[1, 0]).who
    array([1, 0])
    """

    patients: Patients
    people: Any
    who: Any

    def __post_init__(self) -> None:
        require_type(self.patients, Patients, PATIENTS.written, "patients")
        people = arrow_table(self.people, "people")
        missing = [name for name in self.patients.quasi if name not in people.column_names]
        if missing:
            raise ValueError(
                f"there is no column {missing[0]!r} in people: it needs all columns of quasi, {self.patients.quasi}"
            )
        who = integer_array(self.who, "who")
        if who.shape != (self.patients.table.num_rows,) or who.min() < -1 or who.max() >= people.num_rows:
            raise ValueError(
                "who must have one entry per patient: the row number in people, or -1 for patients who are not listed"
            )
        set_fields(self, {"people": people.select(self.patients.quasi), "who": who})


def simulate_register(patients: int = 135_000, random_state: Seed = None) -> Register:
    """Simulate patients with zip code, birth date and sex, and a voter roll that lists most of them.

    >>> register = simulate_register(1000, random_state=0)
    >>> register.people.num_rows, register.patients.quasi
    (1400, ['zip', 'born', 'sex'])
    """
    rng = random_generator(random_state)
    patients = as_integer(patients, "patients", 10)
    unregistered = round(patients * _UNREGISTERED_SHARE)
    count = patients + round(patients * _OTHERS_PER_PATIENT)
    zips, ages = rng.integers(_ZIP_COUNT, size=count), rng.integers(18, 91, size=count)
    everybody = pa.table({
        "zip": zip_codes(zips),
        "born": draw_birth_dates(ages, rng),
        "sex": np.array(["F", "M"])[rng.integers(2, size=count)],
    })  # fmt: skip
    condition = np.array(CONDITIONS)[draw_conditions(zips[:patients], ages[:patients], rng)]
    table = everybody.slice(0, patients).append_column("condition", pa.array(condition))
    order = rng.permutation(np.arange(unregistered, count))  # the order of the roll must not reveal the links
    who = np.full(count, -1)
    who[order] = np.arange(len(order))
    return Register(Patients(table, ["zip", "born", "sex"], "condition"), everybody.take(order), who[:patients])


def read_register(folder: Path) -> Register:
    """Read 30,000 synthetic patients and the list of the same people."""
    people = read_data_table(folder, _FILES[0], ["ID", "Gender", "Age", "Zip"])
    medical = read_data_table(folder, _FILES[1], ["ID", "Diagnosis"])
    numbered = people.append_column("place", pa.array(np.arange(people.num_rows)))
    patients = medical.join(numbered, "ID", join_type="inner")  # the hospital also knows the exact age and zip code
    who = np.asarray(patients["place"])
    return Register(Patients(patients, ["Gender", "Age", "Zip"], "Diagnosis"), people, who)


REGISTER = Source(
    (Register, Ratings),
    "Register(patients, people, who) or Ratings(user, movie, ...)",
    lambda rng: simulate_register(_PATIENT_COUNT, deepcopy(rng)),  # the game's draws do not depend on the data
    built_in=f"{_PATIENT_COUNT:,} simulated patients with zip code, birth date and sex, and a voter roll",
    files=_FILES,
    read=read_register,
)
