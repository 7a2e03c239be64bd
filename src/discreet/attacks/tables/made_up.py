"""Made-up people: patients of a hospital, of two hospitals, and the people of a state."""

from datetime import date

import numpy as np
import pyarrow as pa

from discreet.attacks.tables.patients import Fact, Patients

FACTS = (Fact("vaccinated", value=True, rules_out="flu"), Fact("unhurt", value=True, rules_out="injury"))
CONDITIONS = ["flu", "injury", "asthma", "diabetes", "heart disease", "cancer", "depression", "HIV"]
# How common the conditions are at 20, and at 90; between, in between.
_YOUNG = np.array([0.28, 0.30, 0.16, 0.05, 0.01, 0.02, 0.15, 0.03])
_OLD = np.array([0.15, 0.10, 0.05, 0.22, 0.28, 0.15, 0.04, 0.01])
_ZIPS = 40
_CLUSTERS = 6  # zip codes in which nearly all patients have the same: a factory, a school, a home
_ONE_CAUSE = 9.0
_TODAY = date(1996, 5, 1).toordinal()
_EPOCH = date(1970, 1, 1).toordinal()


def made_up_patients(count: int, rng: np.random.Generator) -> Patients:
    """Make up patients with zip code, age, sex and condition; age and place say something about the condition.

    >>> made = made_up_patients(100, np.random.default_rng(0))
    >>> made.quasi, made.sensitive, len(made.facts)
    (['zip', 'age', 'sex'], 'condition', 2)
    """
    zips, ages = rng.integers(_ZIPS, size=count), rng.integers(18, 91, size=count)
    ill = conditions(zips, ages, rng)
    table = pa.table({
        "zip": zip_codes(zips),
        "age": ages,
        "sex": np.array(["F", "M"])[rng.integers(2, size=count)],
        "condition": np.array(CONDITIONS)[ill],
        # Neither is in the hospital's table, but friends and colleagues know it.
        "vaccinated": (ill != 0) & (rng.random(count) < 0.6),
        "unhurt": (ill != 1) & (rng.random(count) < 0.8),
    })  # fmt: skip
    return Patients(table, ["zip", "age", "sex"], "condition", FACTS)


def conditions(zips: np.ndarray, ages: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw everybody's condition, by number."""
    old = ((np.clip(ages, 20, 90) - 20) / 70)[:, None]
    weights = (1 - old) * _YOUNG + old * _OLD
    crowded = np.flatnonzero(zips < _CLUSTERS)
    weights[crowded, zips[crowded]] += _ONE_CAUSE
    law = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    return np.asarray((rng.random(len(zips))[:, None] > law[:, :-1]).sum(axis=1))


def zip_codes(zips: np.ndarray) -> np.ndarray:
    """Return five digits for each number of a place."""
    codes: np.ndarray = np.array([f"{130 + zip_ // 10}{53 + zip_ % 10}" for zip_ in range(int(zips.max()) + 1)])[zips]
    return codes


def birth_dates(ages: np.ndarray, rng: np.random.Generator) -> pa.Array:
    """Return a day of birth for each age."""
    days = _TODAY - (ages * 365.25 + rng.integers(0, 365, size=len(ages))).astype(np.int64) - _EPOCH
    return pa.array(days.astype(np.int32)).cast(pa.date32())
