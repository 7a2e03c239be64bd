"""Two k-anonymous tables, read together."""

import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from discreet.attacks import attack_named, intersection
from discreet.attacks.data.overlapping_tables import TwoTables, lecture_tables
from discreet.attacks.data.patients import Patients, first_lecture_table

DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))
CERTAIN = 1 - 1e-10


def test_the_lecture_s_two_tables_name_aids():
    result = intersection(lecture_tables(), k=4)
    assert result.success == 1
    assert result.details["values left by the first table, the second, both"] == [3, 4, 1]
    assert result.details["values inferred with certainty from one table"] == 0
    assert result.details["values inferred with certainty"] == 1


def test_two_tables_disclose_more_than_one():
    result = intersection(random_state=1)
    first, second, both = result.details["values left by the first table, the second, both"]
    assert both < min(first, second) - 0.5
    assert (
        result.details["values inferred with certainty"]
        > 1.5 * result.details["values inferred with certainty from one table"]
        > 0
    )
    assert result.success > result.baseline + 0.2


def test_larger_and_diverse_classes_leave_some_people_certain():
    result = intersection(defence="easy", random_state=1)
    assert result.details["values inferred with certainty from one table"] == 0
    assert result.success > result.baseline + 0.1
    weaker = intersection(defence="easy", k=3, random_state=1)
    assert weaker.details["values inferred with certainty from one table"] == 0
    assert weaker.details["values inferred with certainty"] > 5


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
def test_two_curators_together_stay_within_the_claim(epsilon):
    result = intersection(defence="curator", epsilon=epsilon, random_state=1)
    assert result.evidence.implied(confidence=CERTAIN).low <= epsilon
    assert result.success <= result.ceiling + 0.25


def test_each_of_the_two_curators_gets_half_of_epsilon(monkeypatch):
    asked = []

    def spied(counts, epsilon):
        asked.append(epsilon)
        return counts

    monkeypatch.setattr("discreet.attacks.tables.intersection.private_counts", spied)
    assert intersection(defence="curator", epsilon=1, random_state=1).epsilon == 1
    assert asked == [Fraction(1, 2), Fraction(1, 2)]


@pytest.mark.long
def test_epsilon_a_tenth_discloses_next_to_nothing():
    result = intersection(defence="curator", epsilon="1/10", random_state=1)
    assert abs(result.success - result.baseline) < 0.14


def test_noise_ten_times_too_small_is_caught():
    rng = np.random.default_rng(1)
    result = intersection(
        defence=lambda _: lambda counts: counts + rng.laplace(0, 2, counts.shape), epsilon=0.1, random_state=1
    )
    assert result.implied.low > 0.1


def test_two_tables_that_falsely_claim_privacy_are_caught():
    result = intersection(defence=lambda table: table, epsilon=0.1, random_state=1)
    assert result.success > 0.9
    assert result.implied.low > 1


def test_the_same_random_state_gives_the_same_result():
    assert intersection(random_state=5).details == intersection(random_state=5).details


def test_exposure_is_reported():
    exposure = intersection(random_state=1).exposure
    assert exposure.rarity_label == "rare values"
    assert exposure.rarest_hit[0].startswith("person ")


def test_bad_input_is_refused():
    two = lecture_tables()
    with pytest.raises(TypeError, match="data must be TwoTables"):
        intersection(first_lecture_table())
    with pytest.raises(ValueError, match="pairs of row numbers"):
        TwoTables(two.first, two.second, [0, 0])
    with pytest.raises(ValueError, match="row numbers of the tables"):
        TwoTables(two.first, two.second, [(0, 12)])
    with pytest.raises(ValueError, match="different sensitive values"):
        TwoTables(two.first, two.second, [(0, 1)])
    with pytest.raises(TypeError, match="first must be Patients"):
        TwoTables(5, 5, [(0, 0)])
    with pytest.raises(TypeError, match="second must be Patients"):
        TwoTables(two.first, 5, [(0, 0)])
    for both in (None, "ab", [(0.5, 0.5)], [(0, 0), (1,)]):
        with pytest.raises(TypeError, match="both must be an array of integers"):
            TwoTables(two.first, two.second, both)
    with pytest.raises(ValueError, match="lists a row twice"):
        TwoTables(two.first, two.second, [(0, 0), (0, 0)])
    numbered = Patients({"age": [1, 2], "ill": [1, 2]}, "age", "ill")
    with pytest.raises(ValueError, match="same type, not string and int64"):
        TwoTables(two.first, numbered, [(0, 0)])
    for rubbish in (None, 5, [1, 2]):
        with pytest.raises(TypeError, match="the defence's return value must be an Arrow"):
            intersection(defence=lambda _, rubbish=rubbish: rubbish)
    seen = iter([lambda counts: counts])
    with pytest.raises(ValueError, match="not a table for one and a function for the other"):
        intersection(defence=lambda table: next(seen, table))
    with pytest.raises(FileNotFoundError, match="adult"):
        attack_named("intersection").data.read(Path("nowhere"))


def test_tables_may_have_different_columns():
    first = Patients(pa.table({"age": [30, 30, 41, 41], "ill": list("abab")}), ["age"], "ill")
    second = Patients(pa.table({"sex": list("FFMM"), "ill": list("acbb")}), ["sex"], "ill")
    result = intersection(TwoTables(first, second, [(0, 0)]), k=2)
    assert result.details["values left by the first table, the second, both"] == [2, 2, 1]


@pytest.mark.long
@pytest.mark.skipif(not (DATA / "adult.parquet").exists(), reason="needs adult in DISCREET_DATA")
def test_two_releases_of_the_census_disclose_more_occupations_than_one():
    result = intersection(attack_named("intersection").data.read(DATA))
    told = result.details
    assert told["values inferred with certainty"] > 1.5 * told["values inferred with certainty from one table"]
