"""A simulated town of 60,000 people: its residents, their visits to clinics, and the owner's policy."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import discreet as dc
from discreet.curator.curator import Curator

PEOPLE = 60_000
WARDS = ("Castle", "Docks", "Fields", "Hill", "Market", "Mill", "Park", "Station")
ILLNESSES = ("asthma", "diabetes", "fracture", "influenza", "none")
CLINIC_KINDS = ("dentist", "doctor", "hospital", "pharmacy")
SECRET_ILLNESS = "diabetes"  # what the attacker wants to learn about the Governor  # noqa: S105 - an illness, no password
_CLINICS = 120

POLICY = """\
[data]
name     = "town"
protects = "resident"
version  = "2026-11"

[budget]
epsilon = 8.0
delta   = 1e-9

[tables.people]
source = "people.parquet"
unit   = "person"
groups = 1
rows   = 1
contribution_max = 1
rows_max = 1_000_000
[tables.people.columns]
person = { type = "integer" }
ward   = { type = "text", in = ["Castle", "Docks", "Fields", "Hill", "Market", "Mill", "Park", "Station"] }
age    = { type = "integer", between = [0, 110] }
income = { type = "real", between = [0, 150_000] }
ill    = { type = "text", in = ["asthma", "diabetes", "fracture", "influenza", "none"] }

[tables.visits]
source = "visits.parquet"
unit   = "person"
groups = 4
rows   = 6
rows_max = 10_000_000
[tables.visits.columns]
person = { type = "integer" }
time   = { type = "timestamp", between = [2026-01-01, 2026-12-31] }
clinic = { type = "integer", references = "clinics.clinic" }
cost   = { type = "real", between = [0, 400], step = 0.01 }
street = { type = "text" }

[tables.clinics]
source = "clinics.parquet"
public = true
"""


@dataclass(frozen=True)
class Resident:
    """What everybody knows about a resident: nobody else in this ward has this age.

    >>> Resident("Castle", 94).differencing_queries()[1]
    "SELECT COUNT(*) FROM people WHERE ill = 'diabetes' AND NOT (ward = 'Castle' AND age = 94)"
    """

    ward: str
    age: int
    name: str = "the Governor"

    @property
    def condition(self) -> str:
        """An SQL condition that selects this resident only."""
        return f"ward = '{self.ward}' AND age = {self.age}"

    def differencing_queries(self, illness: str = SECRET_ILLNESS) -> tuple[str, str]:
        """Return two queries that count the people with an illness, with this resident and without."""
        everybody = f"SELECT COUNT(*) FROM people WHERE ill = '{illness}'"  # noqa: S608 - our own words
        return everybody, f"{everybody} AND NOT ({self.condition})"


@dataclass(frozen=True)
class Town:
    """The town in a folder."""

    folder: Path

    @property
    def policy(self) -> Path:
        """The owner's policy."""
        return self.folder / "town.toml"

    def true_answer(self, sql: str, people: pa.Table | None = None) -> list[tuple[Any, ...]]:
        """Return the non-private answer, which only the owner can compute, optionally with another table of people."""
        with duckdb.connect() as connection:
            for name in ("people", "visits", "clinics"):
                connection.from_parquet(str(self.folder / f"{name}.parquet")).create_view(name)
            if people is not None:
                connection.register("people", people)
            return connection.execute(sql).fetchall()

    def governor(self) -> Resident:
        """Return the Governor: the youngest resident of Castle whose age is unique there, whatever their illness."""
        unique_age_sql = (
            "SELECT ward, age FROM people WHERE ward = 'Castle' GROUP BY ALL HAVING COUNT(*) = 1 ORDER BY age"
        )
        return Resident(*self.true_answer(unique_age_sql)[0])

    def people_with_diagnosis(self, *, ill: str) -> pa.Table:
        """Return the table of people with this diagnosis for the Governor."""
        people, governor = pq.read_table(self.folder / "people.parquet"), self.governor()
        is_governor = pc.and_(pc.equal(people["ward"], governor.ward), pc.equal(people["age"], governor.age))
        index = people.column_names.index("ill")
        return people.set_column(index, "ill", pc.if_else(is_governor, ill, people["ill"]))

    def open_with_budget(self, epsilon: str, *, ill: str | None = None) -> Curator:
        """Open the town under a pure budget in memory, optionally with another diagnosis for the Governor."""
        text = POLICY.replace('"town"', '"town"\nledger = ":memory:"', 1)
        text = text.replace("epsilon = 8.0\ndelta   = 1e-9", f'epsilon = "{epsilon}"\nbounds_report = 0')
        policy = dc.policy.Policy.parse(text, base=self.folder)
        return dc.open(policy, data=None if ill is None else {"people": self.people_with_diagnosis(ill=ill)})


def write_town(folder: Path) -> Path:
    """Write the town's tables and its policy, always the same, and return the path of the policy."""
    rng = np.random.default_rng(60_000)
    person = rng.permutation(PEOPLE) + 1_000_000
    ward = rng.choice(len(WARDS), PEOPLE, p=np.array([5, 9, 14, 10, 22, 13, 12, 15]) / 100)
    age = np.clip(rng.normal(42 + 3 * (ward % 3), 22, PEOPLE), 0, 109).astype(np.int64)
    income = np.exp(rng.normal(10.2 + 0.1 * (ward % 4), 0.55, PEOPLE)).round(2)
    odds = np.stack([0.06 + 0 * age, 0.0012 * age, 0.03 + 0 * age, 0.05 + 0.0004 * age], axis=1)
    uniform = rng.random(PEOPLE)[:, None]
    ill = (uniform >= odds.cumsum(axis=1)).sum(axis=1)
    people = {
        "person": person,
        "ward": np.array(WARDS)[ward],
        "age": age,
        "income": income,
        "ill": np.array(ILLNESSES)[ill],
    }
    pq.write_table(pa.table(people), folder / "people.parquet")
    pq.write_table(pa.table(_visits(rng, person, ill)), folder / "visits.parquet")
    number = np.arange(_CLINICS)
    clinics = {
        "clinic": number,
        "kind": np.array(CLINIC_KINDS)[number % 4],
        "ward": np.array(WARDS)[number % len(WARDS)],
    }
    pq.write_table(pa.table(clinics), folder / "clinics.parquet")
    policy = folder / "town.toml"
    policy.write_text(POLICY, encoding="utf-8")
    return policy


def _visits(rng: np.random.Generator, person: np.ndarray, ill: np.ndarray) -> dict[str, np.ndarray]:
    """Simulate visits: most people go to one or two clinics a few times a year, some go every week."""
    visit_counts = rng.poisson(np.where(ill < 4, 5.0, 1.6) * rng.gamma(1.2, 0.9, person.size))
    who = np.repeat(person, visit_counts)
    usual = np.repeat(rng.integers(0, _CLINICS, person.size), visit_counts)
    clinic = np.where(rng.random(who.size) < 0.6, usual, rng.integers(0, _CLINICS, who.size))
    seconds = rng.integers(0, 365 * 86_400, who.size)
    time = np.datetime64("2026-01-01T00:00:00", "us") + seconds.astype("timedelta64[s]")
    cost = np.minimum(rng.gamma(2.0, 22.0, who.size), 2_000).round(2)
    # The policy lists no streets: a few have many visitors, most have few, and some a single one.
    street = np.char.add("Street ", (rng.pareto(0.7, who.size) * 3).astype(np.int64).astype(str))
    return {"person": who, "time": time, "clinic": clinic, "cost": cost, "street": street}


QUESTION = f"SELECT ward, COUNT(*) AS people FROM people WHERE ill = '{SECRET_ILLNESS}' GROUP BY ward"  # noqa: S608 - our own words
_NAMES = ("Ada", "Bela", "Chidi")
_UNIQUE = (
    "SELECT ward, MIN(age) FROM (SELECT ward, age FROM people GROUP BY ALL "  # noqa: S608 - our own words
    f"HAVING COUNT(*) = 1 AND ANY_VALUE(ill) = '{SECRET_ILLNESS}') GROUP BY ward ORDER BY ward"
)


def recognisable_residents(town: Town) -> tuple[Resident, ...]:
    """Return residents with the illness whom ward and age identify, at most one of each ward."""
    found = town.true_answer(_UNIQUE)
    return tuple(Resident(ward, age, name) for name, (ward, age) in zip(_NAMES, found, strict=False))


def true_counts(town: Town) -> dict[str, int]:
    """Return the non-private answer, by ward."""
    return {ward: count for ward, count in town.true_answer(f"{QUESTION} ORDER BY ward")}  # noqa: C416 - of pairs
