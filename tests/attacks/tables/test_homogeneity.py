"""What a k-anonymous class tells of everybody in it."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from discreet.attacks import attack_named, homogeneity
from discreet.attacks.data.patients import Fact, Patients, first_lecture_table, read_census, second_lecture_table

DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))
CERTAIN = 1 - 1e-10


def test_the_lecture_s_first_table_exposes_its_last_class():
    told = homogeneity(first_lecture_table()).details
    assert told["k"] == 4
    assert told["rows inferred with certainty"] == "9-12"


def test_the_lecture_s_second_table_exposes_nobody():
    told = homogeneity(second_lecture_table()).details
    assert told["k"] == 6
    assert told["rows inferred with certainty"] == "none"


def test_background_knowledge_exposes_more_people():
    # Who cannot have had a viral infection or a heart attack, and is below 30, has AIDS.
    table = first_lecture_table().table.append_column("healthy", pa.array([True] + [False] * 11))
    facts = [Fact("healthy", value=True, rules_out=each) for each in ("Heart Disease", "Viral Infection")]
    result = homogeneity(Patients(table, ["zip", "age", "nationality"], "condition", facts))
    assert result.details["values inferred with certainty"] == 4
    assert result.details["values inferred with certainty using background knowledge"] == 5


def test_simulated_members_are_exposed_more_than_non_members():
    result = homogeneity(random_state=1)
    assert result.success > result.baseline + 0.15
    assert result.details["values inferred with certainty"] > 20
    assert result.details["values inferred with certainty using background knowledge"] > 80
    assert result.details["epsilon implied by absent values, at least"] > 4


def test_three_values_in_each_class_do_not_stop_background_knowledge():
    result = homogeneity(defence="easy", random_state=1)
    assert result.details["values inferred with certainty"] == 0
    assert result.details["values inferred with certainty using background knowledge"] > 5
    assert result.success > result.baseline + 0.15


def test_larger_classes_disclose_less_about_each_member():
    small, large = homogeneity(k=4, random_state=1), homogeneity(k=40, random_state=1)
    assert large.implied.estimate < small.implied.estimate / 2


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
def test_the_curator_stays_within_its_claim(epsilon):
    result = homogeneity(defence="curator", epsilon=epsilon, random_state=1)
    assert result.evidence.implied(confidence=CERTAIN).low <= epsilon
    assert result.success <= result.ceiling + 0.2
    assert result.details["highest posterior"] < 1


@pytest.mark.long
def test_epsilon_a_tenth_discloses_next_to_nothing():
    result = homogeneity(defence="curator", epsilon="1/10", random_state=1)
    assert abs(result.success - result.baseline) < 0.17


def test_noise_ten_times_too_small_is_caught():
    rng = np.random.default_rng(1)
    result = homogeneity(
        defence=lambda _: lambda counts: counts + rng.laplace(0, 1, counts.shape), epsilon=0.1, random_state=1
    )
    assert result.implied.low > 0.1


def test_a_table_that_falsely_claims_privacy_is_caught():
    result = homogeneity(defence=lambda table: table, epsilon=0.1, random_state=1)
    assert result.success > 0.9
    assert result.implied.low > 1


def test_a_defence_may_leave_people_out():
    result = homogeneity(defence=lambda table: table.slice(0, 100), random_state=1)
    assert result.success < homogeneity(defence=lambda table: table, random_state=1).success


def test_the_same_random_state_gives_the_same_result():
    assert homogeneity(random_state=5).details == homogeneity(random_state=5).details


def test_exposure_is_reported_by_row_number():
    exposure = homogeneity(random_state=1).exposure
    assert exposure.rarity_label == "rare values"
    assert exposure.rarest_hit[0].startswith("row ")


TABLE = {"age": [30, 41, 30, 41], "ill": ["flu", "no", "no", "flu"]}


@pytest.mark.parametrize("kind", ["pandas", "polars", "categories"])
def test_tables_of_every_kind_are_read(kind):
    table = pa.table(TABLE)
    if kind == "polars":
        table = pytest.importorskip("polars").from_arrow(table)
    elif kind == "pandas":
        table = pytest.importorskip("pandas").DataFrame(TABLE)
    else:
        table = pytest.importorskip("pandas").DataFrame(TABLE).astype({"ill": "category"})
    plain = homogeneity(Patients(TABLE, "age", "ill"), k=2)
    assert homogeneity(Patients(table, "age", "ill"), k=2).details == plain.details
    assert homogeneity(Patients(TABLE, "age", "ill"), k=2, defence=lambda seen: seen).success == plain.success


def test_one_column_or_one_fact_may_be_given_alone():
    fact = Fact("age", 99, "flu")
    assert Patients(TABLE, "age", "ill", fact).facts == [fact]
    assert Patients(TABLE, ["age", "age"], "ill").quasi == ["age"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((5, "age", "ill"), "table must be an Arrow"),
        ((TABLE, 5, "ill"), "quasi must be a list of texts"),
        ((TABLE, [], "ill"), "quasi must name at least one column"),
        ((TABLE, "age", ["ill"]), "sensitive must be the name of one column"),
        ((TABLE, "age", "ill", [1]), "facts must be a list such as"),
        ((TABLE, "age", "ill", 1), "facts must be a list such as"),
        (({**TABLE, "row": [1, 2, 3, 4]}, ["age", "row"], "ill"), "rename that column"),
        (({**TABLE, "ill": [[1], [2], [3], [4]]}, "age", "ill"), "separate columns"),
        (({**TABLE, "ill": [1.0, 2.0, np.nan, 1.0]}, "age", "ill"), "missing values"),
    ],
    ids=str,
)
def test_malformed_patients_are_refused(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Patients(*given)


@pytest.mark.parametrize("value", ["old", [1], None.__class__])
def test_a_fact_of_another_type_than_its_column_is_refused(value):
    with pytest.raises(TypeError, match="facts: column 'age' has type int64"):
        homogeneity(Patients(TABLE, "age", "ill", [Fact("age", value, "flu")]), k=2)


def test_bad_input_is_refused():
    table = pa.table({"age": [30, 41], "ill": ["flu", "no"]})
    with pytest.raises(TypeError, match="data must be Patients"):
        homogeneity(table)
    with pytest.raises(ValueError, match="no column 'zip'"):
        Patients(table, ["zip"], "ill")
    with pytest.raises(ValueError, match="not the sensitive one"):
        Patients(table, ["ill"], "ill")
    with pytest.raises(ValueError, match="missing values"):
        Patients(pa.table({"age": [1, 2], "ill": ["flu", None]}), ["age"], "ill")
    with pytest.raises(ValueError, match="at least two distinct values"):
        Patients(pa.table({"age": [1, 2], "ill": ["flu", "flu"]}), ["age"], "ill")
    with pytest.raises(ValueError, match="a fact rules out"):
        homogeneity(Patients(table, ["age"], "ill", [Fact("age", 30, "flu")]), k=2)
    with pytest.raises(ValueError, match="sensitive value that the original table does not have"):
        homogeneity(
            Patients(table, ["age"], "ill"), defence=lambda seen: seen.set_column(1, "ill", pa.array(["x", "y"]))
        )
    with pytest.raises(ValueError, match="k must"):
        homogeneity(k=1)
    with pytest.raises(FileNotFoundError, match="adult"):
        attack_named("homogeneity").data.read(Path("nowhere"))


@pytest.mark.long
@pytest.mark.skipif(not (DATA / "adult.parquet").exists(), reason="needs adult in DISCREET_DATA")
def test_the_census_discloses_occupations():
    result = homogeneity(read_census(DATA), k=10)
    assert result.details["k"] == 10
    assert result.details["values inferred with certainty"] > 20
    assert result.success > result.baseline + 0.03
    private = homogeneity(read_census(DATA), defence="curator", epsilon=1, random_state=0, targets=500)
    assert private.evidence.implied(confidence=CERTAIN).low <= 1
