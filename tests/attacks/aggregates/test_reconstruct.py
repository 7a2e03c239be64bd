import os
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet import attacks
from discreet.attacks.aggregates import subset_oracles
from discreet.attacks.aggregates.linear_reconstruction import expected_accuracy, guess_bits, one_at_a_time
from discreet.attacks.aggregates.reconstruct import ATTACK, draw_subsets, reconstruct
from discreet.attacks.data.secret_bits import Secrets, read_secrets
from tools.pictures.attack_figures import accuracy_by_error_figure

DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))
SURE = 1 - 1e-9  # intervals of the tests that meet real noise


@pytest.mark.parametrize(
    ("noise", "least", "most"), [(1 / 8, 0.998, 1), (1 / 4, 0.95, 0.97), (1 / 2, 0.78, 0.83), (1, 0.64, 0.70)]
)
def test_noisy_sums_disclose_as_many_bits_as_theory_predicts(noise, least, most):
    result = reconstruct(Secrets.simulate(1024, random_state=3), noise=noise, random_state=4)
    assert least <= result.success <= most
    assert result.details["accuracy of least squares, in theory"] == pytest.approx(result.success, abs=0.035)


def test_noise_far_beyond_the_square_root_leaves_guessing():
    assert reconstruct(noise=100, random_state=0).success == pytest.approx(1 / 2, abs=0.07)


@pytest.mark.parametrize("method", ["least squares", "linear programme"])
def test_non_private_sums_disclose_every_bit(method):
    result = reconstruct(Secrets.simulate(96, random_state=0), method=method, random_state=1)
    assert result.success == 1
    assert result.implied.low > 2


def test_both_solvers_recover_most_bits_from_noisy_sums():
    people = Secrets.simulate(128, random_state=5)
    for method in ("least squares", "linear programme"):
        assert reconstruct(people, noise=1 / 4, method=method, random_state=6).success > 0.88


def test_outliers_mislead_least_squares_but_not_the_linear_programme():
    def oracle_for(bits):
        rng = np.random.default_rng(0)
        return lambda subsets: np.where(
            rng.random(len(subsets)) < 0.1, rng.uniform(0, 2000, len(subsets)), subset_oracles.exact_sums(bits)(subsets)
        )

    people = Secrets.simulate(128, random_state=5)
    squares, programme = (
        reconstruct(people, defence=oracle_for, method=method, random_state=6).success
        for method in ("least squares", "linear programme")
    )
    assert programme == 1
    assert squares < 0.7


def test_one_person_at_a_time_needs_only_their_own_column():
    rng = np.random.default_rng(0)
    bits, subsets = rng.random(100) < 1 / 2, rng.random((1600, 100)) < 1 / 2
    answers = subset_oracles.exact_sums(bits)(subsets)
    everybody = one_at_a_time(subsets, answers)
    alone = [one_at_a_time(subsets[:, [person]], answers)[0] for person in range(100)]
    assert everybody == pytest.approx(alone)
    assert ((everybody > 1 / 2) == bits).mean() > 0.95


def test_people_in_every_query_or_in_none_stay_unknown_one_at_a_time():
    subsets = np.array([[True, False, True], [True, False, False]])
    assert one_at_a_time(subsets, np.array([2.0, 1.0]))[:2].tolist() == [1 / 2, 1 / 2]


def test_rounding_to_tens_hides_nothing():
    assert reconstruct(defence="easy", random_state=0).success == 1


def test_rounding_hides_people_who_are_queried_one_by_one():
    result = reconstruct(Secrets.simulate(512, random_state=0), defence="easy", questions="one by one", random_state=0)
    assert result.success == pytest.approx(1 / 2, abs=0.1)


@pytest.mark.parametrize("epsilon", ["1/10", 1])
def test_the_curator_protects_bits_against_random_subsets(epsilon):
    result = reconstruct(Secrets.simulate(128, random_state=0), defence="curator", epsilon=epsilon, random_state=0)
    assert result.details["answered"] == "in SQL"
    assert result.evidence.implied(confidence=SURE).low == 0
    assert result.success < 0.8  # a coin, and six standard deviations


@pytest.mark.long
def test_one_by_one_approaches_what_epsilon_allows_and_does_not_exceed_it():
    result = reconstruct(
        Secrets.simulate(2048, random_state=0), defence="curator", epsilon=1, questions="one by one", random_state=0
    )
    assert result.ceiling == pytest.approx(0.731, abs=0.001)
    # Between integers the noise is nearly continuous, for which a threshold gets 1 - exp(-1/2)/2 = 0.697.
    assert 0.63 < result.success < result.ceiling + 0.065  # six standard deviations
    assert result.evidence.implied(confidence=SURE).low <= 1
    assert result.implied.low > 0.4


@pytest.mark.long
def test_a_small_epsilon_discloses_next_to_nothing_one_by_one():
    result = reconstruct(
        Secrets.simulate(2048, random_state=0),
        defence="curator",
        epsilon="1/10",
        questions="one by one",
        random_state=0,
    )
    assert result.evidence.implied(confidence=SURE).low <= 0.1
    assert result.success < 0.6


@pytest.mark.long
def test_the_curators_noise_is_the_same_in_sql_and_for_vectors():
    """Many questions go to the kernel: it must not answer more exactly, nor much less, than SQL does."""
    bits = np.zeros(64, bool)
    subsets = np.random.default_rng(0).random((2100, 64)) < 1 / 2  # two parts in SQL
    spreads = [
        ask(bits, subsets, dc.Loss(20).epsilon, 0).std()
        for ask in (subset_oracles._ask_curator, subset_oracles._perturb_sums)
    ]
    scale = subsets.sum(axis=0).max() / 20 * 2**0.5
    assert spreads[0] == pytest.approx(scale, rel=0.3)
    assert spreads[1] == pytest.approx(scale, rel=0.3)


@pytest.mark.long
def test_all_parts_together_cost_exactly_epsilon(monkeypatch):
    spent = []
    close = dc.Curator.__exit__

    def closing(self, *error):
        spent.append(self.budget().spent)
        return close(self, *error)

    monkeypatch.setattr(dc.Curator, "__exit__", closing)
    subsets = np.random.default_rng(0).random((2100, 8)) < 1 / 2
    subset_oracles._ask_curator(np.ones(8, bool), subsets, dc.Loss(3).epsilon, 0)
    assert spent[0].epsilon == 3


@pytest.mark.long
def test_a_delta_selects_gaussian_noise_and_is_counted():
    people = Secrets.simulate(128, random_state=0)
    pure = reconstruct(people, defence="curator", epsilon=1, random_state=0)
    result = reconstruct(people, defence="curator", epsilon=1, delta="1e-6", random_state=0)
    assert result.delta == 1e-6
    assert 2 * result.details["error of an answer (RMS)"] < pure.details["error of an answer (RMS)"]


def test_a_fresh_epsilon_for_every_answer_is_caught():
    """The classical mistake: each answer is private, and nobody adds them up."""

    def oracle_for(bits):
        noise = dc.laplace_for(dc.Sensitivity(groups=1, size=1), "1/10")
        return lambda subsets: noise.perturb(subset_oracles.exact_sums(bits)(subsets).astype(np.int64))

    people = Secrets.simulate(1024, random_state=0)
    result = reconstruct(people, defence=oracle_for, epsilon="1/10", random_state=0)
    assert result.evidence.implied(confidence=SURE).low > 0.5
    assert result.success > result.ceiling + 0.1


@pytest.mark.long
def test_noise_ten_times_too_small_is_caught_one_by_one():
    def oracle_for(bits):
        return lambda subsets: dc.Laplace(1).perturb(subset_oracles.exact_sums(bits)(subsets).astype(np.int64))

    people = Secrets.simulate(2048, random_state=0)
    result = reconstruct(people, defence=oracle_for, epsilon="1/10", questions="one by one", random_state=0)
    assert result.evidence.implied(confidence=SURE).low > 0.1


def test_equal_random_states_give_equal_results_from_independent_draws():
    assert reconstruct(noise=1, random_state=7).success == reconstruct(noise=1, random_state=7).success
    bits = Secrets.simulate(512, random_state=7).bits
    seen = []

    def oracle_for(_):
        return lambda subsets: seen.append(subsets) or np.zeros(len(subsets))

    reconstruct(Secrets(bits), defence=oracle_for, random_state=7)
    assert not np.array_equal(seen[0], draw_subsets(512, "random subsets", 4, np.random.default_rng(7)))


def test_the_prior_of_given_bits_is_what_guessing_reaches():
    result = reconstruct(
        Secrets([1] * 90 + [0] * 10), defence=lambda bits: lambda subsets: subsets.sum(axis=1), random_state=0
    )
    assert result.baseline == result.success == 0.9  # an oracle that says «all» gives nothing away
    assert result.implied.low == 0


def test_the_result_reports_who_is_exposed_and_can_be_plotted():
    result = reconstruct(noise=1 / 4, random_state=0)
    assert len(result.exposure.deciles) == 10
    assert "few queries about them" in str(result)
    pytest.importorskip("matplotlib")
    assert len(result.figure().axes) == 2
    assert (
        accuracy_by_error_figure([result], [result], {"here": result}).axes[0].get_ylabel()
        == "share of bits reconstructed"
    )


def test_the_reconstruction_attack_is_registered():
    assert attacks.reconstruct is reconstruct
    assert attacks.attack_named("reconstruct") is ATTACK
    assert len(attacks.compare("reconstruct", data=Secrets.simulate(32), epsilons=[1], random_state=0).rows()) == 3


@pytest.mark.parametrize(
    ("how", "error", "words"),
    [
        ({"method": "prayer"}, ValueError, "method must be one of 'least squares'"),
        ({"questions": "none"}, ValueError, "questions must be"),
        ({"noise": -1}, ValueError, "noise, in units of .* must be at least 0"),
        ({"noise": 1, "defence": "easy"}, TypeError, 'noise applies only to defence="nothing"'),
        ({"delta": "1e-6", "defence": lambda bits: 3}, TypeError, "delta needs an epsilon"),
        ({"delta": 2, "defence": "curator", "epsilon": 1}, ValueError, "delta must be at least 0"),
        ({"per_person": 0}, ValueError, "per_person"),
        ({"defence": lambda bits: 3}, TypeError, "must return an oracle"),
        (
            {"defence": lambda bits: lambda subsets: [1]},
            ValueError,
            "the defence's oracle must return an array of numbers, 2,048",
        ),
        ({"data": [1, 0, 1]}, TypeError, r"data must be Secrets\(bits\)"),
    ],
)
def test_wrong_input_is_refused_by_name(how, error, words):
    with pytest.raises(error, match=words):
        reconstruct(**how)


@pytest.mark.parametrize(("bits", "chance"), [([0, 2], None), ([1], None), ([[0, 1]], None), ([0, 1], 1.5)])
def test_secrets_are_zeros_and_ones(bits, chance):
    with pytest.raises(ValueError, match=r"bits must|chance must be"):
        Secrets(bits, chance)


def test_theory_predicts_guessing_without_more_queries_than_people():
    assert expected_accuracy(100, 100, 3) == 1 / 2
    assert expected_accuracy(100, 400, 0) == 1


def test_guesses_depend_on_the_answers_alone():
    alone = np.eye(4, dtype=bool)
    assert guess_bits(alone, np.array([0.4, 0.6, -9, 9])).tolist() == [False, True, False, True]


def test_a_folder_without_the_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"pums_ca_1000\.parquet"):
        read_secrets(tmp_path)


@pytest.mark.long
@pytest.mark.skipif(not (DATA / "pums_ca_1000.parquet").exists(), reason="needs pums_ca_1000 in DISCREET_DATA")
def test_marriages_in_california_are_reconstructed():
    people = read_secrets(DATA)
    assert len(people.bits) == 1000
    assert reconstruct(people, random_state=0).success == 1
    assert reconstruct(people, defence="easy", random_state=0).success == 1
    private = reconstruct(people, defence="curator", epsilon=1, random_state=0)
    assert private.details["answered"] == "by the mechanism, as one vector"
    assert private.success < 0.62
