"""The lone cluster: exact parameters tell where a lone person is, small ones left out too; private ones do not."""

import dataclasses
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from readable import flaws

from discreet import attacks
from discreet.attacks.data.city import City, read_city, simulate_city
from discreet.attacks.models import city_mixtures
from discreet.attacks.models.city_mixtures import MixtureParameters
from discreet.attacks.models.lone_cluster import ATTACK, PlantedRows, guess_places, lone_cluster, membership_scores
from tools.pictures.attack_figures import city_maps_figure

SURE = 1 - 1e-9
DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))


def fitted(places, noise=0.0):
    from sklearn.mixture import GaussianMixture

    model = GaussianMixture(25, random_state=0).fit(places)
    model.means_ = model.means_ + np.random.default_rng(0).normal(0, noise, model.means_.shape)
    return model


class Mixed:
    """A class that somebody forgot to make an object of."""

    weights_, means_, covariances_ = [1], [[0, 0]], [np.eye(2)]


def mixed(**changed):
    """Return a defence that gives away a mixture, some of it wrong."""
    given = {"weights_": [1], "means_": [[0, 0]], "covariances_": [np.eye(2)], **changed}
    return lambda places: SimpleNamespace(**given)


def test_the_attack_is_registered():
    assert attacks.attack_named("lone_cluster") is ATTACK
    assert ATTACK.docs_page == "clusters"


@pytest.mark.long
def test_non_private_parameters_disclose_lone_people():
    result = lone_cluster(random_state=0)
    assert result.success > 0.95
    assert result.details["located"] > 0.7
    assert result.details["located while not in the data"] == 0
    assert result.details["median error, in km"] < 0.001
    assert result.implied.low > 1


@pytest.mark.long
def test_dropping_small_components_hides_lone_people_until_rows_are_planted():
    alone = lone_cluster(random_state=0, defence="easy", planted=0)
    assert alone.details["located"] == 0
    assert alone.details["median error, in km"] is None
    planted = lone_cluster(random_state=0, defence="easy")
    assert planted.details["located"] > 0.8
    assert planted.details["located while not in the data"] < 0.2
    assert planted.details["median error, in km"] < 0.001 < planted.details["median error without the release, in km"]
    assert planted.implied.low > 1


def test_planted_rows_disclose_membership_although_no_component_is_dropped():
    assert lone_cluster(random_state=0, planted=4).success > 0.95


@pytest.mark.long
@pytest.mark.parametrize("planted", [0, None])
def test_a_private_mixture_hides_lone_people(planted):
    result = lone_cluster(random_state=0, defence="curator", epsilon=1, planted=planted, plays=4)
    assert result.details["located"] < 0.5  # noise is of kilometres: half of 24 are not hit by chance
    assert result.evidence.implied(result.delta, SURE).low <= 1
    assert result.delta == 1e-6
    assert result.epsilon == 1


@pytest.mark.long
def test_a_release_that_is_all_noise_leaves_the_attacker_with_prior_knowledge():
    result = lone_cluster(random_state=0, defence="curator", epsilon="1/10", plays=4)
    beforehand = result.details["median error without the release, in km"]
    assert beforehand < 0.5
    assert abs(result.details["median error, in km"] - beforehand) < 0.2


def test_noise_that_hides_the_location_may_still_disclose_membership():
    result = lone_cluster(random_state=0, defence=lambda places: fitted(places, noise=0.05), epsilon="1/10")
    assert result.details["located"] < 0.5
    assert result.success > 0.8
    assert result.implied.low > 0.1


def test_noise_that_is_much_too_small_is_caught():
    result = lone_cluster(random_state=0, defence=lambda places: fitted(places, noise=0.001), epsilon="1/10")
    assert result.implied.low > 0.1
    assert result.success > result.ceiling


def test_a_custom_defence_with_a_kilometre_of_noise_on_means_hides_the_location():
    result = lone_cluster(random_state=0, defence=lambda places: fitted(places, noise=1.0))
    assert result.details["located"] < 0.2
    assert result.details["median error, in km"] < 0.6  # no farther than where the attacker planted rows


def test_the_delta_of_a_custom_defence_counts():
    strict, loose = (
        lone_cluster(random_state=0, defence=fitted, epsilon=1, plays=4, **delta) for delta in ({}, {"delta": "1/2"})
    )
    assert (strict.delta, loose.delta) == (0, 0.5)
    assert loose.ceiling > strict.ceiling
    assert loose.implied.low < strict.implied.low


@pytest.mark.long
def test_the_farthest_people_are_named():
    result = lone_cluster(random_state=0)
    assert result.exposure.rarity_label == "distance to others"
    assert result.exposure.rarest_hit[0].startswith("lone person")


def test_planted_rows_are_subtracted_from_the_mean():
    person, rows = np.array([3.0, 4.0]), np.array([[[3.5, 4.0], [3.0, 4.5], [2.5, 4.0], [3.1, 3.9]]])
    mean = (rows[0].sum(axis=0) + person) / 5
    seen = MixtureParameters(np.array([0.05, 0.95]), np.array([mean, [30.0, 30.0]]), np.array([np.eye(2)] * 2))
    assert np.allclose(guess_places(seen, PlantedRows(np.array([[3.2, 3.8]]), rows), people=100)[0], person)
    assert guess_places(seen, PlantedRows(np.array([[2.2, 3.8]]), rows), people=100)[0].tolist() == [[2.2, 3.8]]


def test_a_mean_consistent_with_the_person_discloses_membership():
    person, rows = np.array([[3.0, 4.0]]), np.array([[[3.5, 4.0], [3.0, 4.5], [2.5, 4.0], [3.1, 3.9]]])
    planted, wide = PlantedRows(person, rows), np.array([100 * np.eye(2)])
    present, absent = (
        membership_scores(MixtureParameters(np.ones(1), mean, wide), planted, person)[0]
        for mean in ((rows.sum(axis=1) + person) / 5, rows.mean(axis=1))
    )
    assert present > absent + 5


def test_components_of_two_people_are_not_mistaken_for_one():
    seen = MixtureParameters(np.array([0.02, 0.98]), np.zeros((2, 2)), np.array([np.eye(2)] * 2))
    assert len(guess_places(seen, PlantedRows(np.zeros((3, 2)), np.empty((3, 0, 2))), people=100)[0]) == 0


def test_a_release_of_small_components_only_keeps_the_largest():
    seen = MixtureParameters(np.array([0.4, 0.6]), np.zeros((2, 2)), np.array([np.eye(2)] * 2))
    assert city_mixtures.drop_small_components(seen, people=5).weights.tolist() == [0.6]


def test_the_density_is_that_of_the_mixture():
    from sklearn.mixture import GaussianMixture

    places = simulate_city(random_state=0).crowd[:200]
    model = GaussianMixture(3, random_state=0).fit(places)
    assert np.allclose(city_mixtures.checked_parameters(model).log_density(places), model.score_samples(places))


def test_everybody_is_a_member_of_about_half_of_the_mixtures():
    result = lone_cluster(random_state=0, plays=4)
    assert result.evidence.members.size == result.evidence.non_members.size == 24


@pytest.mark.long
def test_one_random_state_gives_one_result():
    first, second = (lone_cluster(random_state=3) for _ in range(2))
    assert first.details == second.details


def test_the_map_is_drawn():
    pytest.importorskip("matplotlib")
    left, _ = lone_cluster(random_state=0, plays=2).figure().axes
    assert left.get_xlabel() == "km"


@pytest.mark.long
def test_maps_are_drawn_side_by_side_with_one_legend():
    pytest.importorskip("matplotlib")
    results = [lone_cluster(random_state=0, plays=2, defence=each) for each in ("nothing", "easy")]
    figure = city_maps_figure(results)
    assert [each.get_title(loc="left").split(",")[0] for each in figure.axes] == ["no defence", "the easy fix"]
    assert [each.get_legend() for each in figure.axes] == [None, None]
    assert len(figure.legends) == 1
    assert flaws(figure) == []
    with pytest.raises(ValueError, match="have a map"):
        city_maps_figure([dataclasses.replace(results[0], draw=None)])


@pytest.mark.parametrize(
    ("data", "keywords", "error", "said"),
    [
        ([[0, 1]], {}, TypeError, "data must be City"),
        (None, {"people": 5000}, ValueError, "at most 1200, the size of the crowd"),
        (None, {"people": 10}, ValueError, "people"),
        (None, {"radius": 0}, ValueError, "radius must be above 0"),
        (None, {"radius": 40}, ValueError, "radius must be above 0 and below"),
        (None, {"radius": "near"}, ValueError, "radius must be a number"),
        (None, {"people": "many"}, TypeError, "people must be an integer"),
        (None, {"random_state": -1}, ValueError, "random_state must be"),
        (None, {"planted": -1}, ValueError, "planted"),
        (None, {"plays": 1}, ValueError, "plays"),
        (None, {"delta": 2}, ValueError, "delta"),
        (None, {"defence": "curator"}, TypeError, "needs an epsilon"),
        (None, {"defence": lambda places: places}, ValueError, "weights_ is missing"),
        (None, {"defence": lambda places: Mixed}, ValueError, "weights_ is missing"),
        (None, {"defence": mixed(covariances_=[1])}, ValueError, "its covariances_, which must be full"),
        (None, {"defence": mixed(covariances_=[np.zeros((2, 2))])}, ValueError, "symmetric and positive definite"),
        (None, {"defence": mixed(covariances_=[[[1, 0.5], [0, 1]]])}, ValueError, "symmetric and positive definite"),
        (None, {"defence": mixed(covariances_=[np.full((2, 2), np.nan)])}, ValueError, "without NaN"),
        (None, {"defence": mixed(weights_=[0.5, 0.5])}, ValueError, r"its weights_\) must return .* 1, not"),
        (None, {"defence": mixed(weights_=[-1])}, ValueError, "non-negative weights_"),
        (None, {"defence": mixed(weights_=["all"])}, TypeError, r"its weights_\) must return an array of numbers"),
        (None, {"defence": mixed(means_=[[[0, 0]]])}, ValueError, r"its means_\) must return"),
        (None, {"defence": mixed(means_=[[np.inf, 0]])}, ValueError, "without NaN or infinity"),
        (
            None,
            {"defence": mixed(means_=np.empty((0, 2)), weights_=[], covariances_=np.empty((0, 2, 2)))},
            ValueError,
            "at least one component",
        ),
    ],
)
def test_bad_input_is_refused(data, keywords, error, said):
    with pytest.raises(error, match=said):
        lone_cluster(data, **keywords)


@pytest.mark.parametrize(
    ("crowd", "loners", "said"),
    [
        ([[1, 2, 3]], [[1, 1]], "crowd must be at least one location"),
        ([[1, 1]], [[11, 1]], "loners must be from 0 to side"),
        ([[1, np.nan]], [[1, 1]], "crowd must be from 0 to side"),
        ([["here", "there"]], [[1, 1]], "crowd, column 0, must be an array of numbers"),
        (None, [[1, 1]], "crowd must be at least one location"),
    ],
)
def test_a_bad_city_is_refused(crowd, loners, said):
    with pytest.raises(ValueError, match=said):
        City(crowd, loners, side=10)


@pytest.mark.parametrize("side", [0, "wide", float("nan"), None])
def test_a_side_that_is_not_a_length_is_refused(side):
    with pytest.raises((ValueError, TypeError), match="side must be"):
        City([[0, 0]], [[0, 0]], side=side)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"gowalla_nyc_checkins\.parquet"):
        read_city(tmp_path)


@pytest.mark.long
def test_lone_people_of_new_york_are_located_from_a_fine_mixture():
    if not (DATA / "gowalla_nyc_checkins.parquet").exists():
        pytest.skip("the check-ins are not in DISCREET_DATA")
    york = read_city(DATA)
    assert york.isolation.min() > 2
    assert lone_cluster(york, random_state=0, components=60, plays=6).details["located"] > 0.8
    assert lone_cluster(york, random_state=0, components=60, plays=6, defence="easy").details["located"] > 0.8
    private = lone_cluster(york, random_state=0, defence="curator", epsilon=1, plays=2)
    assert private.details["located"] < 0.5
