"""What all attacks share: curves, rarity, defences, comparisons, pictures."""

import functools
from fractions import Fraction

import numpy as np
import pytest
from readable import flaws

from discreet import attacks
from discreet.attacks.comparison import Comparison
from discreet.attacks.defences import parse_defence, promised_delta
from discreet.attacks.evidence import EventEvidence, GuessEvidence
from discreet.attacks.result import AttackResult, exposure_by_rarity, percent
from discreet.attacks.scores import ScoreEvidence, roc_curve
from discreet.audit.hypothesis_tests import Proportion
from discreet.progress import report_progress


def _result(defence="nothing", epsilon=None, evidence=None, **more):
    found = evidence or EventEvidence(Proportion(9, 10), Proportion(1, 10))
    return AttackResult("made_up", parse_defence(defence, epsilon), "of the people were found", found, **more)


def _made_up(data=None, *, defence="nothing", epsilon=None, random_state=None):
    rng = np.random.default_rng(random_state)
    members = rng.normal(size=300) + {"nothing": 3, "easy": 1, "curator": 0}[defence]
    hit = exposure_by_rarity(np.arange(300), members > 1, rarity_label="how tall they are")
    return _result(
        defence, epsilon, ScoreEvidence(members, rng.normal(size=300)), exposure=hit, details={"data": str(data)}
    )


def test_the_area_under_the_curve_is_the_probability_to_score_above_a_non_member():
    rng = np.random.default_rng(1)
    members, strangers = rng.integers(0, 9, 70).astype(float), rng.integers(0, 7, 50).astype(float)
    pairs = np.subtract.outer(members, strangers)
    assert roc_curve(members, strangers).auc == pytest.approx((pairs > 0).mean() + (pairs == 0).mean() / 2)


def test_members_found_are_not_reported_with_too_few_non_members():
    drawn = roc_curve(np.arange(50.0) + 25, np.arange(50.0))
    assert drawn.tpr_at(0.01) is None
    assert drawn.tpr_at(0.02) == pytest.approx(26 / 50)


def test_ties_do_not_count_as_found():
    assert roc_curve(np.ones(1000), np.ones(1000)).tpr_at(0.01) == 0


def test_the_rarest_who_were_hit_are_named():
    found = exposure_by_rarity([1, 5, 3, 4], [True, False, True, True], labels=["a", "b", "c", "d"])
    assert found.rarest_hit == ("d", "c", "a")
    assert [share.trials for share in found.deciles] == [1, 1, 1, 1]


def test_exposure_needs_one_entry_each():
    with pytest.raises(ValueError, match="one entry per person"):
        exposure_by_rarity([1, 2], [True])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("curator",), "needs an epsilon"),
        (("nothing", 1), "takes no epsilon"),
        (("easy", 1), "takes no epsilon"),
        (("curator", 0), "above 0"),
        (("curator", -1), "above 0"),
        (("wall",), "must be"),
    ],
)
def test_an_unknown_defence_is_refused(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        parse_defence(*arguments)


def test_a_delta_is_claimed_by_the_defence_together_with_its_epsilon():
    assert promised_delta(parse_defence("curator", 1), None, "1e-5") == Fraction(1, 100_000)
    assert promised_delta(parse_defence("curator", 1), 0, "1e-5") == 0
    assert promised_delta(parse_defence(list, 1), None, "1e-5") == 0
    assert promised_delta(parse_defence(list, 1), "1/100", "1e-5") == Fraction(1, 100)
    assert promised_delta(parse_defence(list), None, "1e-5") == 0
    assert (
        promised_delta(parse_defence("nothing"), "1/100", "1e-5")
        == promised_delta(parse_defence("easy"), "1/100", "1e-5")
        == 0
    )


@pytest.mark.parametrize(
    ("defence", "delta", "error"),
    [
        (("curator", 1), 1, ValueError),
        (("curator", 1), -1, ValueError),
        (("nothing",), 2, ValueError),
        ((list,), "1/100", TypeError),  # a delta alone promises nothing
    ],
)
def test_an_invalid_delta_is_refused(defence, delta, error):
    with pytest.raises(error, match="delta"):
        promised_delta(parse_defence(*defence), delta, "1e-5")


@pytest.mark.parametrize(
    "attack",
    ["membership", "reconstruct", "shadow", "likelihood_ratio", "attributes", "lone_cluster"],
)
def test_every_attack_that_takes_a_delta_refuses_one_without_an_epsilon(attack):
    with pytest.raises(TypeError, match="delta needs an epsilon"):
        getattr(attacks, attack)(defence=lambda *_: None, delta="1e-6", random_state=0)


def test_success_and_guessing_come_from_the_evidence():
    result = _result()
    assert (result.success, result.baseline) == (0.9, 0.1)
    assert result.ceiling is None
    assert _result("curator", 1).ceiling == pytest.approx(0.796, abs=1e-3)
    assert _result(guessing=0.05).baseline == 0.05


def test_a_result_describes_its_finding():
    text = str(_made_up(defence="curator", epsilon="1/10", random_state=1))
    assert "made_up against curator, epsilon 0.1" in text
    assert "how tall they are" in text


def test_what_a_notebook_shows_is_escaped():
    assert "<b>" not in _result(details={"<b>": 1})._repr_html_()


@pytest.mark.parametrize(
    "evidence",
    [EventEvidence(Proportion(9, 10), Proportion(1, 10)), GuessEvidence(9, 10), ScoreEvidence([2.0, 3.0], [1.0, 2.0])],
)
@pytest.mark.parametrize(("defence", "epsilon"), [("nothing", None), ("curator", 1)])
def test_every_result_can_be_drawn_and_read(evidence, defence, epsilon):
    result = _result(defence, epsilon, evidence, exposure=exposure_by_rarity([1, 2], [True, False]))
    figure = result.figure()
    assert percent(result.success) in figure.get_suptitle()
    assert flaws(figure) == []


def test_an_attack_may_draw_its_own_picture():
    drawn = []
    _result(draw=drawn.append).figure()
    assert len(drawn) == 1


def test_one_call_compares_all_defences():
    made = attacks.compare(_made_up, epsilons=["1/10", 1], data="given", random_state=5)
    assert [str(result.against) for result in made.results] == [
        "nothing",
        "easy",
        "curator, epsilon 0.1",
        "curator, epsilon 1",
    ]
    assert all(result.details["data"] == "given" for result in made.results)
    assert made.results[0].success > made.results[1].success > made.results[2].success
    assert "curator at 0.1" in str(made)


@pytest.mark.long
def test_a_comparison_is_plotted_with_its_finding_and_full_labels():
    made = attacks.compare(_made_up, epsilons=["1/10", 1], data="given", random_state=5)
    figure = made.figure()
    left, right = figure.axes
    near = made.results[-1]
    assert f"{percent(near.success)} with the curator at epsilon 1" in figure.get_suptitle().replace("\n", " ")
    assert left.get_ylabel().replace("\n", " ") == f"share {near.metric}"
    curator = next(each for each in left.containers if each.get_label().startswith("the curator"))
    assert curator.lines[0].get_ydata().tolist() == [result.success for result in made.results[2:]]
    assert len({text.get_text() for text in figure.legends[0].get_texts()}) == len(figure.legends[0].get_texts()) == 5
    assert right.get_ylabel() == "epsilon implied by the attack"
    assert flaws(figure) == []


def _compared(easy, curator, *, plays=1000, epsilon=1):
    right = {"nothing": plays, "easy": easy, "curator": curator}
    shields = parse_defence("nothing"), parse_defence("easy"), parse_defence("curator", epsilon)
    return Comparison(
        tuple(AttackResult("made_up", each, "were found", GuessEvidence(right[each.kind], plays)) for each in shields)
    )


def test_a_comparison_explains_why_the_curator_leaks_more_than_the_easy_fix():
    made = _compared(easy=520, curator=700)
    assert made.note in str(made)
    assert "(70 % at epsilon 1)" in made.note
    assert "the easy fix (52 %)" in made.note
    assert "this one at 73.1 %" in made.note
    assert "due to chance" not in made.note


def test_a_difference_due_to_chance_is_described_as_such():
    assert "due to chance" in _compared(easy=52, curator=60, plays=100).note


@pytest.mark.parametrize(("easy", "curator"), [(700, 520), (700, 700), (520, 900)])  # 900: the claim itself is refuted
def test_a_comparison_explains_nothing_where_there_is_nothing_to_explain(easy, curator):
    assert _compared(easy, curator).note is None


def test_a_comparison_takes_partial_attacks():
    assert isinstance(attacks.compare(functools.partial(_made_up), epsilons=[1]), Comparison)


@pytest.mark.parametrize("epsilons", ["1", [], 1])
def test_epsilons_must_be_a_list(epsilons):
    with pytest.raises(TypeError, match="epsilons must be a list of numbers"):
        attacks.compare(_made_up, epsilons=epsilons)


def test_an_unknown_attack_is_refused_with_the_list():
    with pytest.raises(ValueError, match=r"choose one of pseudonyms, .*linkage"):
        attacks.compare("magic", epsilons=[1])


def test_a_claim_that_an_attack_refutes_does_not_hold():
    assert _result().holds is None
    broken = AttackResult(
        "made_up",
        parse_defence(lambda data: data, "1/10"),
        "of all",
        EventEvidence(Proportion(90, 100), Proportion(10, 100)),
    )
    assert broken.holds is False
    assert "claim of epsilon 0.1: refuted" in str(broken)
    assert broken.ceiling_text.endswith(", exceeded")
    assert _result("curator", 5).holds is True


def test_a_success_above_the_ceiling_by_chance_is_described_as_such():
    lucky = AttackResult("made_up", parse_defence("curator", "1/10"), "of all", GuessEvidence(54, 100))
    assert lucky.ceiling_text == "52.5 %, exceeded by chance"
    assert lucky.holds is True


def test_all_defences_get_the_same_random_state():
    seen = []

    def attack(data=None, *, defence, epsilon=None, random_state):
        seen.append(random_state)
        return _result(defence, epsilon)

    attacks.compare(attack, epsilons=[1])
    attacks.compare(attack, epsilons=[1])
    assert len(set(seen[:3])) == 1
    assert len(set(seen)) == 2


@pytest.mark.parametrize("seed", [-1, "a", 1.5, True])
def test_an_invalid_seed_is_refused(seed):
    with pytest.raises(ValueError, match="random_state must be None or a non-negative integer"):
        attacks.compare(_made_up, epsilons=[1], random_state=seed)


def test_a_value_that_is_not_an_attack_is_refused():
    with pytest.raises(TypeError, match="attack must be a function"):
        attacks.compare(5, epsilons=[1])


def test_tab_completion_finds_the_attacks():
    assert {"differencing", "Population", "compare"} <= set(dir(attacks))


def test_progress_off_a_terminal_is_at_most_ten_plain_lines(capsys):
    assert list(report_progress(range(25), "questions")) == list(range(25))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10
    assert lines[-1] == "questions: 25 of 25"
    list(report_progress([1, 2], "few"))
    assert capsys.readouterr().err.splitlines() == ["few: 1 of 2", "few: 2 of 2"]
    assert list(report_progress([], "none")) == []
