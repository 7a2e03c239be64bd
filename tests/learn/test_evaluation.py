"""Private scores: right about the exact ones, honest about their margins, and paid for before a row is looked at."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import metrics
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.mixture import GaussianMixture

from discreet.kernel.errors import Refused
from discreet.kernel.loss import Budget, Loss
from discreet.kernel.model_release import check_row_wise
from discreet.learn.model_selection import evaluation
from discreet.learn.model_selection.evaluation import METRICS, Score, evaluate
from discreet.learn.model_selection.score_margins import SumNoise, r2_with_margin, share_with_interval
from discreet.ledger_sqlite import memory_ledger

rng = np.random.default_rng(5)
X = rng.normal(size=(300, 2))
LABELS = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
NUMBERS = np.clip(X @ [1.0, -0.5] + 0.3 * rng.normal(size=300), -4, 4)
CLASSIFIER = LogisticRegression().fit(X, LABELS)
LINE = LinearRegression().fit(X, NUMBERS)
CLUSTERS = KMeans(3, n_init=1, random_state=0).fit(X)
MIXTURE = GaussianMixture(2, random_state=0).fit(X)
PREDICTED = LINE.predict(X)
CASES = {
    "accuracy": (CLASSIFIER, LABELS, None, CLASSIFIER.score(X, LABELS)),
    "error": (CLASSIFIER, LABELS, None, 1 - CLASSIFIER.score(X, LABELS)),
    "log_loss": (CLASSIFIER, LABELS, (0, 10), metrics.log_loss(LABELS, CLASSIFIER.predict_proba(X))),
    "mean_squared_error": (LINE, NUMBERS, (-4, 4), metrics.mean_squared_error(NUMBERS, PREDICTED)),
    "rmse": (LINE, NUMBERS, (-4, 4), math.sqrt(metrics.mean_squared_error(NUMBERS, PREDICTED))),
    "mean_absolute_error": (LINE, NUMBERS, (-4, 4), metrics.mean_absolute_error(NUMBERS, PREDICTED)),
    "r2": (LINE, NUMBERS, (-4, 4), metrics.r2_score(NUMBERS, PREDICTED)),
    "log_likelihood": (MIXTURE, None, (-20, 5), MIXTURE.score(X)),
    "inertia": (CLUSTERS, None, (0, 30), CLUSTERS.inertia_ / len(X)),
}


def test_every_metric_is_tested():
    assert set(CASES) == set(METRICS)


@pytest.mark.parametrize("delta", [0, 1e-9])
@pytest.mark.parametrize("metric", CASES)
def test_with_hardly_any_noise_a_score_is_nearly_the_non_private_one(metric, delta):
    model, y, bounds, exact = CASES[metric]
    score = evaluate(model, X, y, metric=metric, bounds=bounds, epsilon=100_000, delta=delta)
    assert score.value == pytest.approx(exact, abs=2e-3)
    assert 0 < score.margin < 2e-2
    assert score.metric == metric


@pytest.mark.long(only=["0.03-40-False", "0.5-100-False", "0.9-500-False", "1.0-20-False"])
@pytest.mark.parametrize("normal", [True, False])
@pytest.mark.parametrize(("share", "count"), [(0.9, 500), (0.5, 100), (0.03, 40), (1.0, 20), (0.7, 3)])
def test_the_margin_of_a_mean_holds_the_truth_in_95_of_100_cases(share, count, normal):
    generator, runs, inside = np.random.default_rng(11), 600, 0
    for _ in range(runs):
        noise = generator.normal(0, 3, 2) if normal else generator.laplace(0, 3, 2)
        cells = np.array([(1 - share) * count, share * count]) + noise
        _, low, high = share_with_interval(cells, SumNoise(3.0, is_gaussian=normal))
        inside += low <= share <= high
    assert inside / runs > 0.93
    if count >= 100 and 0.1 < share < 0.95:
        assert inside / runs < 0.975  # and it is no wider than it must be


@pytest.mark.parametrize("normal", [True, False])
def test_the_margin_of_r2_holds_the_truth_in_95_of_100_cases(normal):
    generator, inside = np.random.default_rng(12), 0
    z, error = generator.uniform(-1, 1, 2000), generator.uniform(0, 0.1, 2000)
    sums = np.array([2000, (error - 0.5).sum(), z.sum(), (z * z - 0.5).sum()])
    exact = 1 - error.mean() / (z.var() / 4)
    for _ in range(400):
        noise = generator.normal(0, 9, 4) if normal else generator.laplace(0, 9, 4)
        value, margin = r2_with_margin(sums + noise, SumNoise(9.0, is_gaussian=normal))
        inside += abs(value - exact) <= margin
    assert 0.91 < inside / 400 < 0.985


@pytest.mark.long
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_margins_hold_with_real_noise(delta):
    model = SimpleNamespace(predict=lambda row: row[:, 0])
    held = np.ones((60, 1))
    truth = np.arange(60) % 4 > 0
    scores = [evaluate(model, held, truth, metric="accuracy", epsilon=2, delta=delta) for _ in range(400)]
    inside = sum(abs(score.value - 0.75) <= score.margin for score in scores)
    assert inside >= 340  # of 400 at 95 %: fails once in 10^12


def test_rows_are_judged_one_at_a_time():
    seen = []
    model = SimpleNamespace(predict=lambda row: seen.append(row.shape) or [1])
    evaluate(model, X[:5], [1] * 5, metric="accuracy", epsilon=1)
    assert seen == [(1, 2)] * 5


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_are_judged_row_by_row_too(frame):
    model = SimpleNamespace(predict=lambda row: row["a"].to_numpy())
    table = frame({"a": [1, 2, 3, 4]})
    score = evaluate(model, table, [1, 2, 3, 5], metric="accuracy", epsilon=10_000)
    assert score.value == pytest.approx(0.75, abs=0.01)


def test_a_row_at_which_the_model_fails_does_not_count():
    def predict(row):
        if row[0, 0] == 3:
            raise ValueError("it is Ana's")
        return [math.nan] if row[0, 0] == 4 else row[:, 0]

    held = np.arange(10.0).reshape(-1, 1)
    truth = [0, 1, 2, 0, 0, 5, 6, 7, 8, 0]
    score = evaluate(SimpleNamespace(predict=predict), held, truth, metric="mean_absolute_error", bounds=(0, 10),
                     epsilon=100_000)  # fmt: skip
    assert score.value == pytest.approx(9 / 8, abs=0.01)


def test_values_beyond_the_bounds_are_clamped():
    wild = SimpleNamespace(predict=lambda row: np.array([1e300]), classes_=[0, 1], predict_proba=lambda row: [[1, 0]])
    squared = evaluate(wild, X, NUMBERS, metric="mean_squared_error", bounds=(-4, 4), epsilon=10_000)
    assert squared.value == pytest.approx(64, abs=0.1)
    surprise = evaluate(wild, X, np.full(300, 2), metric="log_loss", bounds=(0, 7), epsilon=10_000)
    assert surprise.value == pytest.approx(7, abs=0.1)


def test_units_have_equal_weight_however_many_rows_they_have():
    model = SimpleNamespace(predict=lambda row: row[:, 0])
    unit = ["a"] * 97 + ["b", "c", "d"]
    truth = [1] * 97 + [0] * 3
    score = evaluate(model, np.ones((100, 1)), truth, metric="accuracy", unit=unit, epsilon=100_000)
    assert score.value == pytest.approx(1 / 4, abs=0.01)
    assert score.loss.unit == "unit"


def test_a_score_is_charged_before_anything_is_predicted():
    ledger = memory_ledger(name="held-out", budget=Budget(1))
    evaluate(CLASSIFIER, X, LABELS, metric="accuracy", epsilon=1, ledger=ledger)
    (event,) = ledger.events()
    assert (event.loss, event.question, event.state) == (
        Loss(1),
        "evaluate accuracy of LogisticRegression",
        "released",
    )

    def never(row):
        raise AssertionError("it was not paid for")

    with pytest.raises(Refused):
        evaluate(SimpleNamespace(predict=never), X, LABELS, metric="accuracy", epsilon=1, ledger=ledger)


@pytest.mark.parametrize("rule", [evaluation._split_between_bounds, evaluation._r2_moments])
def test_rules_depend_on_one_row_at_a_time(rule):
    for seed in range(20):
        low = np.random.default_rng(seed).uniform(0, 0.5, 2)
        check_row_wise(rule, (), low, low + 0.5)


def test_vectors_of_r2_are_within_their_ball():
    grid = np.stack(np.meshgrid(np.linspace(0, 1, 201), np.linspace(0, 1, 201)), axis=-1).reshape(-1, 2)
    vectors = evaluation._r2_moments(grid, ())
    assert np.abs(vectors).sum(axis=1).max() <= 3
    assert (vectors**2).sum(axis=1).max() <= 2.5


def test_a_better_score_has_a_higher_utility():
    assert Score(0.9, 0, Loss(1), "accuracy").utility > Score(0.8, 0, Loss(1), "accuracy").utility
    assert Score(0.1, 0, Loss(1), "rmse").utility > Score(0.2, 0, Loss(1), "rmse").utility
    assert Score(math.nan, 0, Loss(1), "r2").utility == -math.inf
    assert float(Score(0.1, 0, Loss(1), "rmse")) == 0.1


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"metric": "beauty"}, "metric"),
        ({"metric": "rmse"}, "bounds"),
        ({"bounds": (0, 1)}, "bounds"),
        ({"y": None}, "y"),
        ({"y": [1]}, "inconsistent"),
        ({"unit": [1]}, "inconsistent"),
        ({"epsilon": 0}, "epsilon"),
    ],
)
def test_wrong_arguments_are_refused_before_the_charge(changed, match):
    ledger = memory_ledger(name="held-out", budget=Budget(1))
    given = {"X": X, "y": LABELS, "metric": "accuracy", "epsilon": 1, "ledger": ledger} | changed
    with pytest.raises(ValueError, match=match):
        evaluate(CLASSIFIER, **given)
    assert ledger.events() == []


def test_a_model_that_cannot_predict_is_refused_before_the_charge():
    ledger = memory_ledger(name="d", budget=Budget(1))
    X, y = np.zeros((20, 2)), np.zeros(20)
    fitted = LogisticRegression().fit(pd.DataFrame(np.arange(8).reshape(4, 2), columns=["a", "b"]), [0, 1, 0, 1])
    for model, rows, problem in (
        (LogisticRegression(), X, "not fitted"),
        (fitted, np.zeros((20, 3)), "2 columns"),
        (fitted, pd.DataFrame(X, columns=["b", "a"]), "a, b"),
    ):
        with pytest.raises(ValueError, match=problem):
            evaluate(model, rows, y, metric="accuracy", epsilon=1, ledger=ledger)
    assert not ledger.events()


def test_a_frame_is_judged_as_its_numbers_are():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    y = (frame["a"] > 0).astype(int)
    model = LogisticRegression().fit(frame, y)
    assert np.array_equal(
        evaluation.row_scores(model, frame, y, evaluation.is_correct), (model.predict(frame) == y).astype(float)
    )
