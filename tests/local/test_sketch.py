"""A sketch of an open domain: the exact distribution, collisions that are subtracted, and margins that include them."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import discreet as dc
from discreet.local.aggregator import Aggregator
from discreet.local.frequency_oracles.sketch_scheme import SketchScheme
from discreet.local.oracle import odds_for
from discreet.local.prefixes import IntegerDomain, Prefixes
from discreet.local.sketch_oracle import Sketch, SketchOracle
from discreet.local.value_hashes import OpenDomain, hash_to_position, mix64

NEVER = 1e-10  # how unlikely something must be to count as a mistake
EPSILONS = ["1/10", "1", "3"]


def small(epsilon, domain=None, weights=(1,)):
    """Return a sketch whose reports can all be listed."""
    price = Fraction(epsilon)
    return SketchOracle(domain or OpenDomain(), price, SketchScheme(weights, 3, 3, 2, odds_for(price)))


def of_prefixes(epsilon):
    return small(epsilon, Prefixes(IntegerDomain(6), (3, 6)), (1, 2))


@pytest.mark.long(but=["small-1", "small-1/10", "small-3"])
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("made", [small, of_prefixes])
def test_the_worst_log_ratio_of_a_sketch_is_the_claimed_epsilon(epsilon, made):
    oracle = made(epsilon)
    distributions = [oracle.distribution(value) for value in (0, 1, 2, 3, 17, 63)]
    assert all(sum(distribution.values()) == 1 for distribution in distributions)
    assert max(p[report] / q[report] for p in distributions for q in distributions for report in p) == odds_for(
        Fraction(epsilon)
    )
    worst = max(dc.privacy.max_divergence(p, q) for p in distributions for q in distributions)
    assert worst == pytest.approx(float(Fraction(epsilon)), abs=1e-12)
    assert oracle.loss() == dc.Loss(Fraction(epsilon))


@pytest.mark.long(but=["of_prefixes"])
@pytest.mark.parametrize("made", [small, of_prefixes])
def test_sketched_reports_have_the_claimed_distribution(made):
    people, oracle = 60_000, made(1)

    def surprise(distribution, value):
        seen = Counter(np.asarray(oracle.perturb([value] * people)).tolist())
        assert set(seen) <= set(distribution)
        return stats.chisquare(
            [seen[at] for at in distribution], [float(distribution[at]) * people for at in distribution]
        ).pvalue

    for value in (0, 5, 63):
        assert surprise(oracle.distribution(value), value) > NEVER
    assert surprise(made("6/5").distribution(5), 5) < NEVER


def test_the_distribution_of_a_text_is_that_of_its_reports():
    oracle = small(2)
    distribution = oracle.distribution("tea")
    seen = Counter(np.asarray(oracle.perturb(["tea"] * 30_000)).tolist())
    assert (
        stats.chisquare(
            [seen[at] for at in distribution], [float(distribution[at]) * 30_000 for at in distribution]
        ).pvalue
        > NEVER
    )
    assert all(oracle.pmf(report, "tea") == chance for report, chance in distribution.items())


def test_a_sketch_is_unbiased_where_nothing_collides():
    oracle = small("3/2")
    scheme = oracle.scheme
    for value in range(12):
        mean = sum(
            float(chance) * scheme.counts(np.array([report], scheme.dtype))
            for report, chance in oracle.distribution(value).items()
        )
        table = mean[: -scheme.function_count].reshape(3, 8)
        matrix = np.array([[(-1) ** (i & j).bit_count() for j in range(8)] for i in range(8)])
        supports = (table @ matrix) / scheme.buckets * 3  # each function is used by one in three
        own = float(scheme.rates[0])
        places = [int(hash_to_position(oracle.domain.hash_values([value], "value")[0], row, 3)[0]) for row in range(3)]
        expected = np.full((3, 8), 1 / scheme.buckets)
        expected[range(3), places] = own
        assert np.allclose(supports, expected)


@pytest.mark.long
def test_supports_are_those_of_the_reports_one_by_one():
    oracle = small(1)
    reports = oracle.perturb([1, 2, 3, 4, 5] * 50)
    supports, people = oracle.scheme.support_counts(oracle.counts(reports), 0)
    assert people.tolist() == np.bincount(np.asarray(reports)["function"], minlength=3).tolist()
    any_ = (1 - oracle.scheme.truth) / 4
    for value in range(20):
        row_places = [
            int(hash_to_position(oracle.domain.hash_values([value], "value")[0], row, 3)[0]) for row in range(3)
        ]
        likelier = [r[0] for r in np.asarray(reports).tolist() if oracle.pmf(r, value) > any_ / 24]
        counted = Counter(likelier)
        assert [supports[row, place] for row, place in enumerate(row_places)] == [counted[row] for row in range(3)]


@pytest.mark.parametrize("bits", [2, 5, 16])
def test_hashes_collide_in_a_row_as_often_as_claimed(bits):
    marks = mix64(np.arange(3000, dtype=np.uint64))
    rows = range(64)
    pairs = len(marks) * (len(marks) - 1) / 2
    met = (
        sum((np.bincount(hash_to_position(marks, row, bits)).astype(float) ** 2).sum() - len(marks) for row in rows) / 2
    )
    assert met / (64 * pairs) == pytest.approx(2.0**-bits, rel=0.05)


def test_public_functions_never_change():
    numbers = np.array([0, 1, 2**63, 2**64 - 1], np.uint64)
    assert mix64(numbers).tolist() == [0, 6238072747940578789, 2720858781877447050, 13029008266876403067]
    assert hash_to_position(numbers, 3, 24).tolist() == [7815881, 4635128, 1474654, 9202965]
    assert OpenDomain().hash_values(["tea", b"tea"], "values").tolist() == [[10431608578837538234]] * 2


def zipf(people):
    """Return values of so many people, the same in every run: the i-th most frequent has about i^-1.3."""
    weights = np.arange(1, 5001) ** -1.3
    return np.searchsorted(np.cumsum(weights) / weights.sum(), (np.arange(people) + 0.5) / people) * 977


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.5, 1, 2])
def test_errors_and_margins_of_a_sketch_are_those_of_the_theory(epsilon):
    people, rounds = 30_000, 100
    oracle, values = Sketch(epsilon, rows=16, bits=12), zipf(people)
    asked = np.arange(128) * 977
    truth = np.bincount(values // 977, minlength=5000)[:128] / people
    estimates, margins = zip(*(oracle.shares(oracle.perturb(values), asked) for _ in range(rounds)), strict=True)
    errors = np.array(estimates) - truth
    own, other = map(float, oracle.scheme.rates)
    noise = (truth * own * (1 - own) + (1 - truth) * other * (1 - other)) / (people * (own - other) ** 2)
    # The functions are always the same, so what they sort together by chance is an error that stays.
    spread = errors - errors.mean(axis=0)
    assert abs(math.sqrt((spread**2 / noise).mean() / (1 - 1 / rounds)) - 1) < 0.05
    repeats = ((np.bincount(values // 977) / people) ** 2).sum()
    theory = np.sqrt(noise + (repeats - truth**2) / (16 << 12))
    assert np.mean(margins) / (1.96 * theory.mean()) == pytest.approx(1, abs=0.05)
    assert (np.abs(errors) < np.array(margins)).mean() > 0.934


@pytest.mark.long
def test_collisions_are_subtracted_on_average_and_included_in_the_margins():
    people = 200_000
    oracle, values = Sketch(8, rows=8, bits=8), zipf(people)
    nobody = np.arange(2000) * 977 + 1
    shares, margins = oracle.shares(oracle.perturb(values), nobody)
    # Of 2,048 places, each takes one in 256 of those who have another value: without the correction 0.0039.
    assert abs(shares.mean()) < 0.0013
    assert 0.8 < shares.std() / (margins.mean() / 1.96) < 1.2
    assert (np.abs(shares) < margins).mean() > 0.9


@pytest.mark.parametrize("epsilon", [1, 4])
def test_how_often_two_people_agree_is_read_from_the_reports(epsilon):
    people, oracle, values = 200_000, Sketch(epsilon, rows=4, bits=10), zipf(200_000)
    supports, asked = oracle.scheme.support_counts(oracle.counts(oracle.perturb(values)), 0)
    repeats = ((np.bincount(values // 977) / people) ** 2).sum()
    assert oracle.scheme.repeat_rate(supports, asked) == pytest.approx(repeats, abs=0.02)


def test_a_sketch_of_texts_finds_their_shares():
    oracle = Sketch(3)
    reports = oracle.perturb(["tea"] * 30_000 + ["coffee"] * 15_000 + ["wasser", "Öl", "水"] * 5000)
    shares, margins = oracle.shares(reports, ["tea", "coffee", "水", "nothing"])
    assert (np.abs(shares - np.array([0.5, 0.25, 1 / 12, 0])) < 4 * margins).all()
    assert (margins < 0.01).all()


def test_reports_of_a_sketch_survive_serialisation():
    oracle = Sketch(1, rows=4, bits=8)
    reports = oracle.perturb(np.arange(400) % 3)
    again = oracle.read(reports.messages())
    expected = oracle.shares(reports, [0, 1, 2]).estimates
    assert (oracle.shares(again, [0, 1, 2]).estimates == expected).all()
    assert len(bytes(reports)) == 6 + 400 * 3
    for other in (Sketch(2, rows=4, bits=8), Sketch(1, rows=5, bits=8), Sketch(1, rows=4, bits=9)):
        with pytest.raises(ValueError, match="configuration"):
            other.read(bytes(reports))
        with pytest.raises(ValueError, match="configuration"):
            other.shares(reports, [0])
    with pytest.raises(ValueError, match=r"wrong length|bytes of counts"):
        oracle.read(bytes(reports)[:-1])
    with pytest.raises(ValueError, match="format version 9"):
        oracle.read(b"\x09" + bytes(reports)[1:])


def test_aggregators_of_a_sketch_add_up_like_its_reports():
    oracle = Sketch(1, rows=4, bits=8)
    reports = oracle.perturb(np.arange(400) % 3)
    tallies = Aggregator(oracle), Aggregator(oracle)
    tallies[0].add(reports[:150])
    tallies[1].add(bytes(reports[150:]))
    tallies[0].merge(Aggregator.read(oracle, bytes(tallies[1])))
    assert (tallies[0].counts == oracle.counts(reports)).all()
    assert (oracle.shares(tallies[0], [0, 1]).estimates == oracle.shares(reports, [0, 1]).estimates).all()
    with pytest.raises(ValueError, match="configuration"):
        Sketch(2, rows=4, bits=8).shares(tallies[0], [0])


@pytest.mark.parametrize(("field", "limit"), [("function", 5), ("mask", 1 << 9), ("bucket", 4)])
def test_impossible_reports_of_a_sketch_are_refused(field, limit):
    oracle = Sketch(1, rows=5, bits=9)
    reports = oracle.perturb([1, 2, 3])
    reports.array[field][1] = limit - 1
    oracle.read(bytes(reports))
    reports.array[field][1] = limit
    with pytest.raises(ValueError, match=f"{field} {limit} is not below {limit}"):
        oracle.read(bytes(reports))


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        ("tea", TypeError, "values must be a list, not str"),
        (5, TypeError, "values must be a list, not int"),
        ([1, "tea"], TypeError, "all strings or all integers, not int"),
        (["tea", None], TypeError, "not NoneType"),
        ([1.5], TypeError, "not float"),
        ([True], TypeError, "not bool"),
        (np.array([1.5]), TypeError, "not float"),
        (np.array([[1]]), ValueError, "2 dimensions"),
        ([-1], ValueError, "-1 is outside the range 0"),
        ([2**64], ValueError, "18446744073709551616 is outside the range"),
        (np.array([-5]), ValueError, "-5 is outside the range"),
    ],
)
def test_values_must_be_texts_or_integers(wrong, error, text):
    with pytest.raises(error, match=text):
        Sketch(1, rows=1, bits=8).perturb(wrong)


def test_equal_numbers_of_all_types_have_the_same_hashes():
    expected = OpenDomain().hash_values(np.array([7, 2**63 + 1], np.uint64), "values")
    for same in ([7, 2**63 + 1], (np.uint64(7), 2**63 + 1), np.array([7, 2**63 + 1], object), iter([7, 2**63 + 1])):
        assert (OpenDomain().hash_values(same, "values") == expected).all()
    assert OpenDomain().hash_values([], "values").shape == (0, 1)


def test_a_sketch_refuses_what_it_cannot_do():
    for wrong in (0, -1, 65):
        with pytest.raises(ValueError, match="epsilon"):
            Sketch(wrong)
    with pytest.raises(ValueError, match="rows must be at least 1"):
        Sketch(1, rows=0)
    with pytest.raises(ValueError, match="rows must be at most 4096"):
        Sketch(1, rows=5000)
    with pytest.raises(ValueError, match="bits must be at least 8"):
        Sketch(1, bits=7)
    with pytest.raises(ValueError, match="bits must be at most 24"):
        Sketch(1, bits=25)
    oracle = Sketch(1, rows=4, bits=16)
    with pytest.raises(ValueError, match="must not be empty"):
        oracle.shares(oracle.perturb([]), [1])
    with pytest.raises(TypeError, match="perturb or read returns"):
        oracle.shares([1, 2], [1])
    with pytest.raises(ValueError, match="confidence"):
        oracle.shares(oracle.perturb([1]), [1], confidence=1)
    with pytest.raises(ValueError, match=r"too many .*to list"):
        oracle.distribution(1)


def test_a_sketch_without_full_value_reports_has_no_shares():
    oracle = of_prefixes(1)
    reports = oracle.perturb([1] * 100)
    short = type(reports)(reports.configuration, reports.array[reports.array["function"] < 3])
    with pytest.raises(ValueError, match="nobody reported a whole value"):
        oracle.shares(short, [1])
