"""RAPPOR: all reports of a device together within epsilon, one report within less, and shares from noisy filters."""

import hashlib
import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import discreet as dc
from discreet.local.frequency_oracles.rappor import RAPPOR, PermanentResponse, loss_of_one_report
from discreet.local.frequency_oracles.rappor_filters import BloomFilter, _bit_table
from discreet.local.frequency_oracles.unary_encoding import SUE
from discreet.local.oracle import odds_for
from tests.local.measured import BY_CHANCE, fit, fits, mean_by_distribution, surveyed, theory, uneven

SMALL = {
    "basic": {},
    "once": {"noise": (0, 1)},
    "Bloom": {"bits": 5, "cohorts": 3},
    "Bloom, two hashes": {"bits": 5, "cohorts": 3, "hashes": 2},
}
each = pytest.mark.parametrize("settings", SMALL.values(), ids=SMALL)


def permanent_distribution(oracle, value):
    return {kept: oracle.scheme.probability_of_permanent(kept, value) for kept in oracle.scheme.outcomes()}


def worst_ratio(distributions):
    return max(p[outcome] / q[outcome] for p in distributions for q in distributions for outcome in p)


@each
@pytest.mark.parametrize("epsilon", ["1/10", "1", "3", "8"])
def test_a_permanent_response_loses_exactly_epsilon(settings, epsilon):
    oracle = RAPPOR(4, epsilon, **settings)
    distributions = [permanent_distribution(oracle, value) for value in range(4)]
    assert all(sum(distribution.values()) == 1 for distribution in distributions)
    worst = worst_ratio(distributions)
    assert worst <= odds_for(Fraction(epsilon))
    assert math.log(worst) == pytest.approx(float(oracle.loss().epsilon), abs=1e-12)


@each
@pytest.mark.parametrize("epsilon", ["1/10", "1", "3", "8"])
def test_one_report_loses_less_than_all(settings, epsilon):
    oracle = RAPPOR(4, epsilon, **settings)
    distributions = [oracle.distribution(value) for value in range(4)]
    assert all(sum(distribution.values()) == 1 for distribution in distributions)
    worst = max(dc.privacy.max_divergence(p, q) for p in distributions for q in distributions)
    once, for_ever = loss_of_one_report(oracle).epsilon, oracle.loss().epsilon
    assert worst == pytest.approx(float(once), abs=2e-12)
    assert worst <= float(once) + 1e-15
    assert once == for_ever if settings.get("noise") else once < for_ever / 2


def test_the_two_losses_are_those_of_the_paper():
    # Section 3.1 with h = 2, f = 1/2, q = 3/4, p = 1/2; there epsilon is 2·h·ln((1-f/2)/(f/2)) = 4·ln(3).
    epsilon = 4 * math.log(3)
    oracle = RAPPOR(4, epsilon, bits=5, cohorts=3, hashes=2)
    assert float(oracle.scheme.flip) == pytest.approx(1 / 4, abs=1e-12)
    own, other = (0.75 + 0.5) / 4 + 0.75 / 2, (0.75 + 0.5) / 4 + 0.5 / 2
    once = 2 * math.log(own * (1 - other) / (other * (1 - own)))
    assert float(loss_of_one_report(oracle).epsilon) == pytest.approx(once, abs=1e-10)


def test_several_reports_of_a_device_stay_within_epsilon():
    oracle = RAPPOR(2, 1)
    copies = [oracle.scheme.rates, oracle.scheme.noise]
    assert all(0 < rate < 1 for rates in copies for rate in rates)
    kept = [permanent_distribution(oracle, value) for value in (0, 1)]
    losses = []
    for times in (1, 2, 3):
        distributions = [Counter(), Counter()]
        for seen in itertools.product(oracle.scheme.outcomes(), repeat=times):
            likely = {before: math.prod(copy_chance(oracle, before, after) for after in seen) for before in kept[0]}
            for value in (0, 1):
                distributions[value][seen] = sum(chance * likely[before] for before, chance in kept[value].items())
        assert [sum(distribution.values()) for distribution in distributions] == [1, 1]
        losses.append(math.log(worst_ratio(distributions)))
    assert losses[0] == pytest.approx(float(loss_of_one_report(oracle).epsilon), abs=1e-11)
    assert losses[0] < losses[1] < losses[2] < 1
    anew = 3 * losses[0]  # three reports that each have fresh noise of both steps
    assert losses[2] < anew


def copy_chance(oracle, kept, report):
    """Return how likely a device that keeps this reports that, in a domain of two values."""
    unset, set_ = oracle.scheme.noise
    chances = [set_ if kept[0] >> bit & 1 else unset for bit in (0, 1)]
    return math.prod(p if report[0] >> bit & 1 else 1 - p for bit, p in enumerate(chances))


@pytest.mark.long
def test_a_thousand_reports_without_the_permanent_step_reveal_the_value_and_with_it_do_not():
    size, people, times = 4, 2000, 1000
    oracle, values = RAPPOR(size, 1), np.arange(2000) % 4
    kept = PermanentResponse.draw(oracle, values)
    anew, again = np.zeros((people, size)), np.zeros((people, size))
    for _ in range(times):
        anew += shown_bits(oracle.perturb(values), size)
        again += shown_bits(kept.report(), size)
    assert (anew.argmax(axis=1) == values).mean() > 0.9  # each report by itself told hardly anything
    # Whoever sees a thousand copies knows what the device keeps, and no more: the best guess from that is known.
    threshold = times * float(sum(oracle.scheme.noise)) / 2
    learnt = [bytes([sum(1 << place for place in np.flatnonzero(row > threshold))]) for row in again]
    assert learnt == kept.array.tolist()
    distributions = [permanent_distribution(oracle, value) for value in range(size)]
    best = float(
        sum(max(distribution[outcome] for distribution in distributions) for outcome in distributions[0]) / size
    )
    assert best < math.e / (math.e + size - 1)  # what epsilon = 1 allows for any protocol
    guessed = np.mean(
        [max(range(size), key=lambda v: distributions[v][k]) == true for k, true in zip(learnt, values, strict=True)]
    )
    assert guessed < best + 7 * math.sqrt(best * (1 - best) / people)


def shown_bits(reports, size):
    rows = np.asarray(reports).view(np.uint8)[:, None]
    return np.unpackbits(rows, axis=1, bitorder="little", count=size)


@each
def test_permanent_responses_have_the_claimed_distribution(settings):
    oracle, other = RAPPOR(4, 2, **settings), RAPPOR(4, "2.4", **settings)
    for value in (0, 3):
        seen = Counter(PermanentResponse.draw(oracle, [value] * 200_000).array.tolist())
        assert fits(seen, 200_000, permanent_distribution(oracle, value)) > BY_CHANCE
        assert fits(seen, 200_000, permanent_distribution(other, value)) < BY_CHANCE
        assert fits(seen, 200_000, permanent_distribution(oracle, 1)) < BY_CHANCE


@each
def test_reports_are_drawn_from_the_distribution_and_another_would_be_noticed(settings):
    oracle, weaker = RAPPOR(4, 2, **settings), RAPPOR(4, 2, **{**settings, "noise": ("2/5", "3/4")})
    for value in (0, 3):
        assert fit(oracle, value, 200_000, oracle.distribution(value)) > BY_CHANCE
    assert fit(oracle, 2, 200_000, oracle.distribution(1)) < BY_CHANCE
    assert fit(oracle, 2, 200_000, weaker.distribution(2)) < BY_CHANCE


def test_reports_of_a_device_are_drawn_afresh_each_time():
    oracle = RAPPOR(2, 2, noise=("1/4", "2/3"))
    for before in oracle.scheme.outcomes():
        kept = PermanentResponse(oracle, np.full(100_000, np.void(before), oracle.scheme.dtype))
        first, second = (np.asarray(kept.report()).tolist() for _ in range(2))
        distribution = {
            one + two: copy_chance(oracle, before, one) * copy_chance(oracle, before, two)
            for one, two in itertools.product(oracle.scheme.outcomes(), repeat=2)
        }
        seen = Counter(one + two for one, two in zip(first, second, strict=True))
        assert fits(seen, 100_000, distribution) > BY_CHANCE


def test_without_noise_in_reports_it_is_symmetric_unary_encoding():
    assert RAPPOR(3, 1, noise=(0, 1)).distribution(1) == SUE(3, 1).distribution(1)


@each
@pytest.mark.parametrize("epsilon", ["1/2", "4"])
def test_estimates_are_right_on_average_under_the_exact_distribution(settings, epsilon):
    oracle = RAPPOR(4, epsilon, **settings)
    for value in range(4):
        assert mean_by_distribution(oracle, value) == pytest.approx(np.eye(4)[value], abs=1e-8)


@pytest.mark.parametrize("hashes", [1, 2])
def test_margins_of_a_filter_come_from_the_exact_variance(hashes):
    oracle = RAPPOR(4, 3, bits=5, cohorts=3, hashes=hashes)
    variances = []
    for value in range(4):
        distribution = oracle.distribution(value)
        arrays = [np.frombuffer(report, oracle.scheme.dtype) for report in distribution]
        found = np.array([oracle.estimate(dc.local.Reports(oracle.configuration, array)).estimates for array in arrays])
        variances.append(np.array([float(p) for p in distribution.values()]) @ (found - np.eye(4)[value]) ** 2)
    shares = np.array([0.5, 0.3, 0.2, 0])
    assert oracle.scheme.filter._variance_per_person(shares, oracle.scheme.rates)[0] == pytest.approx(
        shares @ np.array(variances)
    )


def test_errors_of_the_basic_kind_are_those_of_theory_and_margins_hold():
    for epsilon in ("1", "4"):
        oracle, values = RAPPOR(128, epsilon), uneven(128, 2000)
        errors, margins = surveyed(oracle, values, 150)
        expected = theory(oracle.scheme.rates, values, 128)
        assert np.sqrt((errors**2).mean() / (expected**2).mean()) == pytest.approx(1, rel=0.05)
        assert 0.94 < (abs(errors) <= margins).mean() < 0.99


@pytest.mark.long
@pytest.mark.parametrize("settings", [{"bits": 32, "cohorts": 16}, {"bits": 64, "cohorts": 8, "hashes": 2}])
@pytest.mark.parametrize("epsilon", ["1", "6"])
def test_errors_of_a_filter_are_those_of_theory_and_margins_hold(settings, epsilon):
    oracle, values = RAPPOR(128, epsilon, **settings), uneven(128, 2000)
    errors, margins = surveyed(oracle, values, 150)
    expected = theory_of_filter(oracle, values)
    # Errors of values that share bits go together, so 19,200 squares are worth somewhat fewer.
    assert np.sqrt((errors**2).mean() / (expected**2).mean()) == pytest.approx(1, rel=0.06)
    assert 0.94 < (abs(errors) <= margins).mean() < 0.99
    assert margins.mean(axis=0) == pytest.approx(1.959964 * expected, rel=0.06)


def theory_of_filter(oracle, values):
    """Return the standard deviation of each estimate by a way of its own: the pseudo-inverse, value by value."""
    bloom, (own, other) = oracle.scheme.filter, map(float, oracle.scheme.rates)
    stands = np.zeros((bloom.cohorts, bloom.bits, bloom.size))
    for cohort, place in itertools.product(range(bloom.cohorts), range(bloom.size)):
        stands[cohort, bloom.value_bits(np.array([cohort]), np.array([place]))[0], place] = 1
    weights = np.linalg.pinv(stands.reshape(-1, bloom.size)).reshape(bloom.size, bloom.cohorts, bloom.bits)
    weights *= bloom.cohorts / (own - other)
    total = np.zeros(bloom.size)
    for place, people in enumerate(np.bincount(values, minlength=bloom.size)):
        chance = np.where(stands[:, :, place] == 1, own, other)
        means = np.einsum("ucb,cb->uc", weights, chance - other)
        squares = np.einsum("ucb,cb->uc", weights**2, chance * (1 - chance)) + means**2
        total += people * (squares.mean(axis=1) - means.mean(axis=1) ** 2)
    return np.sqrt(total) / len(values)


@pytest.mark.long
def test_margins_hold_for_few_people_too():
    for noise in ((0, 1), ("1/2", "3/4"), (0, "1/2")):
        oracle = RAPPOR(12, 6, bits=8, cohorts=6, noise=noise)
        for people in (1, 4, 20):
            errors, margins = surveyed(oracle, np.arange(people) * 5 % 12, 200)
            assert (abs(errors) <= margins).mean() > 0.95


def test_a_filter_without_noise_counts():
    values = np.repeat([0, 1, 2, 3], [7, 20, 41, 32])
    for cohorts in (1, 3):
        oracle = RAPPOR(4, 64, bits=8, cohorts=cohorts, noise=(0, 1))
        shares, margins = oracle.estimate(oracle.perturb(values), confidence="0.999999999999")
        assert (abs(shares - [0.07, 0.2, 0.41, 0.32]) <= margins).all()
        assert cohorts > 1 or shares == pytest.approx([0.07, 0.2, 0.41, 0.32])


def test_the_bits_of_a_value_differ_and_are_spread_over_the_filter():
    table = _bit_table(BloomFilter(500, 64, 3, 8))
    assert table.shape == (8, 500, 3)
    assert table.min() == 0
    assert table.max() == 63
    assert all(len(set(bits)) == 3 for bits in table.reshape(-1, 3).tolist())
    load = np.bincount(table.ravel(), minlength=64)
    assert load.min() > 0.6 * load.mean()
    assert load.max() < 1.4 * load.mean()
    assert not np.array_equal(table[0], table[1])


def test_the_public_hash_functions_never_change():
    # Reports that are stored could not be read by others.
    table = _bit_table(BloomFilter(100, 32, 2, 4)).astype("<u2").tobytes()
    assert hashlib.sha256(table).hexdigest()[:16] == "701c2ae11b957523"


def test_indistinguishable_values_are_refused():
    with pytest.raises(ValueError, match="16 bits in each of 4 cohorts cannot distinguish 100 values"):
        RAPPOR(100, 1, bits=16, cohorts=4)
    assert RAPPOR(100, 1, bits=16, cohorts=18).scheme.filter.cohorts == 18  # what the message proposes


@each
def test_messages_are_read_as_they_were_sent(settings):
    oracle = RAPPOR(list("abcd"), 1, **settings)
    reports = oracle.perturb(list("abcd") * 50)
    length = 1 if "bits" not in settings else 2
    assert {len(message) for message in reports.messages()} == {6 + length}
    for received in (bytes(reports), list(reports.messages())):
        again = oracle.read(received)
        assert np.array_equal(oracle.estimate(again).estimates, oracle.estimate(reports).estimates)
    assert np.array_equal(oracle.counts(oracle.read(bytes(reports[::2]))), oracle.counts(reports[::2]))


def test_many_cohorts_take_two_bytes():
    oracle = RAPPOR(20, 4, bits=8, cohorts=300)
    reports = oracle.perturb(np.arange(20_000) % 20)
    assert {len(message) for message in reports[:5].messages()} == {6 + 3}
    cohorts = {int.from_bytes(report[:2], "little") for report in np.asarray(reports).tolist()}
    assert cohorts == set(range(300))
    shares, margins = oracle.estimate(oracle.read(bytes(reports)))
    assert (abs(shares - 0.05) < 4 * margins).all()


def test_impossible_messages_are_refused():
    oracle = RAPPOR(4, 1, bits=5, cohorts=3)
    tally = dc.local.Aggregator(oracle)
    head, good = bytes(oracle.perturb([])), bytes(oracle.perturb([3]))
    for bad, why in [
        (good[:-1], "wrong length"),
        (b"\x02" + good[1:], "format version 2"),
        (bytes(RAPPOR(4, 1, bits=5, cohorts=4).perturb([3])), "configuration"),
        (bytes(RAPPOR(4, 1, bits=5, cohorts=3, noise=(0, 1)).perturb([3])), "configuration"),
        (bytes(PermanentResponse.draw(oracle, [3])), "configuration"),
        (head + b"\x03\x00", "cohort 3 is outside the range 0 to 2"),
        (head + b"\x02\x20", "padding"),
    ]:
        with pytest.raises(ValueError, match=why):
            tally.add([good, bad])
    assert tally.people == 0
    assert oracle.pmf(b"\x03\x00", 0) == oracle.pmf(b"\x02\x20", 0) == 0


@each
def test_merged_aggregators_equal_a_single_one(settings):
    oracle = RAPPOR(4, 1, **settings)
    reports = oracle.perturb(np.arange(600) % 4)
    first, second = dc.local.Aggregator(oracle), dc.local.Aggregator(oracle)
    first.add(reports[:250])
    second.add(list(reports[250:].messages()))
    first.merge(dc.local.Aggregator.read(oracle, bytes(second)))
    assert np.array_equal(first.estimate().estimates, oracle.estimate(reports).estimates)


@each
def test_permanent_responses_are_stored_and_read(settings):
    oracle = RAPPOR(4, 1, **settings)
    kept = PermanentResponse.draw(oracle, np.arange(40) % 4)
    assert len(kept) == 40
    again = PermanentResponse.read(oracle, bytes(kept))
    assert again.array.tolist() == kept.array.tolist()
    by_device = [bytes(kept[i : i + 1]) for i in range(40)]
    assert PermanentResponse.read(oracle, by_device).array.tolist() == kept.array.tolist()
    assert len(PermanentResponse.read(oracle, by_device[0]).report()) == 1
    with pytest.raises(TypeError, match="slice"):
        kept[0]
    for bad, why in [
        (bytes(kept)[:5], "bytes"),
        (bytes(kept)[:-1] if "bits" in settings else b"\x02" + bytes(kept)[1:], "wrong length|format version 2"),
        (bytes(PermanentResponse.draw(RAPPOR(4, 2, **settings), [0])), "configuration"),
        (bytes(kept.report()), "configuration"),
        (bytes(kept)[:-1] + b"\xf0", "padding"),
    ]:
        with pytest.raises(ValueError, match=why):
            PermanentResponse.read(oracle, bad)


def test_only_rappor_has_permanent_responses():
    other = dc.local.GRR(4, 1)
    for refused in (
        lambda: PermanentResponse.draw(other, [1]),
        lambda: loss_of_one_report(other),
        lambda: PermanentResponse.read(0, b""),
    ):
        with pytest.raises(TypeError, match="oracle must be a RAPPOR oracle"):
            refused()


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"bits": 1}, "bits"),
        ({"bits": 3, "hashes": 2}, "bits"),
        ({"bits": 8.0}, "bits"),
        ({"bits": True}, "bits"),
        ({"bits": 1024, "cohorts": 17}, "bits"),
        ({"bits": 8, "hashes": 0}, "hashes"),
        ({"bits": 32, "hashes": 9}, "hashes"),
        ({"hashes": 2}, "bits is required"),
        ({"cohorts": 2}, "bits is required"),
        ({"bits": 8, "cohorts": 0}, "cohorts"),
        ({"bits": 8, "cohorts": "many"}, "cohorts"),
        ({"noise": ("3/4", "1/2")}, "noise"),
        ({"noise": ("1/2", "1/2")}, "noise"),
        ({"noise": (-1, 1)}, "noise"),
        ({"noise": (0, 2)}, "noise"),
        ({"noise": (0, math.nan)}, "noise"),
        ({"noise": 0.5}, "noise"),
        ({"noise": "ab"}, "noise"),
    ],
)
def test_bad_settings_are_refused_by_name(settings, name):
    with pytest.raises((TypeError, ValueError), match=name):
        RAPPOR(4, 1, **settings)


@pytest.mark.parametrize("bad", [1, 0, 2.5, "ab", None, ["a"], ["a", "a"], (1 << 20) + 1, True])
def test_bad_domains_are_refused_by_name(bad):
    with pytest.raises((TypeError, ValueError), match="domain"):
        RAPPOR(bad, 1)
    with pytest.raises(ValueError, match="domain: a Bloom filter of 2,049 values"):
        RAPPOR(2049, 1, bits=64)


@pytest.mark.parametrize("bad", [0, -1, math.inf, math.nan, "x", None, 65, True])
def test_bad_epsilons_are_refused_by_name(bad):
    with pytest.raises((TypeError, ValueError), match="epsilon"):
        RAPPOR(3, bad)


@pytest.mark.parametrize("bad", [[3], [-1], [0.5], ["0"], [[0]], [None]])
def test_bad_values_are_refused_by_name(bad):
    for draw in (RAPPOR(3, 1).perturb, lambda values: PermanentResponse.draw(RAPPOR(3, 1), values)):
        with pytest.raises((TypeError, ValueError), match="values"):
            draw(bad)


def test_a_distribution_of_too_many_reports_is_refused():
    with pytest.raises(ValueError, match=r"there are 64·2\^16 possible reports, too many to list"):
        RAPPOR(20, 1, bits=16).distribution(0)


def test_zero_reports_give_no_estimate():
    for oracle in (RAPPOR(3, 1), RAPPOR(3, 1, bits=4, cohorts=4)):
        assert len(PermanentResponse.draw(oracle, []).report()) == 0
        with pytest.raises(ValueError, match="empty"):
            oracle.estimate(oracle.perturb([]))


def test_permanent_responses_must_be_drawn():
    with pytest.raises(TypeError, match=r"PermanentResponse\.draw"):
        dc.local.PermanentResponse(dc.local.RAPPOR(["bus", "car"], 1), ["bus"])
