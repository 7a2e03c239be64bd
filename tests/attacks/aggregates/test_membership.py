"""Membership from published means: found without a defence, found after rounding, lost in private noise."""

import os
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet import attacks
from discreet.attacks.aggregates import published_means
from discreet.attacks.aggregates.membership import (
    ATTACK,
    STATISTICS,
    AttackerKnowledge,
    correct_for_study_size,
    membership,
    membership_scores,
)
from discreet.attacks.aggregates.published_means import (
    StudySample,
    draw_study_samples,
    rarity_of_values,
    sample_attributes,
)
from discreet.attacks.data.panel import Panel, read_genomes, simulate_genomes

DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))


@pytest.fixture(scope="module")
def made():
    return simulate_genomes(400, 600, random_state=5)


def test_the_attack_is_registered():
    assert attacks.attack_named("membership") is ATTACK
    assert attacks.membership is membership


@pytest.mark.parametrize("statistic", STATISTICS)
def test_members_are_found_in_exact_means_by_every_statistic(made, statistic):
    result = membership(made, random_state=0, statistic=statistic)
    assert result.success > 0.85
    assert result.implied.low > 1
    assert result.baseline == 0.5


def test_the_likelihood_ratio_is_no_worse_than_the_other_statistics(made):
    reached = {each: membership(made, random_state=0, statistic=each).success for each in STATISTICS}
    assert reached["likelihood ratio"] >= max(reached.values()) - 0.002


def test_more_attributes_disclose_more(made):
    reached = [membership(made, random_state=0, attributes=d).success for d in (20, 150, 600)]
    assert reached[0] < reached[1] - 0.05
    assert reached[1] < reached[2] - 0.05


def test_rounding_hardly_helps(made):
    exact, rounded = (membership(made, random_state=0, defence=each).success for each in ("nothing", "easy"))
    assert exact - 0.02 < rounded


@pytest.mark.parametrize("fix", ["blurred", "common"])
def test_the_other_easy_fixes_hardly_help_either(made, fix):
    rng = np.random.default_rng(0)

    def fixed(members):
        means = members.mean(axis=0) / 2
        if fix == "blurred":
            return np.clip(means + rng.uniform(-0.01, 0.01, means.size), 0, 1)
        return np.where(np.minimum(means, 1 - means) >= 0.05, means, np.nan)

    assert membership(made, random_state=0, defence=fixed).success > 0.85


@pytest.mark.long
@pytest.mark.parametrize("delta", ["1e-6", 0])
def test_private_means_hide_membership(made, delta):
    result = membership(made, random_state=0, defence="curator", epsilon=1, delta=delta)
    assert result.details["published by"] == "the curator, in one query"
    assert result.success < 0.66  # 0.52 at most, give or take 0.02; epsilon allows 0.73
    assert result.evidence.implied(result.delta, confidence=1 - 1e-10).low <= 1
    assert result.delta == float(delta)


@pytest.mark.long
def test_a_small_epsilon_leaves_nothing_to_find(made):
    result = membership(made, random_state=0, defence="curator", epsilon="1/10")
    assert abs(result.success - 0.5) < 0.12
    assert result.evidence.implied(result.delta, confidence=1 - 1e-10).low == 0
    assert result.ceiling < 0.53


@pytest.mark.long
def test_a_huge_epsilon_finds_members_again(made):
    assert membership(made, random_state=0, defence="curator", epsilon=200).success > 0.75


def test_many_totals_are_released_by_the_curators_mechanism(made, monkeypatch):
    monkeypatch.setattr(published_means, "_MAX_CURATOR_GROUPS", 10)
    result = membership(made, random_state=0, defence="curator", epsilon=1)
    assert result.details["published by"].startswith("the mechanism")
    assert result.success < 0.66


@pytest.mark.long
@pytest.mark.parametrize("delta", ["1e-6", 0])
def test_curator_and_mechanism_add_the_same_noise(made, monkeypatch, delta):
    def error():
        return membership(made, random_state=0, defence="curator", epsilon=1, delta=delta).details[
            "error of a published mean"
        ]

    asked = error()
    monkeypatch.setattr(published_means, "_MAX_CURATOR_GROUPS", 10)
    # The curator keeps a part of delta for groups that are discovered; of epsilon it may not use more than is paid.
    assert 0.9 < asked / error() < 1.15


def test_noise_calibrated_to_one_mean_of_hundreds_is_caught(made):
    """Each mean alone is private at epsilon 1, and somebody forgot that a person is in all of them."""
    noise = dc.gaussian_for(dc.Sensitivity(groups=1, size=2), 1, "1e-6")

    def forgetful(members):
        return np.clip(noise.perturb(members.sum(axis=0, dtype=np.int64)) / (2 * len(members)), 0, 1)

    result = membership(made, random_state=0, defence=forgetful, epsilon=1, plays=40)
    assert result.implied.low > 1
    assert result.success > result.ceiling


def test_a_defence_that_publishes_nothing_discloses_nothing(made):
    result = membership(made, random_state=0, defence=lambda members: np.full(members.shape[1], np.nan))
    assert result.success == 0.5
    assert result.implied.low == 0


def test_a_defence_of_the_wrong_shape_is_refused(made):
    with pytest.raises(
        ValueError, match=r"the defence must return an array of numbers, 600, not an array of shape \(\)"
    ):
        membership(made, defence=lambda members: members.mean())


def test_a_defence_that_returns_infinity_is_refused(made):
    with pytest.raises(ValueError, match="without NaN or infinity"):
        membership(made, defence=lambda members: np.full(members.shape[1], np.inf))


def test_the_rarest_people_are_the_most_exposed_where_few_means_are_published():
    result = membership(random_state=1, attributes=50, plays=80)
    deciles = [share.value for share in result.exposure.deciles]
    assert deciles[-1] > deciles[0] + 0.1
    assert result.exposure.rarest_hit[0].startswith("study")


def test_a_rare_allele_makes_a_person_rarer_than_a_common_one():
    reference = np.array([[0, 1], [0, 0], [0, 1], [0, 0]] * 10)
    rare, common = rarity_of_values(np.array([[1, 0], [0, 1]]), reference, max_value=1)
    assert rare > 5 * common


def test_members_non_members_and_reference_are_distinct_people_of_the_same_populations():
    rng = np.random.default_rng(0)
    origin = np.repeat([0, 1], [100, 200])
    panel = Panel(np.column_stack([np.arange(300), origin]), 300, origin)
    for play in draw_study_samples(panel, 50, 5, rng):
        together = np.concatenate([play.members, play.non_members, play.reference])[:, 0]
        assert len(together) == len(set(together)) == 300
        candidates = np.concatenate([play.members, play.non_members])
        assert len(candidates) == 100
        assert abs(candidates[:, 1].mean() - 2 / 3) < 0.02
        assert abs(play.reference[:, 1].mean() - 2 / 3) < 0.02


def test_ancestry_is_not_mistaken_for_membership():
    """Two populations that differ in every allele, and means that say nothing about who is in."""
    rng = np.random.default_rng(0)
    origin = np.repeat([0, 1], 200)
    panel = Panel(rng.binomial(2, np.where(origin[:, None] == 0, 0.2, 0.6), (400, 300)), 2, origin)
    result = membership(panel, random_state=0, defence=lambda members: np.full(300, 0.4), plays=20)
    assert abs(result.success - 0.5) < 0.1


def test_the_attack_uses_only_what_is_published(made):
    """The same means give the same scores, whoever the members were."""
    play = draw_study_samples(made, 50, 1, np.random.default_rng(0))[0]
    known = AttackerKnowledge(published_means.exact_means(play.members, 2), play.reference, 2, 50)
    scores = membership_scores(play.non_members, known, "likelihood ratio")
    assert (scores == membership_scores(play.non_members.copy(), known, "likelihood ratio")).all()
    assert membership_scores(play.members, known, "likelihood ratio").mean() > scores.mean() + 1


def test_the_attacker_corrects_a_wrong_size_in_the_denominator():
    rng = np.random.default_rng(0)
    usual = rng.uniform(0.2, 0.8, 500)
    spread = usual * (1 - usual) / 100
    corrected, noise = correct_for_study_size(usual * 1.1, usual, spread, pool=100)
    assert np.abs(corrected / usual - 1).max() < 0.01
    assert noise < 1e-3


def test_one_random_state_gives_one_result(made):
    first, second, other = (membership(made, random_state=each).success for each in (3, 3, 4))
    assert first == second != other


@pytest.mark.parametrize(
    ("data", "keywords", "error", "said"),
    [
        ([[0, 1]], {}, TypeError, "data must be a Panel"),
        (None, {"statistic": "luck"}, ValueError, "statistic must be one of"),
        (None, {"pool": 200}, ValueError, "Choose a pool of at most 166"),
        (None, {"pool": 1}, ValueError, "pool"),
        (None, {"attributes": 2000}, ValueError, "attributes must be at most 1000"),
        (None, {"plays": 0}, ValueError, "plays"),
        (None, {"delta": -1}, ValueError, "delta"),
        (None, {"defence": "curator"}, TypeError, "needs an epsilon"),
    ],
)
def test_bad_input_is_refused(data, keywords, error, said):
    with pytest.raises(error, match=said):
        membership(data, **keywords)


@pytest.mark.parametrize(
    ("values", "most", "populations", "said"),
    [
        ([[0.5]], 1, None, "integers"),
        ([1, 0], 1, None, "one row per person"),
        ([[3]], 2, None, "from 0 to max_value = 2"),
        ([[1], [0]], 1, ["a"], "one entry per person"),
    ],
)
def test_a_bad_panel_is_refused(values, most, populations, said):
    with pytest.raises(ValueError, match=said):
        Panel(values, most, populations)


def test_a_panel_is_thinned_to_attributes_of_its_own():
    panel = Panel(np.arange(10)[None].repeat(3, axis=0), 9)
    kept = sample_attributes(panel, 4, np.random.default_rng(0)).values
    assert kept.shape == (3, 4)
    assert len(set(kept[0])) == 4


def test_missing_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"kg1000_genotypes\.parquet"):
        read_genomes(tmp_path)


def test_published_means_are_those_of_the_members():
    play = StudySample(np.zeros((1, 1)), np.ones((1, 1)), np.ones((2, 1)))
    assert published_means.exact_means(play.members, 1).tolist() == [0]


@pytest.fixture(scope="module")
def europeans():
    if not (DATA / "kg1000_genotypes.parquet").exists():
        pytest.skip("the genomes are not in DISCREET_DATA")
    return read_genomes(DATA)


@pytest.mark.long(only=["10000-0.999"])
@pytest.mark.parametrize(("snps", "least"), [(500, 0.88), (2000, 0.97), (10_000, 0.999)])
def test_members_of_a_pool_of_europeans_are_found(europeans, snps, least):
    assert membership(europeans, random_state=0, attributes=snps).success > least


@pytest.mark.long
def test_members_of_a_pool_of_europeans_are_hidden_by_private_frequencies(europeans):
    result = membership(europeans, random_state=0, attributes=2000, defence="curator", epsilon=1)
    assert result.success < 0.66
