"""Audits of known distributions are exact."""

import math
from fractions import Fraction

import pytest

import discreet as dc
from discreet import audit
from discreet.privacy import output


def test_an_epsilon_that_is_attained_holds_and_a_smaller_claim_does_not():
    here, there = output(dc.Laplace(7), 3), output(dc.Laplace(7), 5)
    assert audit.exact(here, there, "2/7").holds
    assert not audit.exact(here, there, "0.2857").holds
    assert audit.exact(here, there, "2/7").epsilon_low == pytest.approx(2 / 7)


def test_the_worse_of_both_directions_counts():
    p, q = {0: Fraction(1, 2), 1: Fraction(1, 2)}, {0: Fraction(9, 10), 1: Fraction(1, 10)}
    result = audit.exact(p, q, 1)
    assert result.epsilon_low == pytest.approx(math.log(5)) == audit.exact(q, p, 1).epsilon_low
    assert (result.direction, result.event) == ("likelier on D than on D2", "the output is 1")
    assert audit.exact(q, p, 1).direction == "likelier on D2 than on D"


def test_an_outcome_of_one_distribution_only_is_infinite_unless_delta_covers_it():
    p, q = {0: 0.99, 1: 0.01}, {0: 1.0}
    assert audit.exact(p, q, 5).epsilon_low == math.inf
    assert audit.exact(p, q, 5, delta=0.02).epsilon_low == 0
    assert not audit.exact(p, q, 5, delta=0.001).holds


@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_a_gaussian_is_as_private_as_its_exact_curve_says(delta):
    here, there = output(dc.Gaussian(5), 0), output(dc.Gaussian(5), 1)
    low = audit.exact(here, there, 1, delta=delta).epsilon_low
    assert dc.privacy.hockey_stick(here, there, low + 1e-9) <= delta < dc.privacy.hockey_stick(here, there, low - 1e-9)
    assert audit.exact(here, there, 1).epsilon_low == math.inf


def test_equal_distributions_disclose_nothing():
    assert audit.exact({0: 1.0}, {0: 1.0}, 0).epsilon_low == 0
    assert audit.exact({0: 1.0}, {0: 1.0}, 0).holds


def test_random_draws_are_enumerated():
    def survey(bit, below):
        return bit if below(2) else below(2)

    laws = [audit.distribution_of(survey, bit) for bit in (0, 1)]
    assert laws[1] == {0: Fraction(1, 4), 1: Fraction(3, 4)}
    assert audit.exact(*laws, claim=dc.RandomizedResponse("1/2").loss()).holds
    assert not audit.exact(*laws, claim="1.0986").holds


def test_draws_that_depend_on_other_draws_have_the_right_distribution():
    law = audit.distribution_of(lambda data, below: sum(below(6) + 1 for _ in range(below(2) + 1)), None)
    assert sum(law.values()) == 1
    assert law[1] == Fraction(1, 12)
    assert law[12] == Fraction(1, 72)


def test_an_error_of_an_algorithm_is_an_outcome():
    law = audit.distribution_of(lambda data, below: 1 // below(2), None)
    assert list(law.values()) == [Fraction(1, 2)] * 2
    assert "raised ZeroDivisionError: integer division or modulo by zero" in law


def test_a_deterministic_algorithm_has_one_outcome():
    assert audit.distribution_of(lambda data, below: data, 5) == {5: 1}


def test_an_endless_algorithm_is_refused():
    def tosses_until_heads(data, below):
        while not below(2):
            pass

    with pytest.raises(ValueError, match="must terminate"):
        audit.distribution_of(tosses_until_heads, None)


def test_too_many_random_paths_are_refused(monkeypatch):
    monkeypatch.setattr("discreet.audit.exact_distribution._MAX_PATHS", 50)
    with pytest.raises(ValueError, match="more than 50 sequences"):
        audit.distribution_of(lambda data, below: below(10) + below(10), None)


def test_distributions_and_outputs_do_not_mix():
    with pytest.raises(TypeError, match="two pmfs or two outputs"):
        audit.exact(output(dc.Laplace(1), 0), {0: 1.0}, 1)


@pytest.mark.parametrize("wrong", [None, "law", [0.5, 0.5], dc.Laplace(1)], ids=repr)
def test_a_value_that_is_not_a_distribution_is_refused(wrong):
    with pytest.raises(TypeError, match="p and q must be dicts"):
        audit.exact({0: 1.0}, wrong, 1)


def test_a_value_that_is_not_an_algorithm_is_refused():
    with pytest.raises(TypeError, match="algorithm must be a function"):
        audit.distribution_of(5, None)


def test_equal_distributions_have_no_direction():
    assert audit.exact({0: 1.0}, {0: 1.0}, 1).direction == "equally likely on both"
