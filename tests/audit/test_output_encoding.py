"""Equal outputs are read as equal, whatever came with them: what an event means must not depend on other runs."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from discreet import audit
from discreet.audit.output_encoding import encode_runs
from discreet.audit.runs import ErrorOutcome, Runs

SURE = 1 - 1e-9
OUTPUTS = [
    5,
    5.0,
    True,
    (1 << 62) + 1,
    -0.0,
    0.25,
    math.nan,
    math.inf,
    10**400,
    Decimal("0.1"),
    Decimal("sNaN"),
    Fraction(1, 3),
    np.float32(0.1),
    None,
    "a",
    "NaN",
    np.str_("b"),
    (5,),
    (1, 2),
    (1.0, math.nan),
    np.array([1, 2]),
    np.array([1.5, 2.0]),
    np.array([]),
    [1, 2, 3],
    {"a": 1},
    frozenset({1}),
]


def told(seen, place):
    """All that is said about one run."""
    before = int(np.count_nonzero(seen.has_numbers[:place]))
    numbers = seen.numbers[before].tobytes() if seen.has_numbers[place] else None
    return seen.kind_names[seen.kinds[place]], bool(seen.has_numbers[place]), numbers, repr(seen.tokens[place])


@pytest.mark.parametrize("pilot", [[5, 6], [5, 0.5], [(1, 2), (3, 4)], ["a", None], [5, math.nan]], ids=repr)
@pytest.mark.parametrize("alone", [True, False], ids=["runs", "a batch"])
def test_an_output_is_read_the_same_whatever_came_with_it(pilot, alone):
    together, _ = encode_runs(Runs([*pilot, *OUTPUTS], [*pilot, *OUTPUTS], one_by_one=alone), len(pilot))
    for place, output in enumerate(OUTPUTS, len(pilot)):
        apart, other = encode_runs(Runs([*pilot, output], [*pilot, math.nan], one_by_one=alone), len(pilot))
        assert told(apart, len(pilot)) == told(together, place), output
        assert apart.numbers.dtype == other.numbers.dtype == together.numbers.dtype


def test_arrays_of_one_type_or_another_are_read_by_their_values():
    whole, spoiled = np.array([5, 6, 7, 8]), np.array([5, 6, 7, math.nan])
    first, second = encode_runs(Runs(whole, spoiled, one_by_one=False), 2)
    assert first.numbers.dtype == second.numbers.dtype == np.int64
    assert first.numbers[:3].tolist() == second.numbers.tolist() == [[5], [6], [7]]
    assert second.has_numbers.tolist() == [True, True, True, False]
    assert second.kind_names[second.kinds[3]] == "a number, NaN"


def test_integers_are_kept_to_the_last_bit():
    large = (1 << 62) + 1
    first, second = encode_runs(Runs([large, large, math.nan], [large + 1, large, large], one_by_one=True), 2)
    assert first.numbers.ravel().tolist() == [large, large]
    assert second.numbers.ravel().tolist() == [large + 1, large, large]


def test_test_runs_do_not_influence_how_outputs_are_encoded():
    pilot = [1, 2]
    first, second = encode_runs(Runs([*pilot, (1, 2), (1, 2), (1, 2)], [*pilot, 0.5, 0.5, 0.5], one_by_one=True), 2)
    assert first.numbers.tolist() == second.numbers.tolist() == [[1], [2]]
    assert first.numbers.dtype == np.int64


def test_what_an_audit_looks_at_is_decided_by_its_pilot_runs():
    # Numbers in the pilot, pairs afterwards: had all runs a say, it would look at pairs, which the pilot has none of.
    batch = audit.Batch(lambda data, runs: [data if place < 100 else (1, 2) for place in range(runs)])
    result = audit.measure(batch, 0, 1, 1, 400)
    assert result.details["pilot runs"] == 100
    assert {result.details["event 1"], result.details["event 2"]} == {"the output == 0", "the output == 1"}


def test_a_part_of_the_runs_has_the_numbers_of_these_runs():
    seen, _ = encode_runs(Runs([1, "a", 2, None, 3], [1, 1, 1, 1, 1], one_by_one=True), 5)
    part = seen.subset(1, 4)
    assert len(part) == 3
    assert part.has_numbers.tolist() == [False, True, False]
    assert part.numbers.tolist() == [[2]]
    assert seen.subset(4).numbers.tolist() == [[3]]


@pytest.mark.long
def test_an_error_that_delta_covers_is_not_a_leak():
    # An error in one run of fifty, on one side, with a delta of a twentieth: private for every epsilon.
    for seed in range(20):
        rng = np.random.default_rng(seed)

        def fails_rarely(data, rng=rng):
            if data == 0 and rng.random() < 0.02:
                raise ValueError
            return 5

        assert audit.measure(fails_rarely, 0, 1, 1, 2000, delta=0.05, confidence=SURE, random_state=seed).holds


@pytest.mark.long
def test_a_rare_error_on_both_sides_is_not_a_leak():
    assert alarms(5, ValueError("bad"), range(60)) <= binom.ppf(SURE, 60, 0.05)


@pytest.mark.long
@pytest.mark.parametrize("rare", [5.5, math.nan, None, "a", (1, 2), np.array([1.5]), Decimal("0.1")], ids=repr)
def test_a_rare_output_of_another_type_on_both_sides_is_not_a_leak(rare):
    assert alarms(5, rare, range(48)) <= binom.ppf(SURE, 48, 0.05)


@pytest.mark.long(but=["array"])
@pytest.mark.parametrize("given", [np.asarray, list, np.ndarray.tolist], ids=["array", "list of numpy's", "list"])
def test_an_array_whose_type_depends_on_one_value_is_not_a_leak(given):
    found = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)

        def batch(_, runs, rng=rng):
            return given(np.array([5 if x > 1 / 150 else 0.5 for x in rng.random(runs)]))

        found += not audit.measure(audit.Batch(batch), 0, 1, 1, 150).holds
    assert found <= binom.ppf(SURE, 60, 0.05)


@pytest.mark.long
def test_an_array_on_one_side_and_a_list_on_the_other_is_not_a_leak():
    for seed in range(10):
        rng = np.random.default_rng(seed)

        def batch(data, runs, rng=rng):
            outputs = rng.integers(0, 3, runs)
            return outputs.tolist() if data else outputs.astype(float)

        assert audit.measure(audit.Batch(batch), 0, 1, 1, 400, confidence=SURE).holds


@pytest.mark.long
def test_equal_distributions_of_outputs_of_all_types_raise_few_alarms():
    # Seeds make the number fixed; were the error above a fifth, as stated, so many would have a chance of 1e-9.
    found = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        some = [*rng.permutation(len(OUTPUTS))[: rng.integers(2, 6)], -1]
        chances = rng.dirichlet(np.full(len(some), 0.3))

        def mixed(_, rng=rng, some=some, chances=chances):
            place = rng.choice(some, p=chances)
            if place < 0:
                raise KeyError("x")
            return OUTPUTS[place]

        found += not audit.measure(mixed, 0, 1, 0, 150, confidence=0.8, random_state=seed).holds
    assert found <= binom.ppf(SURE, 100, 0.2)


def alarms(often, rare, seeds):
    """How many audits of runs with the same law on both sides refute an epsilon of 1 at 95 %."""
    found = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)

        def mechanism(_, rng=rng):
            if rng.random() > 1 / 150:
                return often
            if isinstance(rare, Exception):
                raise rare
            return rare

        found += not audit.measure(mechanism, 0, 1, 1, 150, random_state=seed).holds
    return found


def test_an_error_says_what_it_is():
    assert str(ErrorOutcome("KeyError", "")) == "raised KeyError"
    assert str(audit.ErrorOutcome("KeyError", "'a'")) == "raised KeyError: 'a'"
