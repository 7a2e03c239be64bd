"""Numbers perturbed at home: exact distributions, unbiased means, errors as theory says, and margins that hold."""

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from statistics import NormalDist

import numpy as np
import pytest
from scipy import stats

import discreet as dc
from discreet.local import Aggregator, Reports
from discreet.local.domain import GRID_STEPS
from discreet.local.mean_estimation.duchi import Duchi, DuchiScheme
from discreet.local.mean_estimation.hybrid import Hybrid, HybridScheme
from discreet.local.mean_estimation.noisy_mean import (
    MAX_DEVIATIONS,
    MAX_NOISE_SCALES,
    GaussianScheme,
    LaplaceScheme,
    NoisyMean,
)
from discreet.local.mean_estimation.piecewise import Piecewise, PiecewiseScheme, width_for
from discreet.local.oracle import MIN_EPSILON, odds_for

EPSILONS = ["1/10", "1", "3", "6"]
DELTA = Fraction(1, 10**6)


def gaussian_mean(low, high, epsilon):
    return NoisyMean(low, high, epsilon, delta=DELTA)


MAKERS = [NoisyMean, gaussian_mean, Duchi, Piecewise, Hybrid]
BY_CHANCE = 1e-11  # a right program fails so seldom
FEW = 6  # steps of the schemes whose reports can all be listed


def noisy(epsilon, steps=FEW):
    return LaplaceScheme(steps, Fraction(epsilon))


def bell(epsilon, steps=FEW):
    return GaussianScheme(steps, Fraction(epsilon), DELTA)


def binary(epsilon, steps=FEW):
    return DuchiScheme(steps, odds_for(Fraction(epsilon)))


def window(epsilon, steps=FEW):
    return PiecewiseScheme(steps, width_for(steps, Fraction(epsilon)), odds_for(Fraction(epsilon)))


def either(epsilon, steps=FEW):
    return HybridScheme(window(epsilon, steps), binary(epsilon, steps))


finite = pytest.mark.parametrize("scheme_of", [binary, window, either])
every_scheme = pytest.mark.parametrize("scheme_of", [noisy, bell, binary, window, either])
every_maker = pytest.mark.parametrize("make", MAKERS)


def distribution_of(scheme, place):
    if isinstance(scheme, LaplaceScheme | GaussianScheme):  # the noise has no end, but no weight beyond forty scales
        reach = math.ceil(40 * scheme.noise.scale)
        reports = range(-reach, scheme.steps + reach)
    else:
        reports = scheme.outcomes()
    return {report: scheme.probability(report, place) for report in reports}


def told_by(scheme, report):
    return scheme.estimate(scheme.counts(np.array([report], scheme.dtype)), 1, 2.0)[0][0]


def spreads_of(confidence):
    return NormalDist().inv_cdf((1 + confidence) / 2)


@finite
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_worst_log_ratio_of_numbers_is_the_claimed_epsilon(scheme_of, epsilon):
    distributions = [distribution_of(scheme_of(epsilon), place) for place in range(FEW + 1)]
    assert all(sum(distribution.values()) == 1 for distribution in distributions)
    worst = max(p[report] / q[report] for p in distributions for q in distributions for report in p)
    assert worst == odds_for(Fraction(epsilon))
    assert max(dc.privacy.max_divergence(p, q) for p in distributions for q in distributions) == pytest.approx(
        float(Fraction(epsilon)), abs=1e-12
    )


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_local_noise_loses_exactly_epsilon(epsilon):
    survey = NoisyMean(-3, 7, epsilon)
    lowest, highest = (int(survey.domain.encode([end], "ends")[0]) for end in (-3, 7))
    here, there = (dc.privacy.output(survey.scheme.noise, place) for place in (lowest, highest))
    assert dc.privacy.max_divergence(here, there) == survey.loss().epsilon == Fraction(epsilon)


@every_maker
def test_a_report_costs_the_requested_epsilon(make):
    assert make(0, 1, "1/3").loss() == dc.Loss("1/3", delta=DELTA if make is gaussian_mean else 0)


def hockey_stick(noise, distance, epsilon):
    """Return the exact delta of this noise for two numbers at a distance, at epsilon, and the sum of all weights."""
    reach = math.ceil(40 * noise.scale)
    weights = [math.exp(-((k / float(noise.scale)) ** 2) / 2) for k in range(-reach, reach + 1)]
    total = math.fsum(weights)
    pairs = zip([*weights, *[0.0] * distance], [*[0.0] * distance, *weights], strict=True)
    return math.fsum(max(0.0, p - math.exp(epsilon) * q) for p, q in pairs) / total


@pytest.mark.parametrize("epsilon", ["1/2", "1", "3"])
@pytest.mark.parametrize("delta", ["1/100", "1e-6"])
def test_gaussian_noise_at_home_is_private_at_its_delta_and_hardly_more(epsilon, delta):
    scheme = GaussianScheme(64, Fraction(epsilon), Fraction(delta))
    exact = hockey_stick(scheme.noise, scheme.steps, float(Fraction(epsilon)))
    assert exact <= Fraction(delta)
    less = dc.Gaussian(scheme.noise.scale * Fraction(4, 5))  # a fifth less noise is not enough
    assert hockey_stick(less, scheme.steps, float(Fraction(epsilon))) > Fraction(delta)


@pytest.mark.parametrize("bad", [0, 1, -1, 2, math.nan, "x", True])
def test_bad_deltas_are_refused_by_name(bad):
    with pytest.raises((TypeError, ValueError), match="delta"):
        NoisyMean(0, 1, 1, delta=bad)


def test_reports_of_another_delta_are_refused():
    reports = bytes(gaussian_mean(0, 1, 1).perturb([0.5]))
    for other in (NoisyMean(0, 1, 1), NoisyMean(0, 1, 1, delta="1e-5")):
        with pytest.raises(ValueError, match="configuration"):
            other.read(reports)


@finite
def test_reports_of_numbers_have_the_claimed_distribution(scheme_of):
    for place in (0, 2, FEW):
        assert chance(scheme_of("1"), place, scheme_of("1")) > BY_CHANCE
    assert chance(scheme_of("1"), FEW, scheme_of("1.2")) < BY_CHANCE  # it can tell a distribution that is not this one


def test_noisy_numbers_have_the_claimed_distribution():
    for scheme_of in (noisy, bell):
        assert chance(scheme_of("1"), 2, scheme_of("1")) > BY_CHANCE
        assert chance(scheme_of("1"), 2, scheme_of("1.2")) < BY_CHANCE


def chance(scheme, place, claimed, people=200_000):
    """Return the chi-square probability of fresh reports under the distribution of what is claimed."""
    seen = Counter(scheme.perturb(np.full(people, place)).tolist())
    distribution = distribution_of(claimed, place)
    often = {report: float(p) * people for report, p in distribution.items() if p * people > 5}
    counted, expected = [seen[report] for report in often], list(often.values())
    rest = people - sum(expected)
    if rest > 1e-3:  # all rare reports together
        counted, expected = [*counted, people - sum(counted)], [*expected, rest]
    return stats.chisquare(counted, np.array(expected) * people / sum(expected)).pvalue


@pytest.mark.long(only=["1/10-noisy", "1/10-bell"])
@every_scheme
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_means_are_unbiased_under_the_exact_distribution(scheme_of, epsilon):
    scheme = scheme_of(epsilon)
    for place in range(FEW + 1):
        mean = math.fsum(float(p) * told_by(scheme, report) for report, p in distribution_of(scheme, place).items())
        assert mean == pytest.approx(place, abs=1e-8)


@finite
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_variances_are_what_the_schemes_say(scheme_of, epsilon):
    scheme = scheme_of(epsilon)
    for place in range(FEW + 1):
        distribution = distribution_of(scheme, place)
        variance = math.fsum(float(p) * (told_by(scheme, report) - place) ** 2 for report, p in distribution.items())
        assert variance == pytest.approx(variance_of(scheme, place), rel=1e-9)


def variance_of(scheme, place):
    """Return the variance of what one report tells of a step."""
    away = (place - scheme_steps(scheme) / 2) ** 2
    if isinstance(scheme, LaplaceScheme):
        q = math.exp(-1 / scheme.noise.scale)
        return 2 * q / (1 - q) ** 2
    if isinstance(scheme, GaussianScheme):
        return float(scheme.noise.scale) ** 2
    if isinstance(scheme, DuchiScheme):
        return float(scheme.worst_variance) - away
    if isinstance(scheme, PiecewiseScheme):
        return float(scheme.middle_variance / scheme.truth**2 + (1 - scheme.truth) / scheme.truth * Fraction(away))
    return float(scheme.worst_variance)


def scheme_steps(scheme):
    return scheme.duchi.steps if isinstance(scheme, HybridScheme) else scheme.steps


@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 4, 8])
def test_variances_agree_with_the_papers(epsilon):
    odds, root = math.exp(epsilon), math.exp(epsilon / 2)
    narrow = PiecewiseScheme(GRID_STEPS, round(GRID_STEPS / root), odds_for(Fraction(str(epsilon))))
    half = GRID_STEPS / 2  # the papers' numbers go from -1 to 1
    for t in (0, 0.5, 1):
        place = half * (1 + t)
        duchi = ((odds + 1) / (odds - 1)) ** 2 - t * t
        piecewise = t * t / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)
        mixed = (root + 3) / (3 * root * (root - 1)) + (odds + 1) ** 2 / (root * (odds - 1) ** 2)
        ours = binary(str(epsilon), GRID_STEPS)
        assert variance_of(ours, place) / half**2 == pytest.approx(duchi, rel=1e-4)
        assert variance_of(narrow, place) / half**2 == pytest.approx(piecewise, rel=1e-3)
        assert variance_of(HybridScheme(narrow, ours), place) / half**2 == pytest.approx(mixed, rel=1e-3)


@pytest.mark.parametrize("epsilon", ["1", "2", "4", "8"])
def test_the_window_is_nearly_the_best_one(epsilon):
    chosen = window(epsilon, GRID_STEPS)
    widths = np.unique(np.geomspace(1, 2 * GRID_STEPS, 2000).astype(int))
    every = [PiecewiseScheme(GRID_STEPS, int(width), chosen.odds) for width in widths]
    assert variance_of(chosen, GRID_STEPS) < 1.05 * min(variance_of(each, GRID_STEPS) for each in every)
    narrow = PiecewiseScheme(GRID_STEPS, round(GRID_STEPS / odds_for(Fraction(epsilon) / 2)), chosen.odds)
    assert variance_of(chosen, GRID_STEPS) < variance_of(narrow, GRID_STEPS)
    assert variance_of(chosen, GRID_STEPS / 2) < 1.01 * variance_of(narrow, GRID_STEPS / 2)


def test_the_hybrid_equals_duchis_scheme_until_it_gains():
    assert Hybrid(0, 1, "0.61").scheme == Duchi(0, 1, "0.61").scheme
    assert isinstance(Hybrid(0, 1, "0.62").scheme, HybridScheme)
    for epsilon in ("0.7", "1", "2", "4"):
        steps = (0, GRID_STEPS / 2, GRID_STEPS)
        worst = [max(variance_of(make(0, 1, epsilon).scheme, place) for place in steps) for make in MAKERS]
        assert min(worst) == worst[-1]


@pytest.mark.long(but=["1-binary", "4-binary"])
@every_scheme
@pytest.mark.parametrize("epsilon", ["1", "4"])
def test_errors_are_within_five_percent_of_theory(scheme_of, epsilon):
    people, times = 500, 8_000  # errors of so many surveys: five percent are seven deviations
    scheme = scheme_of(epsilon, GRID_STEPS)
    places = (np.arange(people) * 0.6 / people * GRID_STEPS).astype(np.int64)
    reports = scheme.perturb(np.tile(places, times)).reshape(times, people)
    errors = [scheme.estimate(scheme.counts(each), people, 2.0)[0][0] - places.mean() for each in reports]
    expected = math.sqrt(sum(variance_of(scheme, int(place)) for place in places)) / people
    assert math.sqrt(np.mean(np.square(errors))) == pytest.approx(expected, rel=0.05)


@every_maker
@pytest.mark.parametrize("epsilon", [0.5, 1, 4])
def test_margins_of_many_are_hardly_wider_than_theory(make, epsilon):
    salaries, survey = made_up(100_000), make(0, 200_000, epsilon)
    _, margin = survey.estimate(survey.perturb(salaries))
    places = survey.domain.encode(salaries, "salaries")
    mean = sum(variance_of(survey.scheme, int(place)) for place in places[::100]) / len(places[::100])
    expected = spreads_of(0.95) * math.sqrt(mean / len(places)) * 200_000 / GRID_STEPS
    # From bits nobody can tell how far apart people are: they are taken to be alike, which is the worst.
    assert 0.99 < margin / expected < (1.07 if make is Duchi else 1.02)


def test_a_bits_margin_is_wider_than_theory_only_for_numbers_that_it_cannot_see():
    survey, people = Duchi(0, 1, 4), 100_000
    _, apart = survey.estimate(survey.perturb([0] * (people // 2) + [1] * (people // 2)))
    _, alike = survey.estimate(survey.perturb([0.5] * people))
    assert apart == pytest.approx(alike, rel=0.001)  # the bits look the same


def made_up(people):
    return np.random.default_rng(5).gamma(4, 15_000, people).clip(0, 200_000)


@every_maker
def test_margins_fall_with_the_square_root_of_the_number_of_people(make):
    survey = make(0, 200_000, 1)
    margins = [survey.estimate(survey.perturb(made_up(people))).margins for people in (10_000, 40_000, 160_000)]
    for more, less in pairwise(margins):
        assert less / more == pytest.approx(1 / 2, rel=0.02)


@pytest.mark.parametrize("epsilon", ["1/2", "2", "8"])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
def test_the_margin_of_bits_holds_for_any_number_of_people(epsilon, confidence):
    scheme = binary(epsilon, GRID_STEPS)
    for people in (1, 2, 5, 20, 100, 400):
        for low, high in ((0, 0), (0.02, 0.02), (0.3, 0.3), (0.5, 0.5), (0, 1), (0, 0.2)):
            ends = [round(end * GRID_STEPS) for end in (low, high)]
            half = people // 2
            ones = [float(scheme.probability(1, place)) for place in ends]
            distribution = np.convolve(
                *(stats.binom.pmf(range(n + 1), n, p) for n, p in zip((half, people - half), ones, strict=True))
            )
            mean = (half * ends[0] + (people - half) * ends[1]) / people
            found = [scheme.estimate(np.array([count]), people, spreads_of(confidence)) for count in range(people + 1)]
            inside = [abs(each[0][0] - mean) <= each[1][0] for each in found]
            assert distribution @ inside >= confidence


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99, 0.999])
def test_the_margin_of_noise_holds_for_any_number_of_people(confidence):
    scheme = noisy("1", 16)
    distribution = np.array([dc.privacy.pmf(scheme.noise, k) for k in range(-700, 701)])
    of_sum = distribution
    for people in (1, 2, 4, 8, 16, 32, 64):
        reach = len(of_sum) // 2
        (mean,), (margin,) = scheme.estimate(np.array([0, 5 * people]), people, spreads_of(confidence))
        assert mean == 5
        inside = np.abs(np.arange(-reach, reach + 1)) <= (margin - 0.5) * people
        assert of_sum[inside].sum() >= confidence - 1e-12
        of_sum = np.convolve(of_sum, of_sum)[reach:-reach] if people >= 8 else np.convolve(of_sum, of_sum)


@pytest.mark.long(only=["1000-1/2-either"])
@pytest.mark.parametrize("scheme_of", [window, either])
@pytest.mark.parametrize("epsilon", ["1/2", "6"])
@pytest.mark.parametrize("people", [1, 30, 1000])
def test_the_margin_of_windows_holds_for_few_and_for_many(scheme_of, epsilon, people):
    scheme, times = scheme_of(epsilon, GRID_STEPS), 1000
    for place in (0, GRID_STEPS // 3, GRID_STEPS // 2):
        reports = scheme.perturb(np.full(people * times, place)).reshape(times, people)
        found = [scheme.estimate(scheme.counts(each), people, spreads_of(0.95)) for each in reports]
        outside = sum(abs(mean[0] - place) > margin[0] for mean, margin in found)
        assert stats.binom.sf(outside - 1, times, 0.05) > BY_CHANCE


@every_maker
def test_the_mean_salary_is_within_its_margin_in_95_of_100_surveys(make):
    salaries, survey, times = made_up(400), make(0, 200_000, 1), 1000
    mean = salaries.mean()
    reports = survey.perturb(np.tile(salaries, times))
    found = [survey.estimate(reports[i * 400 : (i + 1) * 400]) for i in range(times)]
    outside = sum(abs(each.estimates - mean) > each.margins for each in found)
    assert stats.binom.sf(outside - 1, times, 0.05) > BY_CHANCE


@every_maker
def test_messages_and_aggregators_give_the_same_mean(make):
    survey = make(-1, 1, 1)
    reports = survey.perturb(np.linspace(-1, 1, 600))
    expected = survey.estimate(reports)
    parts = [Aggregator(survey), Aggregator(survey)]
    parts[0].add(list(reports[:250].messages()))
    parts[1].add(bytes(reports[250:]))
    parts[0].merge(Aggregator.read(survey, bytes(parts[1])))
    assert parts[0].estimate() == expected == survey.estimate(survey.read(bytes(reports)))
    with pytest.raises(ValueError, match="configuration"):
        make(-1, 2, 1).read(bytes(reports))
    with pytest.raises(ValueError, match="configuration"):
        make(-1, 1, 2).read(bytes(reports))
    with pytest.raises(ValueError, match="format version 9"):
        survey.read(b"\x09" + bytes(reports)[1:])


@pytest.mark.parametrize(
    ("make", "size"), [(NoisyMean, 14), (gaussian_mean, 14), (Duchi, 7), (Piecewise, 10), (Hybrid, 10)]
)
def test_a_message_is_short(make, size):
    survey = make(0, 1, 1)
    (message,) = survey.perturb([0.5]).messages()
    assert len(message) == size
    if size > 7:
        with pytest.raises(ValueError, match=r"wrong length|bytes of counts"):
            survey.read(message[:-1])


@pytest.mark.parametrize(
    ("make", "forged"),
    [
        (NoisyMean, (101 << 20) + 1),
        (NoisyMean, -(100 << 20) - 1),
        (gaussian_mean, 100 << 20),
        (gaussian_mean, -(100 << 20)),
        (Duchi, 2),
        (Piecewise, None),
        (Hybrid, None),
    ],
)
def test_impossible_reports_are_refused(make, forged):
    survey = make(0, 1, 1)
    good = bytes(survey.perturb([0.5, 1]))
    first = survey.scheme.size if forged is None else forged  # the first that is beyond
    with pytest.raises(ValueError, match="reports:"):
        survey.read(good + np.array([first], survey.scheme.dtype).tobytes())


@every_maker
def test_the_most_extreme_reports_are_read(make):
    survey = make(0, 1, 1)
    far = {NoisyMean: 100 << 20, gaussian_mean: 15 * int(survey.scheme.noise.scale)} if make in MAKERS[:2] else {}
    farthest = [-far[make], (1 << 20) + far[make]] if far else [0, 1] if make is Duchi else None
    ends = np.array(farthest or [0, survey.scheme.size - 1], survey.scheme.dtype)
    assert len(survey.read(bytes(Reports(survey.configuration, ends)))) == 2


def test_no_number_of_reports_overflows_a_sum_of_noisy_numbers():
    scheme = NoisyMean(0, 1, "1e-9").scheme
    far = np.full(1000, -(1 << 56), np.int64)
    (mean,), _ = scheme.estimate(sum(scheme.counts(far) for _ in range(3)), 3000, 2.0)
    assert mean == -float(1 << 56)
    counts = scheme.counts(np.array([-1, 5, -7], np.int64))
    assert scheme.estimate(counts, 3, 2.0)[0][0] == -1


def test_sums_of_squares_of_ten_billion_reports_do_not_overflow():
    scheme = Piecewise(0, 1, "1/100").scheme
    last = scheme.counts(np.array([scheme.size - 1], scheme.dtype))
    assert max(int(count) for count in last) * 10**10 < 1 << 63


@every_maker
@pytest.mark.parametrize("bad", [[1.5], [-0.5], [-math.inf], [math.inf]])
def test_numbers_outside_the_bounds_are_refused(make, bad):
    with pytest.raises(ValueError, match=r"values: .* is outside the declared bounds, 0 to 1"):
        make(0, 1, 1).perturb([0.5, *bad])


@every_maker
@pytest.mark.parametrize("bad", [["a"], [None], [[0.5]], 0.5, [1j], [np.datetime64("2020-01-01")], "0.5"])
def test_a_value_that_is_not_a_list_of_numbers_is_refused(make, bad):
    with pytest.raises((TypeError, ValueError), match="values"):
        make(0, 1, 1).perturb(bad)


@every_maker
@pytest.mark.parametrize("bad", [(1, 1), (2, 1), (math.nan, 1), (0, math.inf), ("a", 1), (None, 1), (True, 3)])
def test_bad_bounds_are_refused_by_name(make, bad):
    with pytest.raises((TypeError, ValueError), match=r"low|high"):
        make(*bad, epsilon=1)


@every_maker
@pytest.mark.parametrize("bad", [0, -1, "9e-10", math.inf, math.nan, "x", None, 65, True])
def test_bad_epsilons_are_refused_by_name(make, bad):
    with pytest.raises((TypeError, ValueError), match="epsilon"):
        make(0, 1, bad)


def test_the_noise_of_the_smallest_epsilon_fits_in_a_report():
    for survey, scales in (
        (NoisyMean(0, 1, MIN_EPSILON), MAX_NOISE_SCALES),
        (NoisyMean(0, 1, MIN_EPSILON, delta="1e-300"), MAX_DEVIATIONS),
    ):
        assert scales * survey.scheme.noise.scale < np.iinfo(survey.scheme.dtype).max
        assert len(survey.read(bytes(survey.perturb(np.full(1000, 0.5))))) == 1000


@every_maker
def test_zero_reports_give_no_mean_and_no_distribution(make):
    survey = make(0, 1, 1)
    assert len(survey.perturb([])) == 0
    with pytest.raises(ValueError, match="must not be empty"):
        survey.estimate(survey.perturb([]))
    with pytest.raises(ValueError, match="consistency"):
        survey.estimate(survey.perturb([0.5]), consistency="simplex")


@every_maker
def test_numbers_of_any_type_and_the_widest_bounds_are_read(make):
    for values in ([0, 1], [True, False], np.float32([0.25, 0.5]), np.array([1, 0], np.uint8)):
        assert len(make(0, 1, 1).perturb(values)) == 2
    survey = make(-1e300, 1e300, 8)
    mean, margin = survey.estimate(survey.perturb([1e300] * 400 + [-1e300] * 400))
    assert abs(mean) <= 4 * margin < 4e300


def test_reports_that_are_too_many_are_not_listed():
    for make in (NoisyMean, gaussian_mean, Piecewise, Hybrid):
        with pytest.raises(ValueError, match=r"too many .*to list"):
            make(0, 1, 1).distribution(0.5)
    assert sum(Duchi(0, 1, 1).distribution(0.5).values()) == 1
    assert Piecewise(0, 1, 1).pmf(0, 0) / Piecewise(0, 1, 1).pmf(0, 1) == odds_for(Fraction(1))
    assert float(NoisyMean(0, 1, 1).pmf(0, 0) / NoisyMean(0, 1, 1).pmf(0, 1)) == pytest.approx(math.e, rel=1e-12)
