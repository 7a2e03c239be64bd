"""What others give these attacks: names, small sizes, options, and what their defences return."""

from functools import partial

import numpy as np
import pytest

from discreet import attacks
from discreet.attacks.aggregates import subset_oracles
from discreet.attacks.aggregates.census import census, pair_tables
from discreet.attacks.aggregates.membership import membership, membership_power
from discreet.attacks.aggregates.reconstruct import reconstruct
from discreet.attacks.aggregates.reductions import membership_from_reconstruction, reconstruction_from_membership
from discreet.attacks.data.blocks import Blocks, simulate_blocks
from discreet.attacks.data.panel import Panel, simulate_answers, simulate_genomes
from discreet.attacks.data.secret_bits import Secrets, Study, simulate_study

RUBBISH = {
    "nothing": None,
    "a text": "many",
    "a number": 3,
    "too few": [1.0],
    "two dimensions": [[1.0, 2.0]],
    "several lengths": [[1.0], [1.0, 2.0]],
    "infinities": np.full(12, np.inf),
    "a class": int,
}
SIZES = {"sex": 2, "married": 2}


@pytest.fixture(scope="module")
def panel():
    return simulate_genomes(60, 12, random_state=0)


@pytest.mark.parametrize("returned", RUBBISH.values(), ids=RUBBISH)
def test_invalid_output_of_a_defence_is_refused_by_every_attack(panel, returned):
    town = Blocks([0, 0, 1], [[0, 1], [1, 1], [0, 0]], SIZES, is_member=[True, True, False])
    runs = [
        lambda: membership(panel, pool=20, defence=lambda members: returned),
        lambda: census(town, defence=lambda members: returned),
        lambda: census(town, defence=lambda members: {("sex", "married"): returned}),
        lambda: reconstruct(defence=lambda bits: returned),
        lambda: reconstruct(defence=lambda bits: lambda subsets: returned),
        lambda: membership_from_reconstruction(defence=lambda bits: lambda subsets: returned),
        lambda: reconstruction_from_membership(defence=lambda values, secrets: returned),
    ]
    for run in runs:
        with pytest.raises((TypeError, ValueError), match=r"defence.* must return"):
            run()


@pytest.mark.long
def test_missing_values_are_valid_where_nothing_may_be_published(panel):
    town = simulate_blocks(4, random_state=0)
    hidden = {
        pair: np.full(table.shape, np.nan) for pair, table in pair_tables(town.member_table, 4, town.sizes).items()
    }
    assert census(town, defence=lambda members: hidden, random_state=0).defence == "own"
    assert membership(panel, pool=20, defence=lambda members: [np.nan] * 12, random_state=0).success == 0.5
    with pytest.raises(ValueError, match="without NaN"):
        reconstruct(defence=lambda bits: lambda subsets: np.full(len(subsets), np.nan))


@pytest.mark.parametrize("beyond", [1.5, -0.1])
def test_means_beyond_0_to_1_are_refused(panel, beyond):
    with pytest.raises(ValueError, match="means from 0 to 1: divide by max_value = 2"):
        membership(panel, pool=20, defence=lambda members: np.full(12, beyond))


def test_means_above_1_by_a_rounding_error_are_accepted(panel):
    assert membership(panel, pool=20, defence=lambda members: np.full(12, 1 + 1e-15), random_state=0).success < 0.7


@pytest.mark.parametrize("name", ["block", "Block", "n", "row", "two words", "", "1st", 5])
def test_a_trait_with_a_reserved_name_is_refused(name):
    with pytest.raises(ValueError, match="a trait cannot be named"):
        Blocks([0, 0], [[0, 1], [1, 1]], {"sex": 2, name: 2}, is_member=[True, False])


@pytest.mark.parametrize(
    ("sizes", "error", "words"),
    [
        ({"sex": 2, "SEX": 2}, ValueError, "differ only in case"),
        (["sex", "married"], TypeError, "sizes must be a dict"),
        ({"sex": 2, "married": "two"}, TypeError, "sizes: married must be an integer"),
        ({"sex": 2, "married": 0}, ValueError, "sizes: married must be at least 1"),
    ],
)
def test_invalid_sizes_are_refused(sizes, error, words):
    with pytest.raises(error, match=words):
        Blocks([0, 0], [[0, 1], [1, 1]], sizes, is_member=[True, False])


def test_sql_keywords_are_valid_names_for_traits():
    rng = np.random.default_rng(0)
    town = Blocks(
        rng.integers(0, 3, 30), rng.integers(0, 2, (30, 2)), {"order": 2, "select": 2}, rng.random(30) < 1 / 2
    )
    exact = pair_tables(town.member_table, town.block_count, town.sizes)
    near = census(town, defence="curator", epsilon=10_000, random_state=0)
    assert near.success == census(town, defence=lambda members: exact, random_state=0).success


def test_the_curator_answers_about_one_block_and_a_trait_of_one_value():
    town = Blocks([0, 0, 0], [[0, 1], [0, 1], [0, 0]], {"planet": 1, "sex": 2}, is_member=[True, True, False])
    assert census(town, defence="curator", epsilon=1000, random_state=0).success == 1


def test_the_curator_answers_about_one_attribute_in_one_study():
    result = membership(
        simulate_answers(60, 1, random_state=0), pool=20, plays=1, defence="curator", epsilon=1, random_state=0
    )
    assert result.details["attributes published"] == 1


def test_a_query_about_an_empty_set_returns_zero():
    subsets = np.array([[True, True, False], [False, False, False], [True, False, True], [False, False, False]])
    assert subset_oracles._ask_curator(np.ones(3, bool), subsets, 10_000, 0).tolist() == [2, 0, 2, 0]
    assert subset_oracles._ask_curator(np.ones(3, bool), subsets[[1, 3]], 10_000, 0).tolist() == [0, 0]


@pytest.mark.parametrize("random_state", range(8))
def test_three_people_are_enough(random_state):
    result = reconstruct(Secrets([0, 1, 1]), defence="curator", epsilon=1, random_state=random_state)
    assert result.details["questions"] == 12


@pytest.mark.parametrize("delta", [0.4, "1e-3"])
def test_the_delta_that_a_custom_defence_claims_is_counted(panel, delta):
    result = membership(panel, pool=20, defence=lambda rows: rows.mean(axis=0) / 2, epsilon=1, delta=delta)
    assert result.delta == float(delta)
    assert result.ceiling > result.evidence.ceiling(1)


def test_a_custom_defence_claims_no_delta_unless_stated(panel):
    assert membership(panel, pool=20, defence=lambda rows: rows.mean(axis=0) / 2, epsilon=1).delta == 0
    assert membership(panel, pool=20, defence="curator", epsilon=1).delta == 1e-6
    assert membership(panel, pool=20).delta == 0


@pytest.mark.parametrize("attack", [membership, reconstruct])
def test_one_delta_can_be_given_for_all_defences(attack):
    data, sizes = (Secrets([0, 1, 1, 0]), {}) if attack is reconstruct else (simulate_genomes(60, 12), {"pool": 20})
    made = attacks.compare(partial(attack, delta="1e-3", **sizes), epsilons=[1], data=data)
    assert [result.delta for result in made.results] == [0, 0, 0.001]


@pytest.mark.parametrize(
    ("run", "error", "words"),
    [
        (lambda: membership(delta="1e-6", defence=lambda rows: rows), TypeError, "delta needs an epsilon"),
        (lambda: membership(delta=1, defence="curator", epsilon=1), ValueError, "at least 0 and below 1"),
        (lambda: membership(delta="a"), ValueError, "delta must be a number"),
        (lambda: membership(pool="ten"), TypeError, "pool must be an integer"),
        (lambda: membership(random_state="a"), ValueError, "random_state must be"),
        (lambda: reconstruct(noise="a"), ValueError, "noise, .* must be a number such as"),
        (lambda: reconstruct(noise=float("nan")), ValueError, "must be finite"),
        (lambda: reconstruct(noise=None), TypeError, "noise"),
        (lambda: reconstruct(per_person="4"), TypeError, "per_person must be an integer"),
        (lambda: reconstruct(random_state=-1), ValueError, "random_state must be"),
        (lambda: census(random_state=1.5), ValueError, "random_state must be"),
        (lambda: simulate_blocks(2, random_state="a"), ValueError, "random_state must be"),
        (lambda: simulate_genomes("many"), TypeError, "people must be an integer"),
        (lambda: membership_power(10, 20, noise="a"), ValueError, "noise must be a number"),
        (lambda: membership_power("ten", 20), TypeError, "d must be an integer"),
        (lambda: membership_power(10, 2), ValueError, "n must be at least 10"),
        (lambda: simulate_study("two", 3, np.random.default_rng(0)), TypeError, "people must be an integer"),
        (lambda: membership_from_reconstruction(random_state="a"), ValueError, "random_state must be"),
        (lambda: membership_from_reconstruction(Secrets([1, 1, 1])), ValueError, "non-members"),
        (lambda: membership_from_reconstruction(Secrets([0, 0, 0])), ValueError, "non-members"),
        (lambda: membership_from_reconstruction(simulate_blocks(2, random_state=0)), TypeError, "data must be Secrets"),
        (lambda: reconstruction_from_membership(random_state="a"), ValueError, "random_state must be"),
    ],
)
def test_invalid_options_are_refused(run, error, words):
    with pytest.raises(error, match=words):
        run()


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Secrets(None), ValueError, "bits must"),
        (lambda: Secrets(["0", "1"]), ValueError, "bits must"),
        (lambda: Secrets([[0], [0, 1]]), ValueError, "bits must"),
        (lambda: Secrets([0, np.nan]), ValueError, "bits must"),
        (lambda: Secrets([0, 1], chance="a"), ValueError, "chance must be a number"),
        (lambda: Panel("abc"), ValueError, "values must be integers"),
        (lambda: Panel([[0], [0, 1]]), ValueError, "values must be integers"),
        (lambda: Panel([[0], [1]], max_value="a"), TypeError, "max_value must be an integer"),
        (lambda: Panel([[0], [1]], populations=[["a"], ["a", "b"]]), ValueError, "one entry per person"),
        (lambda: Study([[0], [0, 1]], [0, 1], [[0]], [0.5]), ValueError, "values must consist of zeros"),
        (lambda: Study([[0], [1]], ["a", "b"], [[0]], [0.5]), ValueError, "secrets must consist of zeros"),
        (lambda: Study([[0], [1]], [0, 1], [[0]], ["a"]), ValueError, "rates must be an array of numbers"),
        (lambda: Blocks("ab", [[0, 1], [1, 1]], SIZES, [True, False]), ValueError, "one entry per person"),
        (lambda: Blocks([0, 0], [[0], [1, 1]], SIZES, [True, False]), ValueError, "one column per entry of sizes"),
        (lambda: Blocks([0, 0], [[0, 1], [1, 1]], SIZES, ["yes", "no"]), ValueError, "is_member must consist of zeros"),
        (lambda: Blocks([0, 0], [[0, 1], [1, 1]], SIZES, [1, 0], rates="even"), ValueError, "rates must be an array"),
        (lambda: Blocks([0, 0], [[0, 1], [1, 1]], SIZES, [1, 0], rates=[np.inf] * 4), ValueError, "rates must not"),
    ],
)
def test_records_of_other_types_are_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_the_metric_completes_what_share():
    small = simulate_genomes(60, 12, random_state=0)
    assert membership(small, pool=20).metric == "of member/non-member pairs ranked correctly (AUC)"
