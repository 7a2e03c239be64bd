"""Explainable boosting: what it fits, how columns become bins, what is refused, and how its effects are shown."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError

import discreet as dc
from discreet.engines.row_sums import sums_observed_by
from discreet.kernel.reservation import CLIP_RADIUS
from discreet.learn import ExplainableBoostingClassifier, ExplainableBoostingRegressor, draw
from discreet.learn.boosting.boosting_rounds import BoostingStart, _by_strength
from discreet.learn.boosting.column_cells import CELLS, bins_of_categories, declare_cells, merge_cells
from discreet.learn.boosting.shape_functions import ShapeFunction, ordered_prior, unordered_prior

RNG = np.random.default_rng(5)
N = 6000
AGE, HOURS = RNG.uniform(0, 100, N), RNG.uniform(0, 24, N)
SEX = np.where(RNG.random(N) < 0.5, "female", "male")
SHIFT = np.where(SEX == "male", 2.0, -1.0)
TARGET = 5 * np.sin(AGE / 16) + np.abs(HOURS - 12) / 2 + SHIFT
LABEL = (TARGET + RNG.logistic(0, 1, N) > TARGET.mean()).astype(int)
FRAME = pd.DataFrame({"age": AGE, "sex": SEX, "hours": HOURS})
BOUNDS = {"age": (0, 100), "hours": (0, 24)}
DECLARED = {"bounds": BOUNDS, "categories": {"sex": ["female", "male"]}}
CLASSIFIER = {"classes": [0, 1], **DECLARED}
REGRESSOR = {"target_bounds": (-20, 20), **DECLARED}


def classifier(epsilon=100_000, **more):
    return ExplainableBoostingClassifier(epsilon=epsilon, **(CLASSIFIER | more))


def regressor(epsilon=100_000, **more):
    return ExplainableBoostingRegressor(epsilon=epsilon, **(REGRESSOR | more))


def test_without_noise_an_additive_target_is_fitted():
    assert regressor(rounds=5).fit(FRAME, TARGET).score(FRAME, TARGET) > 0.985
    assert regressor(rounds=5, max_bins=4).fit(FRAME, TARGET).score(FRAME, TARGET) < 0.95


def test_without_noise_a_classifier_finds_the_log_odds():
    model = classifier(rounds=8).fit(FRAME, LABEL)
    scores = model.decision_function(FRAME)
    assert np.corrcoef(scores, TARGET)[0, 1] > 0.97
    assert np.polyfit(TARGET, scores, 1)[0] == pytest.approx(1, abs=0.15)
    assert model.predict_proba(FRAME)[:, 1].mean() == pytest.approx(LABEL.mean(), abs=0.01)
    assert np.exp(model.predict_log_proba(FRAME[:9])) == pytest.approx(model.predict_proba(FRAME[:9]))


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_a_few_thousand_rows_are_enough_at_epsilon_one(delta):
    assert classifier(1, delta=delta).fit(FRAME, LABEL).score(FRAME, LABEL) > 0.75  # 0.83 without noise, half by chance
    assert regressor(1, delta=delta).fit(FRAME, TARGET).score(FRAME, TARGET) > 0.6


def test_effects_are_centred_and_add_up_to_the_score():
    model = classifier(10).fit(FRAME, LABEL)
    assert [len(each) for each in model.effects_] == [len(model.bins_[0]) + 2, 3, len(model.bins_[2]) + 2]
    for values, counts, margins in zip(model.effects_, model.bin_counts_, model.margins_, strict=True):
        assert values @ counts == pytest.approx(0, abs=1e-6 * counts.sum())
        assert (margins > 0).all()
    age, hours = (
        1 + np.searchsorted(model.bins_[j], FRAME[name], side="right") for j, name in ((0, "age"), (2, "hours"))
    )
    sex = 1 + (SEX == "male")
    effects = model.effects_[0][age] + model.effects_[1][sex] + model.effects_[2][hours]
    assert model.decision_function(FRAME) == pytest.approx(model.intercept_ + effects)
    assert model.bins_[1] == ["female", "male"]


def test_missing_values_and_undeclared_categories_have_an_effect_of_their_own():
    frame = FRAME.copy()
    frame.loc[:999, "age"] = np.nan
    frame["sex"] = frame["sex"].astype(object)
    frame.loc[:499, "sex"] = None
    frame.loc[500:999, "sex"] = "other"
    target = np.where(np.arange(N) < 1000, 15.0, TARGET)
    model = regressor(rounds=4).fit(frame, target)
    assert model.predict(frame[:1000]) == pytest.approx(15, abs=3)
    new = pd.DataFrame({"age": [np.nan] * 3, "sex": ["unheard of", None, np.nan], "hours": [12.0] * 3})
    assert len(set(model.predict(new))) == 1
    assert model.effects_[0][0] > max(model.effects_[0][1:])
    with pytest.raises(ValueError, match="infinity"):
        model.predict(new.assign(hours=np.inf))


def test_predictions_of_a_regression_stay_within_the_targets_bounds():
    model = regressor(1000, target_bounds=(-1, 1)).fit(FRAME, TARGET)
    assert (model.predict(FRAME).min(), model.predict(FRAME).max()) == (-1, 1)


def test_categories_of_text_numbers_and_arrays_fit_alike():
    code = (SEX == "male").astype(int)
    arrays = np.column_stack([AGE, code, HOURS])
    table = pa.table({"age": AGE, "sex": code, "hours": HOURS, "late": LABEL})
    numbers = {"categories": {"sex": [1, 0]}}
    models = [
        classifier().fit(FRAME, LABEL),
        classifier(bounds=([0, 0], [100, 24]), categories={1: [0, 1]}).fit(arrays, LABEL),
        classifier(**numbers).fit(FRAME.assign(sex=code), LABEL),
        classifier(**numbers).fit(table, "late"),
    ]
    scores = [
        model.decision_function(rows)
        for model, rows in zip(models, (FRAME, arrays, FRAME.assign(sex=code), FRAME.assign(sex=code)), strict=True)
    ]
    for each in scores[1:]:
        assert each == pytest.approx(scores[0], abs=0.05)
    assert models[3].bins_[1] == [0, 1]


@pytest.mark.parametrize(
    ("changed", "error", "said"),
    [
        ({"bounds": {"age": (0, 100)}}, ValueError, "'hours'"),
        ({"bounds": {"age": (0, 100), "hours": 24}}, ValueError, "pair"),
        ({"bounds": None}, ValueError, "bounds: declare"),
        ({"categories": {"gender": ["x"]}}, ValueError, "'gender' does not exist"),
        ({"categories": {"sex": ["female", "female"]}}, ValueError, "distinct"),
        ({"categories": {"sex": "female"}}, ValueError, "distinct"),
        ({"categories": ["sex"]}, TypeError, "dict"),
        ({"classes": [0, 1, 2]}, ValueError, "needs two"),
        ({"rounds": 0}, ValueError, "rounds"),
        ({"max_bins": 1}, ValueError, "max_bins"),
    ],
)
def test_invalid_declarations_are_refused_before_anything_is_charged(changed, error, said):
    ledger = dc.memory_ledger(name="d", budget=dc.Budget(1))
    with pytest.raises(error, match=said):
        classifier(1, **changed).fit(FRAME, LABEL, ledger=ledger)
    assert not ledger.events()


def test_text_in_a_numeric_column_and_text_categories_of_a_stream_are_refused():
    with pytest.raises(ValueError, match="could not convert"):
        classifier(categories=None, bounds=(0, 100)).fit(FRAME, LABEL)
    table = pa.table({"age": AGE, "sex": SEX, "hours": HOURS, "late": LABEL})
    with pytest.raises(ValueError, match="integers"):
        classifier().fit(table, "late")


def test_bounds_that_are_the_extremes_of_the_data_are_refused():
    with pytest.raises(ValueError, match="minimum and maximum"):
        classifier(bounds={"age": (AGE.min(), AGE.max()), "hours": (HOURS.min(), HOURS.max())}).fit(FRAME, LABEL)


def test_three_labels_stop_a_classifier_without_declared_classes():
    with pytest.raises(ValueError, match="show 3"):
        classifier(classes=None).fit(FRAME, np.arange(N) % 3)


def test_an_unfitted_regression_says_so():
    with pytest.raises(NotFittedError):
        regressor().predict(FRAME)


def test_rows_of_neither_class_change_nothing():
    third = np.where(AGE < 20, 17, LABEL)
    with_third, without = classifier().fit(FRAME, third), classifier().fit(FRAME[AGE >= 20], LABEL[AGE >= 20])
    rows = FRAME[AGE >= 25]
    assert with_third.decision_function(rows) == pytest.approx(without.decision_function(rows), abs=0.3)


# --- Bins and shape functions


def test_merged_cells_have_counts_above_the_noise_and_near_their_share():
    counts = np.concatenate([[7.0], RNG.poisson(5, CELLS) + RNG.normal(0, 2, CELLS)])
    for sd, bins in ((0.1, 8), (2.0, 32), (30.0, 32)):
        merged = merge_cells(counts, sd, bins)
        assert merged[0] == 0
        assert np.isin(np.diff(merged), (0, 1)).all()
        totals = np.bincount(merged, counts)[1:]
        assert len(totals) <= bins
        if len(totals) > 1:
            noise = sd * np.sqrt(np.bincount(merged)[1:])
            assert (totals[:-1] >= np.maximum(counts[1:].sum() / bins, 0.5 * noise[:-1])).all()


def test_codes_between_and_beyond_the_declared_categories_are_undeclared():
    cells = declare_cells(["x"], None, {"x": [7, 3, 5]}, indexed=False)
    low, high = cells.source_bounds(with_missing=False)
    assert (low, high, cells.sizes) == (2, 8, 7)
    assert bins_of_categories(np.array([3.0, 5.0, 7.0])).tolist() == [0, 1, 0, 2, 0, 3, 0]


def test_a_shape_function_averages_what_it_observes_and_shrinks_what_is_mostly_noise():
    truth, weights = np.linspace(-1, 1, 9), np.full(9, 100.0)
    rng = np.random.default_rng(1)

    def error_after(rounds):
        return np.sqrt(np.mean([np.square(observed(rounds) - truth) for _ in range(40)]))

    def observed(rounds):
        shape = ShapeFunction(weights, ordered_prior(weights), 1.0)
        for number in range(rounds):
            gradient = weights * truth - weights * effect_of(shape) + rng.normal(0, 60, 9)
            shape.update(gradient, 60.0, weights, number)
        return effect_of(shape)

    def effect_of(shape):
        return shape.centred + shape.mean

    assert error_after(12) < 0.6 * error_after(1) < 0.6 * 0.6  # the noise of one observation is 0.6 per bin
    noise_only = ShapeFunction(weights, unordered_prior(weights), 1.0)
    noise_only.update(rng.normal(0, 60, 9), 60.0, weights, 0)
    assert np.abs(effect_of(noise_only)).max() < 0.6
    assert (noise_only.margins > 0).all()


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.5, 1])
def test_margins_cover_the_effects_of_a_fit_without_noise(epsilon):
    """Margins of half the width, or for half the noise, would cover 0.85 at most."""
    exact = regressor(rounds=6).fit(FRAME, TARGET)
    inside = []
    for _ in range(8):
        model = regressor(epsilon, delta=1e-5).fit(FRAME, TARGET)
        for j, grid in ((0, np.linspace(5, 95, 19)), (2, np.linspace(1, 23, 12))):
            here, there = (1 + np.searchsorted(each.bins_[j], grid, side="right") for each in (model, exact))
            inside.extend(np.abs(model.effects_[j][here] - exact.effects_[j][there]) <= model.margins_[j][here])
    print(f"coverage {np.mean(inside):.2f}")
    assert np.mean(inside) > 0.88


def test_features_that_differ_most_between_the_classes_are_fitted_first():
    counts, bins = np.full(3, 1000.0), np.array([0, 1, 2])
    positives = [np.array([500.0, 480, 520]), np.array([500.0, 900, 100]), np.array([500.0, 400, 600])]
    start = BoostingStart([counts] * 3, 10.0, 0.0, 1.0, 1.0, None, (), positives)
    assert _by_strength(start, [bins] * 3, [counts] * 3) == [1, 2, 0]


# --- Budget and curator


def test_every_feature_is_released_once_per_round_and_the_budget_is_divided():
    asked = requests_of(model := regressor(1, rounds=2), TARGET)
    assert [name for name, _, _ in asked] == ["_target_cells"] + ["_target_residuals"] * 6
    assert model.loss_.epsilon == 1
    scales = [scale for _, _, scale in asked]
    assert sum(1 / scale for scale in scales) == pytest.approx(1)
    assert max(scales[1:]) == min(scales[1:]) < 1.2 * scales[0]  # no release gets most of the budget


def requests_of(model, target):
    """Return the rule, the radius and the noise scale (for a radius of 1) of each release of a fit."""
    asked = []

    def observe(request, reservation):
        scale = float(reservation.next_noise.scale / CLIP_RADIUS)
        asked.append((request.rule.__name__, float(request.radius), scale))
        return request.release(reservation)

    with sums_observed_by(observe):
        model.fit(FRAME, target)
    return asked


def test_residuals_are_clipped_more_where_there_is_more_noise():
    for made, target, name in ((classifier, LABEL, "_class_residuals"), (regressor, TARGET, "_target_residuals")):
        least, most = (requests_of(made(epsilon), target)[1][:2] for epsilon in (0.1, 100_000))
        assert least[0] == most[0] == name
        assert least[1] < 0.7 * most[1]


def test_a_curator_fits_and_charges_once():
    table = pa.table({"person": np.arange(N) // 3, "age": AGE, "male": (SEX == "male").astype(int), "late": LABEL})
    columns = {"age": (0, 100), "male": (0, 1), "late": (0, 1)}
    with dc.open(
        table, unit="person", budget=dc.Budget(40, "1e-6"), columns=columns, groups=1, rows=3, ledger=":memory:"
    ) as curator:
        model = ExplainableBoostingClassifier(epsilon=20, delta="1e-6", classes=[0, 1], categories={"male": [0, 1]})
        fitted = curator.fit(model, "SELECT age, male, late FROM data")
        assert (fitted.loss_.unit, len(curator.ledger.events())) == ("person", 1)
        assert fitted.feature_names_in_.tolist() == ["age", "male"]
        assert fitted.effects_[1][2] > fitted.effects_[1][1]
        line = curator.fit(ExplainableBoostingRegressor(epsilon=4, delta="1e-6"), "SELECT late, age FROM data")
        assert line.target_bounds_ == (0, 100)
        with pytest.raises(dc.Refused, match="dicts"):
            curator.fit(model.set_params(categories={"male": {0, 1}}), "SELECT age, male, late FROM data")


# --- Pictures


def test_effects_are_drawn_with_margins_that_say_what_they_are(tmp_path):
    pytest.importorskip("matplotlib")
    many = {"categories": {"sex": ["female", "male", *map(str, range(30))]}}
    model = classifier(1, **many).fit(FRAME, LABEL)
    axes = draw(model, tmp_path / "effects.svg")
    assert {ax.get_title(loc="left") or ax.get_title() for ax in axes} == {"age", "sex", "hours"}
    assert "approximate, noise only" in axes[0].figure.get_suptitle()
    assert "log-odds" in axes[0].figure.get_suptitle()
    assert "<svg" in (tmp_path / "effects.svg").read_text()
    (bars,) = [ax for ax in axes if (ax.get_title(loc="left") or ax.get_title()) == "sex"]
    assert len(bars.get_xticklabels()) == 12
