"""Genotypes guessed from doses: a fact about people, told apart from what a model remembers of its own people."""

import os
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from readable import flaws

pytest.importorskip("sklearn")

from discreet import attacks
from discreet.attacks.data.dose_cohort import DoseCohort, read_cohort, simulate_cohort
from discreet.attacks.evidence import EventEvidence
from discreet.attacks.models.correlation import average_doses, guess_genotypes, private_averages, rounded
from discreet.attacks.result import format_gain
from discreet.audit.hypothesis_tests import Proportion
from tools.pictures.attack_figures import member_rates_figure

DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))
SURE = 1 - 1e-10  # of an interval: a false alarm is not to be seen


@pytest.fixture(scope="module")
def patients():
    return simulate_cohort(np.random.default_rng(5), 1200)


def least(result):
    return result.evidence.implied(confidence=SURE).low


def few(**changed):
    given = {"known": [[4.0], [6.0]] * 30, "genotype": [0, 2] * 30, "dose": [20.0, 40.0] * 30, "bounds": ([0], [9])}
    return DoseCohort(**{**given, **changed})


class Told:
    """A model that says what it is told to."""

    def __init__(self, says):
        self.predict = says

    def predict(self, X):
        raise NotImplementedError


def test_the_interval_of_the_gap_accounts_for_negatively_correlated_models():
    # One of two models is right where the other is wrong: what being in adds is +1 or -1 by a coin, and 0 on average.
    coins = np.random.default_rng(0).random((400, 500)) < 0.5
    shifts = np.where(coins, 1.0, -1.0)
    assumed = np.sqrt(2 * 0.25 / 500)  # of two shares of 1/2 that have nothing to do with each other
    assert 1.3 < shifts.mean(axis=1).std() / assumed < 1.55
    ends = [[float(word.strip("()")) for word in format_gain(each).split() if word != "to"] for each in shifts]
    assert 0.9 < np.mean([low <= 0 <= high for _, low, high in ends]) < 0.99
    implied = [
        EventEvidence(Proportion.from_outcomes(each > 0), Proportion.from_outcomes(each < 0)).implied().low
        for each in shifts
    ]
    assert np.mean(np.array(implied) > 0) < 0.08  # the promise of 95 % holds for the epsilon implied, too


def test_the_command_runs_what_its_description_states():
    attack = attacks.attack_named("correlation")
    assert all("tree" not in release.description for release in attack.releases.values())


def test_a_table_of_fields_can_be_given():
    given = few(known={"age": [4.0, 6.0] * 30})
    assert given.features().tolist() == few().features().tolist()


def test_least_squares_discloses_genotypes_of_members_and_non_members_alike():
    result = attacks.correlation(random_state=0)
    assert result.success > 0.55
    assert result.evidence.baseline > 0.55
    assert abs(result.success - result.evidence.baseline) < 0.02
    assert result.baseline == pytest.approx(0.36, abs=0.04)
    assert result.implied.low == 0


def test_rounded_doses_disclose_it_as_well():
    exact, rounded = (attacks.correlation(defence=word, random_state=0) for word in ("nothing", "easy"))
    assert rounded.success > exact.success - 0.03


def test_a_fully_grown_tree_memorises_its_members():
    result = attacks.correlation(model="tree", random_state=0)
    assert result.success > 0.8
    assert result.evidence.baseline < 0.55
    assert least(result) > 0.8


@pytest.mark.long
def test_leaves_of_five_still_memorise():
    full, pruned = (attacks.correlation(defence=word, model="tree", random_state=0) for word in ("nothing", "easy"))
    assert 0.05 < pruned.success - pruned.evidence.baseline < full.success - full.evidence.baseline
    assert least(pruned) > 0.05


def test_memorisation_is_worst_for_rare_people():
    beyond = attacks.correlation(model="tree", random_state=0).details
    rarest, all_of_them = (
        float(beyond[name].split()[0])
        for name in ("members minus non-members, rarest tenth", "members minus non-members")
    )
    assert rarest > all_of_them > 0.3


@pytest.mark.long(but=["0.1-linear", "1-linear"])
@pytest.mark.parametrize("model", ["linear", "tree"])
@pytest.mark.parametrize("epsilon", [0.1, 1])
def test_the_curator_discloses_no_more_about_members_than_about_non_members(model, epsilon, patients):
    result = attacks.correlation(patients, defence="curator", epsilon=epsilon, model=model, random_state=1, splits=3)
    assert least(result) <= epsilon
    assert result.success <= result.ceiling + 0.1
    assert abs(result.success - result.evidence.baseline) < 0.12


def test_a_useful_private_model_still_shows_the_population_fact(patients):
    result = attacks.correlation(patients, defence="curator", epsilon=1000, random_state=1, splits=2)
    assert result.success > result.baseline + 0.1
    assert result.evidence.baseline > result.baseline + 0.1


def test_a_memorising_model_that_claims_to_be_private_is_caught(patients):
    from sklearn.tree import DecisionTreeRegressor

    def liar(members):
        return DecisionTreeRegressor(random_state=0).fit(members.features(), members.dose)

    result = attacks.correlation(patients, defence=liar, epsilon="1/10", random_state=0)
    assert result.defence == "own"
    assert least(result) > 0.1
    assert result.success > result.ceiling


@pytest.mark.long
def test_the_dose_of_the_nearest_patient_is_caught_as_well(patients):
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    def liar(members):
        return make_pipeline(StandardScaler(), KNeighborsRegressor(1)).fit(members.features(), members.dose)

    assert least(attacks.correlation(patients, defence=liar, epsilon="1/10", random_state=0)) > 0.1


def test_unscaled_fields_hide_memorisation_by_a_nearest_neighbour_model(patients):
    from sklearn.neighbors import KNeighborsRegressor

    def liar(members):
        return KNeighborsRegressor(1).fit(members.features(), members.dose)

    result = attacks.correlation(patients, defence=liar, epsilon="1/10", random_state=0)
    assert result.success - result.evidence.baseline < 0.1  # of the height one can tell who it is, not the genotype


def test_a_model_without_the_genotype_discloses_the_majority_only(patients):
    from sklearn.linear_model import LinearRegression

    class Blind:
        def __init__(self, members):
            self.model = LinearRegression().fit(members.known, members.dose)

        def predict(self, X):
            return self.model.predict(X[:, :-1])

    blind = attacks.correlation(patients, defence=Blind, random_state=0)
    exact = attacks.correlation(patients, random_state=0)
    assert blind.success == pytest.approx(blind.baseline)
    missed = "mean error of non-members' doses, mg per week"
    assert blind.details[missed] > exact.details[missed] + 0.5


def test_the_attack_sees_the_model_the_fields_the_dose_and_no_genotype():
    model = average_doses(np.array([[20.0] * 4, [30.0] * 4, [40.0] * 4]), (0, 9))
    known, dose = np.full((4, 1), 5.0), np.array([19.0, 31.0, 44.0, 26.0])
    assert guess_genotypes(model, known, dose, np.array([0.1, 0.45, 0.45])).tolist() == [0, 1, 2, 1]


def test_a_genotype_that_nobody_has_is_never_guessed():
    model = average_doses(np.array([[20.0] * 4, [30.0] * 4, [40.0] * 4]), (0, 9))
    guessed = guess_genotypes(model, np.full((2, 1), 5.0), np.array([29.0, 30.0]), np.array([0.5, 0.0, 0.5]))
    assert 1 not in guessed


def test_the_same_seed_gives_the_same_result(patients):
    first, second = (attacks.correlation(patients, random_state=3, splits=1) for _ in range(2))
    assert first.evidence == second.evidence
    assert first.evidence != attacks.correlation(patients, random_state=4, splits=1).evidence


def test_every_patient_is_a_member_once_and_a_non_member_once_in_each_split(patients):
    result = attacks.correlation(patients, random_state=3, splits=2)
    assert result.evidence.members.trials == result.evidence.non_members.trials == 2 * len(patients)


def test_the_result_reports_who_is_most_exposed(patients):
    result = attacks.correlation(patients, random_state=3, splits=1)
    assert len(result.exposure.deciles) == 10
    assert result.exposure.rarest_hit[0].startswith("patient ")
    assert result.exposure.deciles[0].value > result.exposure.deciles[-1].value  # typical people are guessed best


def test_the_plot_shows_members_beside_non_members(patients):
    pytest.importorskip("matplotlib")
    result = attacks.correlation(patients, random_state=3, splits=1)
    figure = result.figure()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["guessing", "members", "non-members"]
    heights = [bar.get_height() for bar in figure.axes[0].patches]
    assert heights == [result.evidence.members.value, result.evidence.non_members.value]
    assert flaws(figure) == []


def test_models_are_drawn_side_by_side_with_the_largest_gap_of_each(patients):
    pytest.importorskip("matplotlib")
    result = attacks.correlation(patients, random_state=3, splits=1)
    figure = member_rates_figure({"one": [result], "two": [result]})
    gap = 100 * (result.evidence.members.value - result.evidence.non_members.value)
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        f"{name}: gaps up to {gap:.0f} points" for name in ("one", "two")
    ]
    assert flaws(figure) == []


def test_a_comparison_of_trees_can_be_made(patients):
    made = attacks.compare(partial(attacks.correlation, model="tree", splits=1), epsilons=[1], data=patients)
    assert [result.defence for result in made.results] == ["nothing", "easy", "curator"]


def test_rounding_is_to_the_step():
    assert rounded(average_doses(np.full((3, 4), 21.3), (0, 9)), 2.5).predict(np.zeros((1, 2))).tolist() == [22.5]


def test_the_private_table_of_averages_has_a_dose_for_every_cell():
    young = few(known=[[0.0]] * 60)  # the other bands are empty
    model = private_averages(young, Fraction(1))
    cells = [[age, genotype] for age in (0.0, 3.0, 5.0, 9.0) for genotype in (0.0, 1.0, 2.0)]
    doses = model.predict(np.array(cells))
    assert ((doses >= 0) & (doses <= 100)).all()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"known": [4.0] * 60}, "known must have one row"),
        ({"dose": [20.0] * 59}, "one entry, per patient"),
        ({"genotype": [0] * 59}, "one entry, per patient"),
        ({"dose": [np.nan] * 60}, "leave out patients"),
        ({"known": [[np.inf]] * 60}, "leave out patients"),
        ({"bounds": ([0, 0], [1, 1])}, "bounds must be"),
        ({"bounds": ([1], [1])}, "bounds must be"),
        ({"genotype": [0, 3] * 30}, "genotype must be 0, 1 or 2"),
        ({"genotype": [0.0, 2.0] * 30}, "genotype must be 0, 1 or 2"),
        ({"genotype": ["A/A", "G/G"] * 30}, "genotype must be 0, 1 or 2"),
        ({"genotype": [0, [2]] * 30}, "genotype and dose one entry"),
        ({"bounds": None}, r"write bounds=\(low, high\)"),
        ({"bounds": ("low", "high")}, r"write bounds=\(low, high\)"),
        ({"dose_bounds": 100}, r"write dose_bounds=\(low, high\)"),
        ({"known": [["old"], ["young"]] * 30}, "known, column 0, must be an array of numbers"),
        ({"dose": ["much"] * 60}, "dose must be an array of numbers"),
    ],
)
def test_invalid_patients_are_refused(changed, said):
    with pytest.raises(ValueError, match=said):
        few(**changed)


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ({"data": [1, 2]}, TypeError, r"data must be DoseCohort\(known, genotype, dose, bounds\), not list"),
        ({"model": "forest"}, ValueError, "model must be one of 'linear', 'tree', not 'forest'"),
        ({"splits": 0}, ValueError, "splits"),
        ({"defence": "curator"}, TypeError, "needs an epsilon"),
        (
            {"defence": lambda patients: None},
            TypeError,
            "defence must return a fitted model with a method predict, not NoneType",
        ),
        ({"model": ["linear"]}, ValueError, "model must be one of 'linear', 'tree'"),
        ({"random_state": "zero"}, ValueError, "random_state must be None or a non-negative integer"),
        ({"defence": lambda patients: Told}, TypeError, "not the class Told"),
        (
            {"defence": lambda patients: Told(lambda X: None)},
            TypeError,
            "predict of the defence's model must return an array",
        ),
        ({"defence": lambda patients: Told(lambda X: ["much"] * len(X))}, TypeError, "an array of numbers"),
        ({"defence": lambda patients: Told(lambda X: np.full(len(X), np.nan))}, ValueError, "without NaN"),
        ({"defence": lambda patients: Told(lambda X: np.zeros(3))}, ValueError, r"not an array of shape \(3,\)"),
        ({"defence": lambda patients: Told(lambda X: np.zeros((len(X), 1)))}, ValueError, "not an array of shape"),
    ],
)
def test_invalid_arguments_are_refused(given, kind, said):
    with pytest.raises(kind, match=said):
        attacks.correlation(**given)


def test_too_few_patients_are_refused():
    tiny = few().subset(np.arange(10))
    with pytest.raises(ValueError, match="the number of patients"):
        attacks.correlation(tiny)


def test_a_folder_without_the_data_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"warfarin_iwpc\.parquet"):
        read_cohort(tmp_path)


@pytest.mark.long
@pytest.mark.skipif(not (DATA / "warfarin_iwpc.parquet").exists(), reason="needs warfarin_iwpc in DISCREET_DATA")
def test_genotypes_of_real_patients_are_inferred_without_memorisation():
    real = read_cohort(DATA)
    assert len(real) == 3524
    exact = attacks.correlation(real, random_state=0)
    assert exact.baseline == pytest.approx(0.356, abs=0.001)
    assert exact.success == pytest.approx(0.58, abs=0.01)
    assert exact.evidence.baseline == pytest.approx(0.58, abs=0.01)
    private = attacks.correlation(real, defence="curator", epsilon=1, random_state=0, splits=20)
    assert private.success == pytest.approx(0.52, abs=0.06)
    assert private.evidence.baseline == pytest.approx(private.success, abs=0.03)
    tree = attacks.correlation(real, model="tree", random_state=0)
    assert tree.success > 0.8
    assert tree.evidence.baseline < 0.5
