"""What an audit says, in words and in pictures."""

from fractions import Fraction

import numpy as np
import pytest
from readable import flaws

from discreet import audit
from discreet.audit.result import AuditResult, FeatureSamples

PLAIN = AuditResult(1.5, Fraction(1), 100, 0.0, 0.95, "x > <b>3</b>", "likelier on D than on D2")


def test_a_claim_below_what_was_proved_is_refuted():
    assert not PLAIN.holds
    assert PLAIN.verdict == "refuted"
    assert AuditResult(1.0, Fraction(1), 100, 0.0, 0.95, "x", "").holds
    assert AuditResult(9.0, None, 100, 0.0, 0.95, "x", "").holds


def test_the_text_has_all_that_matters():
    text = str(AuditResult(1.5, Fraction(1), 9, 1e-6, 0.95, "x", "y", (audit.Proportion(1, 9), audit.Proportion(0, 9))))
    for part in ("claimed epsilon: 1", "lower bound: 1.5", "refuted", "delta: 1e-06", "1 of 9 and 0 of 9", "95 %"):
        assert part in text


def test_the_absence_of_proof_is_not_reported_as_a_bound_of_0():
    nothing = AuditResult(0.0, Fraction(1), 100, 0.0, 0.95, "x", "")
    assert "lower bound: none above 0 at this sample size" in str(nothing)
    assert "lower bound: 0" in str(audit.exact({0: 1.0}, {0: 1.0}, claim=1))  # no sample: that is exact


def test_html_is_escaped():
    html = PLAIN._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;3" in html


RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("here", "relation", "claim", "low"),
    [
        (RNG.normal(size=50), ">=", Fraction(1), 1.5),
        (RNG.integers(0, 5, 50).astype(float), "<=", None, 1.5),
        (np.zeros(50), "==", Fraction(1), float("inf")),
        (np.full(50, np.nan), ">=", Fraction(0), 0.0),
    ],
    ids=["numbers", "integers", "one value", "none"],
)
def test_every_result_can_be_drawn(here, relation, claim, low):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    seen = FeatureSamples("the output", here, here + 1, relation, 1.0)
    figure = AuditResult(low, claim, 100, 0.0, 0.95, "x", "", plot_data=seen).figure()
    assert len(figure.axes) == 2
    assert flaws(figure) == []


def test_results_without_runs_are_drawn_by_their_counts():
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    shares = audit.Proportion(3, 10), audit.Proportion(0, 10)
    AuditResult(1.5, Fraction(1), 10, 0.0, 0.95, "x", "", shares).figure().draw_without_rendering()
    audit.exact({0: 1.0}, {1: 1.0}, claim=1).figure().draw_without_rendering()


def test_the_picture_of_a_question_has_the_answers_yes_and_no():
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    result = audit.measure(lambda data: "ab"[data], 0, 1, 1, 400, random_state=0)
    left, _ = result.figure().axes
    assert [label.get_text() for label in left.get_xticklabels()] == ["yes", "no"]
    assert sorted(bar.get_height() for bar in left.patches) == [0, 0, 1, 1]


def test_a_panel_with_nothing_in_it_is_left_out():
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    coin = audit.exact({0: 0.5, 1: 0.5}, {0: 0.25, 1: 0.75}, claim=1).figure()
    assert [bar.get_height() for bar in coin.axes[0].patches] == [0.5, 0.25]
    assert len(audit.exact({0: 0.5, 1: 0.5}, {0: 0.25, 1: 0.75}, claim=1, delta=0.1).figure().axes) == 1


@pytest.mark.parametrize(
    ("confidence", "said"), [(0.95, "at 95 % confidence"), (0.99, "1 in 100 "), (0.999, None), (1.0, None)]
)
def test_a_refutation_at_low_confidence_suggests_repeating(confidence, said):
    text = str(AuditResult(1.5, Fraction(1), 100, 0.0, confidence, "x", ""))
    assert ("repeat with confidence=1 - 1e-6" in text) == (said is not None)
    assert said is None or said in text
    assert "repeat with" not in str(AuditResult(0.5, Fraction(1), 100, 0.0, confidence, "x", ""))
