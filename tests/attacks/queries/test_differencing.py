import os
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet import attacks
from discreet.attacks.data.population import Population
from discreet.attacks.queries.sql_oracles import exact_oracle, refuse_small_sets
from discreet.attacks.registry import attack_named

DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))
SURE = 1 - 1e-9


def test_two_non_private_counts_disclose_everybody_who_is_unique():
    result = attacks.differencing(random_state=0)
    assert result.success == 1
    assert result.details["unique targets"] > 300
    assert 0.9 < result.details["inferred among all targets"] < 1


def test_two_non_private_sums_disclose_a_salary():
    assert attacks.differencing(random_state=0).details["error of salary, median"] == 0


@pytest.mark.long
def test_a_minimum_set_size_does_not_help_although_the_direct_query_is_refused():
    nothing, easy = (attacks.differencing(defence=word, random_state=0) for word in ("nothing", "easy"))
    asked = "direct queries answered"
    assert (nothing.details[asked], easy.details[asked]) == (1, 0)
    assert easy.success == nothing.success == 1
    assert easy.details["error of salary, median"] == 0


@pytest.mark.long
@pytest.mark.parametrize("epsilon", ["1/10", 1, 3])
def test_the_curator_stays_within_its_claim(epsilon):
    result = attacks.differencing(defence="curator", epsilon=epsilon, random_state=0)
    assert result.success <= result.ceiling + 0.16
    assert result.evidence.implied(confidence=SURE).low <= result.epsilon
    assert result.details["error of salary, median"] > 20_000


@pytest.mark.long
def test_private_counts_at_epsilon_a_tenth_are_close_to_guessing():
    assert abs(attacks.differencing(defence="curator", epsilon="1/10", random_state=0).success - 0.5) < 0.17


def test_people_who_are_rare_are_found_more_often():
    shares = attacks.differencing(random_state=0).exposure.deciles
    assert shares[0].value < 0.9 < shares[-1].value == 1


def test_too_little_noise_is_caught_in_a_custom_defence(little_noise):
    result = attacks.differencing(defence=little_noise(2 / 10), epsilon="1/10", random_state=0, targets=30)
    assert result.implied.low > 0.1


def test_a_custom_defence_may_refuse_by_raising():
    def deaf(table):
        def ask(sql):
            raise dc.Refused("no")

        return ask

    result = attacks.differencing(defence=deaf, random_state=0, targets=50)
    assert result.success == 1 - result_of_coins(50)
    assert result.details["direct queries answered"] == 0


def result_of_coins(targets):
    """Return the share of secrets that are 1, which is where the guess "no" is wrong."""
    blind = attacks.differencing(defence=lambda table: lambda sql: 0, random_state=0, targets=targets)
    return 1 - blind.success


@pytest.mark.long
def test_the_attack_on_a_custom_oracle_equals_the_attack_on_the_builtin_one():
    ours, own = (
        attacks.differencing(defence=defence, random_state=3, targets=20)
        for defence in ("easy", lambda table: refuse_small_sets(exact_oracle(table), 10))
    )
    assert ours.evidence == own.evidence
    assert ours.exposure == own.exposure


def test_a_defence_that_is_not_an_oracle_is_refused():
    with pytest.raises(TypeError, match="must return a function that answers"):
        attacks.differencing(defence=lambda table: 3, targets=2)


def test_data_of_another_kind_are_refused():
    with pytest.raises(TypeError, match="data must be Population"):
        attacks.differencing([1, 2])


@pytest.mark.parametrize(
    ("table", "known", "secret", "says"),
    [
        ({"age": [1, 2], "ill": [0, 1]}, ("ages",), "ill", "no column 'ages'"),
        ({"age": [1, 2], "ill": [0, 1]}, (), "ill", "name at least one column"),
        ({"age": [1, 2], "ill": [0, 2]}, ("age",), "ill", "only 0 and 1"),
        ({"age": [1, None], "ill": [0, 1]}, ("age",), "ill", "missing or infinite"),
        ({"age": [1, float("nan")], "ill": [0, 1]}, ("age",), "ill", "missing or infinite"),
        ({"age": [1, float("inf")], "ill": [0, 1]}, ("age",), "ill", "missing or infinite"),
        ({"age": [1, 2], "ill": [0, 1]}, ("age", "ill"), "ill", "'ill' is named twice"),
        ({"age": [1, 2], "ill": [0, 1]}, ("age", "age"), "ill", "'age' is named twice"),
        ({"age": [1, 2], "Age": [1, 2], "ill": [0, 1]}, ("age",), "ill", "differ only in case"),
        ({"": [1, 2], "ill": [0, 1]}, ("",), "ill", "1 to 200 printable characters"),
        ({"age": [1, 2], "ill": ["0", "1"]}, ("age",), "ill", "only 0 and 1"),
        ({"age": [1, 2], "ill": [datetime(1, 1, 1), datetime(1, 1, 2)]}, ("age",), "ill", "only 0 and 1"),
        ({"age": [1, 2], "ill": [0]}, ("age",), "ill", "columns of equal length"),
        ({"age": [1, "x"], "ill": [0, 1]}, ("age",), "ill", "values of one type"),
        ({"age": 5, "ill": [0, 1]}, ("age",), "ill", "values of one type"),
        (pa.table([[1, 2], [1, 2], [0, 1]], ["age", "age", "ill"]), ("age",), "ill", "two columns with the same name"),
        ({"age": [[1], [2]], "ill": [0, 1]}, ("age",), "ill", "must be numeric or text"),
        ({"age": [1], "ill": [0]}, ("age",), "ill", "at least two rows"),
    ],
)
def test_people_who_cannot_be_queried_are_refused(table, known, secret, says):
    with pytest.raises(ValueError, match=says):
        Population(table, known, secret)


def test_people_of_whom_none_can_be_singled_out_are_refused():
    with pytest.raises(ValueError, match="no target is unique"):
        attacks.differencing(Population({"age": [1, 1], "ill": [0, 1]}, ("age",), "ill"))


@pytest.mark.parametrize("pay", [[5, 11], [-1, 5], ["5", "6"], [True, False]])
def test_amounts_outside_their_bounds_are_refused(pay):
    with pytest.raises(ValueError, match=r"numbers from 0 to max_amount \(10\)"):
        Population({"age": [1, 2], "ill": [0, 1], "pay": pay}, ("age",), "ill", amount="pay", max_amount=10)


def test_people_of_the_wrong_kind_are_refused():
    table = {"age": [1, 2], "ill": [0, 1], "pay": [5, 6]}
    with pytest.raises(TypeError, match="table must be an Arrow, pandas or polars table"):
        Population(None, ("age",), "ill")
    with pytest.raises(TypeError, match="known must be column names"):
        Population(table, 5, "ill")
    with pytest.raises(TypeError, match="max_amount must be an integer"):
        Population(table, ("age",), "ill", amount="pay", max_amount="10")


@pytest.mark.parametrize("option", ["targets", "smallest", "random_state"])
def test_texts_where_numbers_are_expected_are_refused(option):
    with pytest.raises((TypeError, ValueError), match=f"{option} must be"):
        attacks.differencing(**{option: "many"})


def named(known, secret, amount):
    """Return 40 people, all unique, in columns of these names and two that nobody asks about."""
    table = {known: list(range(40)), secret: [0, 1] * 20, amount: [100 * n for n in range(40)]}
    return Population(
        {**table, "game_of_0": [0] * 40, "n": ["?"] * 40}, known, secret, amount=amount, max_amount=10_000
    )


NAMES = [
    ("number", "game", "GAME_answer"),
    ("group", "has aids", "my pay"),
    ("select", "order", "pay (EUR)"),
    ("people", "targets", 'pay, "net"'),
    ("{known}", "{target}", "{}"),
]


@pytest.mark.long
@pytest.mark.parametrize("names", NAMES)
def test_columns_of_any_name_can_be_queried(names):
    people, off = named(*names), f"error of {names[2]}, median"
    for defence in ("nothing", "easy", exact_oracle):
        result = attacks.differencing(people, defence=defence, random_state=0, targets=3)
        assert (result.success, result.details[off]) == (1, 0)
    private = attacks.differencing(people, defence="curator", epsilon=10_000, random_state=0, targets=3)
    assert private.success == 1  # noise of width 1/5000
    assert private.details[off] < 100


@pytest.mark.long(but=["averaging-times0-names1"])
@pytest.mark.parametrize("names", [NAMES[0], NAMES[-1]])
@pytest.mark.parametrize(("attack", "times"), [(attacks.averaging, {"repeats": 8}), (attacks.rephrasing, {"texts": 8})])
def test_columns_of_any_name_can_be_queried_repeatedly(attack, times, names):
    for defence in ("nothing", "easy", exact_oracle):
        options = {"defence": defence, "random_state": 0, "targets": 3, "width": "1/10", **times}
        assert attack(named(*names), **options).success == 1
    assert attack(named(*names), defence="curator", epsilon=10_000, random_state=0, targets=3, **times).success == 1


@pytest.mark.long(only=["averaging"])
@pytest.mark.parametrize("attack", [attacks.differencing, attacks.averaging, attacks.rephrasing])
def test_one_target_can_be_queried(attack):
    times = {"texts": 8} if attack is attacks.rephrasing else {}
    result = attack(named("age", "ill", "pay"), defence="curator", epsilon=10_000, random_state=0, targets=1, **times)
    assert (result.success, result.details["targets"]) == (1, 1)


@pytest.mark.parametrize("attack", [attacks.differencing, attacks.averaging, attacks.rephrasing])
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, "the defence's oracle must return a number, or NaN to refuse, not None"),
        ("many", "the defence's oracle must return a number, not str"),
        ([1.0, 2.0], "the defence's oracle must return a number, not an array"),
        (float("inf"), "the defence's oracle must return a number, without NaN or infinity"),
        (int, "the defence's oracle must return a number, not type"),
        (np.array("many"), "the defence's oracle must return a number, not ndarray"),
    ],
)
def test_an_oracle_with_a_non_numeric_answer_is_refused(attack, answer, says):
    with pytest.raises((TypeError, ValueError), match=says):
        attack(defence=lambda table: lambda sql: answer, targets=3, random_state=0)


def test_names_with_quotation_marks_can_be_queried():
    people = Population({"street": ["King's", "Mill", "Mill"], "ill": [1, 0, 1]}, ("street",), "ill")
    for defence in ("nothing", exact_oracle):
        assert attacks.differencing(people, defence=defence, random_state=0).success == 1


@pytest.mark.long
def test_secrets_in_a_census_are_inferred():
    if not (DATA / "pums_ca_1000.parquet").exists():
        pytest.skip("needs pums_ca_1000.parquet in DISCREET_DATA")
    people = attack_named("differencing").data.read(DATA)
    easy = attacks.differencing(people, defence="easy", random_state=0)
    assert easy.success == 1
    assert easy.details["error of income, median"] == 0
    private = attacks.differencing(people, defence="curator", epsilon="1/10", random_state=0)
    assert private.evidence.implied(confidence=SURE).low <= 0.1


def test_a_folder_without_the_data_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"pums_ca_1000\.parquet"):
        attack_named("differencing").data.read(tmp_path)
