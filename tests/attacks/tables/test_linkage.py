"""People without names, found by a register or by a few ratings."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from discreet import anonymity
from discreet.attacks import attack_named, linkage
from discreet.attacks.data.patients import Patients
from discreet.attacks.data.register import Register, read_register, simulate_ratings, simulate_register
from discreet.attacks.tables.attribute_inference import k_anonymous_release

DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))
CERTAIN = 1 - 1e-10
FEW = simulate_ratings(250, random_state=3)


def categories(table):
    return table.to_pandas().astype({"condition": "category", "sex": "category"})


def test_patients_without_names_are_reidentified():
    result = linkage(random_state=1)
    assert result.success > 0.99
    assert result.baseline < 0.35
    assert result.details["correctly named"] > 0.88 * 4000  # a tenth are not in the register
    assert result.details["wrongly named"] <= 5
    assert result.implied.low > 4


def test_a_name_is_wrong_only_where_the_patient_is_not_in_the_register():
    table = pa.table({"age": [30, 30, 41], "ill": ["flu", "no", "no"]})
    town = pa.table({"age": [30, 41]})
    told = linkage(Register(Patients(table.slice(0, 2), "age", "ill"), town, who=[0, -1])).details
    assert (told["correctly named"], told["wrongly named"]) == (1, 1)


@pytest.mark.long
def test_classes_of_five_hide_the_name_but_not_all_of_the_diagnosis():
    result = linkage(defence="easy", random_state=1)
    assert result.details["correctly named"] == 0
    assert 0.3 < result.success < 0.6
    assert result.implied.low > 0.3


def test_each_person_matches_only_their_own_class():
    patients = simulate_register(1500, random_state=2).patients
    released = k_anonymous_release(patients, 5)
    risk = anonymity.measure(released, patients.quasi, population=patients.table)
    assert risk.journalist.rows_by_candidates == risk.prosecutor.rows_by_candidates


@pytest.mark.long(but=["1-ratings"])
@pytest.mark.parametrize("data", [None, FEW], ids=["register", "ratings"])
@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
def test_the_curator_stays_within_its_claim(data, epsilon):
    result = linkage(data, defence="curator", epsilon=epsilon, random_state=1)
    assert result.evidence.implied(confidence=CERTAIN).low <= epsilon
    if data is None:
        assert result.success <= result.ceiling + 0.2


@pytest.mark.long
def test_epsilon_a_tenth_discloses_next_to_nothing():
    result = linkage(defence="curator", epsilon="1/10", random_state=1)
    assert abs(result.success - result.baseline) < 0.12


def test_swapping_a_few_diagnoses_is_not_private():
    def shuffled(table):
        rng = np.random.default_rng(0)
        values = np.array(table["condition"].to_pylist())
        some = rng.random(len(values)) < 0.2
        values[some] = rng.permutation(values[some])
        return table.set_column(table.column_names.index("condition"), "condition", pa.array(values))

    result = linkage(defence=shuffled, epsilon=0.1, random_state=1)
    assert result.success > 0.75
    assert result.implied.low > 1


def test_noise_ten_times_too_small_is_caught():
    rng = np.random.default_rng(1)
    result = linkage(
        defence=lambda _: lambda counts: counts + rng.laplace(0, 1, counts.shape), epsilon=0.1, random_state=1
    )
    assert result.implied.low > 0.1


@pytest.mark.long
def test_the_full_size_takes_one_argument():
    result = linkage(simulate_register(135_000, random_state=0))
    assert result.details["patients"] == 135_000
    assert result.details["correctly named"] > 0.88 * 135_000


def test_the_description_of_linkage_matches_its_default_data():
    known = attack_named("linkage")
    texts = (known.summary, known.data.built_in, *(release.description for release in known.releases.values()))
    assert "ratings" not in " ".join(texts)


@pytest.mark.parametrize("made", [lambda table: table.to_pandas(), lambda table: table.to_pydict(), categories])
def test_a_defence_may_return_any_kind_of_table(made):
    few = simulate_register(300, random_state=1)
    assert linkage(few, defence=made, random_state=1).details == linkage(few, random_state=1).details


@pytest.mark.parametrize("rubbish", [None, "x", 5, [1, 2], np.ones((3, 3))], ids=str)
def test_a_value_that_is_not_a_table_is_refused(rubbish):
    with pytest.raises(TypeError, match="the defence's return value must be an Arrow"):
        linkage(defence=lambda _: rubbish)
    with pytest.raises((TypeError, ValueError), match="function that adds noise to counts"):
        linkage(defence=lambda _: lambda _: rubbish)


def test_a_python_class_is_neither_a_table_nor_an_answer():
    for data in (None, FEW):
        with pytest.raises(TypeError, match="the class dict"):
            linkage(data, defence=lambda _: dict)


def test_answers_that_are_not_finite_numbers_are_refused():
    for strange in (np.nan, np.inf):
        with pytest.raises(ValueError, match="without NaN or infinity"):
            linkage(defence=lambda _, strange=strange: lambda counts: counts + strange)


@pytest.mark.parametrize("column", [pa.array([1, 2]), pa.nulls(2), pa.array([["flu"], ["no"]])], ids=str)
def test_a_secret_of_another_kind_is_refused(column):
    register = Register(Patients({"age": [30, 41], "ill": ["flu", "no"]}, "age", "ill"), {"age": [30, 41]}, [0, 1])
    with pytest.raises(ValueError, match="sensitive value that the original table does not have"):
        linkage(register, defence=lambda table: table.set_column(1, "ill", column))


@pytest.mark.parametrize("column", [pa.array(["0", "1"]), pa.array([0, None]), pa.array([0, 5])], ids=str)
def test_rows_that_were_not_in_the_input_are_refused(column):
    register = Register(Patients({"age": [30, 41], "ill": ["flu", "no"]}, "age", "ill"), {"age": [30, 41]}, [0, 1])
    with pytest.raises(ValueError, match=r"column 'row' .* at most once"):
        linkage(register, defence=lambda table: table.set_column(2, "row", column))


def test_the_same_random_state_gives_the_same_result():
    assert linkage(random_state=5).details == linkage(random_state=5).details
    assert linkage(FEW, random_state=5, defence="easy").details == linkage(FEW, random_state=5, defence="easy").details


def test_exposure_is_reported():
    assert linkage(random_state=1).exposure.rarity_label == "rare values"
    assert linkage(FEW, random_state=1).exposure.rarity_label == "rare movies"


def test_bad_input_is_refused():
    patients = Patients(pa.table({"age": [30, 41], "ill": ["flu", "no"]}), "age", "ill")
    with pytest.raises(TypeError, match=r"Register\(.*\) or Ratings\("):
        linkage(patients)
    with pytest.raises(ValueError, match="no column 'age' in people"):
        Register(patients, pa.table({"name": ["Ana"]}), [0, 0])
    with pytest.raises(ValueError, match="the row number in people"):
        Register(patients, pa.table({"age": [30]}), [0, 1])
    with pytest.raises(TypeError, match="patients must be Patients"):
        Register(5, pa.table({"age": [30]}), [0])
    with pytest.raises(TypeError, match="people must be an Arrow"):
        Register(patients, 5, [0, 0])
    for who in (None, "ab", [0.5, 1], [0, None], [[0], [1, 2]]):
        with pytest.raises(TypeError, match="who must be an array of integers"):
            Register(patients, pa.table({"age": [30]}), who)
    with pytest.raises(TypeError, match="patients must be an integer"):
        simulate_register("5")
    with pytest.raises(ValueError, match="no column 'row' in the defence's table"):
        linkage(defence=lambda table: table.drop_columns("row"))
    with pytest.raises(ValueError, match=r"column 'row' .* at most once"):
        linkage(defence=lambda table: pa.concat_tables([table, table]))
    with pytest.raises(FileNotFoundError, match=r"linkage_synthetic_demographic\.parquet in nowhere"):
        attack_named("linkage").load(Path("nowhere"))


@pytest.mark.long
@pytest.mark.skipif(
    not (DATA / "linkage_synthetic_medical.parquet").exists(), reason="needs linkage_synthetic in DISCREET_DATA"
)
def test_nearly_all_of_thirty_thousand_simulated_patients_are_reidentified():
    result = linkage(read_register(DATA))
    assert (result.details["correctly named"], result.details["wrongly named"]) == (29_928, 0)
    assert linkage(read_register(DATA), defence="easy").details["correctly named"] == 0
