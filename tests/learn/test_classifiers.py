"""Naive Bayes and logistic regression: near to the exact ones without noise, useful under it, private about labels."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression as ExactRegression
from sklearn.naive_bayes import GaussianNB as ExactBayes

from discreet.kernel.model_release import check_row_wise
from discreet.learn.class_fallback import QuadraticScores, _advantage, prefers_largest_class
from discreet.learn.class_moments import _shrunken_counts, _shrunken_means, noisy_class_moments
from discreet.learn.feature_scaling import learn_scaling, standardise
from discreet.learn.fit_inputs import MAX_LABELS, read_class_labels
from discreet.learn.linear_model.logistic import LogisticProblem, LogisticRegression, noisy_newton
from discreet.learn.naive_bayes import GaussianNB
from tests.learn.seeded import Seeded

RNG = np.random.default_rng(5)
Y = RNG.integers(0, 3, 3000)
X = (
    RNG.normal(size=(3000, 4)) * [1, 3, 1, 0.5]
    + np.array([[0, 0, 0, 0], [1, 4, 0, 0], [-1, 2, 1, 0]])[Y]
    + [5, 0, 0, 0]
)
TWO = Y < 2
NEARLY_EXACT = {"epsilon": 1_000_000, "bounds": (-30, 30)}
SHARES = (0.05, 0.17, 0.05, 0.53, 0.04, 0.06, 0.1)
MODELS = pytest.mark.parametrize("model", [GaussianNB, LogisticRegression])
PRICES = pytest.mark.parametrize("price", [{"epsilon": 1}, {"rho": 0.02}], ids=["laplace", "gaussian"])


def refit(rows, ends, marks, price, seed):
    """Return the accuracy of class means alone, and of weights that were refined, on the rows themselves."""
    session = Seeded(rows, SHARES, **price, seed=seed)
    spread = learn_scaling(session, ends)
    means = noisy_class_moments(session, spread, marks, SHARES[2:4])
    features = (rows[:, :-1] - spread.centre) / spread.scale
    apart = ((features[:, np.newaxis] - means.means) ** 2 / means.variances).sum(axis=2)
    nearest = (np.log(means.shares) - apart / 2).argmax(axis=1)
    weights, offsets = noisy_newton(session, LogisticProblem(spread, means, marks, 1.0, fit_intercept=True))
    scores = features @ weights.T + offsets
    likeliest = scores[:, 0] > 0 if len(marks) == 2 else scores.argmax(axis=1)
    return np.mean(nearest == rows[:, -1]), np.mean(likeliest == rows[:, -1])


@pytest.mark.parametrize("delta", [0, 1e-9])
def test_without_noise_naive_bayes_finds_the_means_and_variances_of_classes(delta):
    exact = ExactBayes().fit(X, Y)
    model = GaussianNB(**NEARLY_EXACT, delta=delta, variances="own").fit(X, Y)
    assert np.abs(model.theta_ - exact.theta_).max() < 0.1
    assert model.var_ == pytest.approx(exact.var_, rel=0.1)
    assert model.class_count_ == pytest.approx(exact.class_count_, rel=0.03)
    assert model.class_prior_ == pytest.approx(exact.class_prior_, abs=0.01)
    assert model.score(X, Y) > exact.score(X, Y) - 0.01


def test_classes_share_their_variances_unless_requested_otherwise():
    model = GaussianNB(**NEARLY_EXACT).fit(X, Y)
    assert (model.var_ == model.var_[0]).all()
    assert model.var_[0] == pytest.approx([1, 9, 1, 0.25], rel=0.15)
    with pytest.raises(ValueError, match="variances must be one of"):
        GaussianNB(**NEARLY_EXACT, variances="many").fit(X, Y)


def test_separate_variances_distinguish_classes_with_the_same_means():
    y = RNG.integers(0, 2, 4000)
    x = RNG.normal(size=(4000, 2)) * np.where(y, 1, 5)[:, np.newaxis]
    assert GaussianNB(**NEARLY_EXACT, variances="own").fit(x, y).score(x, y) > 0.85
    assert GaussianNB(**NEARLY_EXACT).fit(x, y).score(x, y) < 0.65


@pytest.mark.parametrize("delta", [0, 1e-9])
def test_without_noise_it_is_logistic_regression(delta):
    exact = ExactRegression().fit(X[TWO], Y[TWO])
    model = LogisticRegression(**NEARLY_EXACT, delta=delta).fit(X[TWO], Y[TWO])
    assert model.coef_ == pytest.approx(exact.coef_, rel=0.1, abs=0.05)
    assert model.intercept_ == pytest.approx(exact.intercept_, rel=0.1, abs=0.1)
    several = LogisticRegression(**NEARLY_EXACT, delta=delta).fit(X, Y)
    assert several.coef_.shape == (3, 4)
    assert several.score(X, Y) > ExactRegression().fit(X, Y).score(X, Y) - 0.02


def test_without_an_intercept_the_origin_is_undecided():
    model = LogisticRegression(**NEARLY_EXACT, fit_intercept=False).fit(X[TWO] - X.mean(axis=0), Y[TWO])
    assert model.intercept_.tolist() == [0]
    assert model.predict_proba(np.zeros((1, 4))).tolist() == [[0.5, 0.5]]
    assert model.score(X[TWO] - X.mean(axis=0), Y[TWO]) > 0.75


def test_a_stronger_penalty_makes_smaller_weights():
    sizes = [np.abs(LogisticRegression(**NEARLY_EXACT, C=c).fit(X[TWO], Y[TWO]).coef_).sum() for c in (1, 1e-3)]
    assert sizes[1] < sizes[0] / 2
    with pytest.raises(ValueError, match="C"):
        LogisticRegression(**NEARLY_EXACT, C=0).fit(X[TWO], Y[TWO])


@MODELS
@pytest.mark.parametrize("columns", [2, 30])
def test_where_noise_hides_the_classes_the_most_frequent_is_predicted(model, columns):
    generator = np.random.default_rng(columns)
    labels = np.searchsorted([0.8, 0.95], generator.random(2000))
    rows = generator.normal(size=(2000, columns)) + 0.1 * labels[:, np.newaxis]
    scores = []
    for _ in range(10):
        fitted = model(epsilon=0.5, bounds=(-10, 10), classes=[0, 1, 2]).fit(rows, labels)
        scores.append(fitted.score(rows, labels))
        assert abs(fitted.advantage_) < 0.5
    assert np.mean(scores) > np.mean(labels == 0) - 0.003


@MODELS
def test_the_advantage_over_the_most_frequent_class_is_released(model):
    fitted = model(**NEARLY_EXACT).fit(X, Y)
    assert fitted.advantage_ == pytest.approx(fitted.score(X, Y) - np.bincount(Y).max() / len(Y), abs=0.005)
    useless = model(**NEARLY_EXACT).fit(X[:, :1] * 0, Y > 0)
    assert set(useless.predict(X[:, :1])) == {True}


def test_the_comparison_with_the_largest_class_sees_one_row_at_a_time():
    for classes in (2, 3):
        scores = RNG.normal(size=classes), *RNG.normal(size=(3, classes, 4))
        public = *scores, np.arange(classes, dtype=float), 1
        check_row_wise(_advantage, public, np.append(np.full(4, -9.0), -1), np.append(np.full(4, 9.0), classes))
    one_better = np.zeros(2), np.array([[0.0], [1.0]]), np.zeros((2, 1)), np.zeros((2, 1)), np.array([0.0, 1.0]), 0
    rows = np.array([[1.0, 1], [1, 0], [-1, 0], [-1, 1], [1, -1]])
    assert _advantage(rows, one_better)[:, 0].tolist() == [1, -1, 0, 0, 0]


@pytest.mark.parametrize("seed", range(6))
def test_a_comparison_that_noise_hides_leaves_the_model(seed):
    none = np.zeros((2, 1))
    scores, codes = QuadraticScores(np.array([0.0, 1]), none, none, none), np.array([0.0, 1])
    rows, counts = np.tile([0.0, 1.0], (100, 1)), np.array([50.0, 50])
    assert not prefers_largest_class(Seeded(rows, [1], epsilon=0.001, seed=seed), scores, codes, counts, counts)[0]


def test_counts_and_means_of_classes_are_shrunk_under_strong_noise():
    generator = np.random.default_rng(7)
    for _ in range(20):
        counts = _shrunken_counts(1000 + generator.normal(0, 500, 4), 500, 4000)
        assert np.abs(counts - 1000).max() < 600
        assert counts.min() > 300
        means, variance = _shrunken_means(generator.normal(0, 500, (4, 6)), 500, np.full(4, 1000.0))
        assert np.abs(means - means.mean(axis=0)).max() < 0.5  # the noise alone is 0.5, and 1.4 at most
        assert variance < 0.1
    clear = _shrunken_counts(np.array([100.0, 900]), 1, 1000)
    assert clear == pytest.approx([100, 900], abs=1)


def test_means_follow_from_excesses_over_a_threshold():
    generator, differences = np.random.default_rng(2), []
    label = np.arange(220) % 2
    rows = np.column_stack([generator.normal(size=(220, 20)) + 1.2 * label[:, np.newaxis], label])
    for seed in range(12):
        session = Seeded(rows, SHARES, epsilon=1, seed=seed)
        scaling = learn_scaling(session, (np.full(20, -5.0), np.full(20, 5.0)))
        moments = noisy_class_moments(session, scaling, np.arange(2.0), SHARES[2:4])
        assert moments.threshold > 0
        differences.append(np.mean((moments.means[1] - moments.means[0]) * scaling.scale))
    assert 0.55 < np.mean(differences) < 1.2  # shrunk; the excesses alone differ by 0.4


def test_standardised_values_are_clamped_to_four_deviations():
    rows = np.array([[105.0, -900, 1], [95, 0, 0]])
    assert standardise(rows, np.array([100.0, 0]), np.array([5.0, 2])).tolist() == [[1, -1], [-4, 0]]


@PRICES
@pytest.mark.parametrize("seed", range(4))
def test_three_thousand_rows_are_enough(price, seed):
    ends = np.full(4, -30.0), np.full(4, 30.0)
    exact = ExactRegression().fit(X, Y).score(X, Y)
    bayes, regression = refit(np.column_stack([X, Y]), ends, np.arange(3.0), price, seed)
    assert bayes > exact - 0.06
    assert regression > exact - 0.06


@PRICES
@pytest.mark.parametrize("seed", range(4))
def test_four_hundred_people_with_thirty_features_are_enough_at_epsilon_one(price, seed):
    x, y = load_breast_cancer(return_X_y=True)
    top = np.array([float(f"{end:.0e}") * 1.5 for end in x.max(axis=0)])
    bayes, regression = refit(np.column_stack([x, y]), (np.zeros(30), top), np.arange(2.0), price, seed)
    assert bayes > 0.8
    assert regression > 0.8


def test_ten_classes_of_digits_are_distinguished_at_epsilon_three():
    x, y = load_digits(return_X_y=True)
    ends = np.zeros(64), np.full(64, 16.0)
    bayes, regression = refit(np.column_stack([x, y]), ends, np.arange(10.0), {"epsilon": 3}, seed=0)
    assert bayes > 0.8
    assert regression > 0.8


@MODELS
def test_probabilities_and_predictions_agree(model):
    for rows, labels in ((X, Y), (X[TWO], Y[TWO])):
        fitted = model(**NEARLY_EXACT).fit(rows, labels)
        shares = fitted.predict_proba(rows)
        assert shares.shape == (len(rows), len(fitted.classes_))
        assert shares.sum(axis=1) == pytest.approx(1)
        assert np.exp(fitted.predict_log_proba(rows)) == pytest.approx(shares)
        assert (fitted.classes_[shares.argmax(axis=1)] == fitted.predict(rows)).all()


@MODELS
def test_labels_may_be_texts_if_they_are_named(model):
    names = np.array(["cat", "dog", "eel"])
    for labels in (names[Y], names[Y].astype(object), names[Y].tolist()):
        fitted = model(**NEARLY_EXACT, classes=["eel", "dog", "cat"]).fit(X, labels)
        assert fitted.classes_.tolist() == ["cat", "dog", "eel"]
        assert fitted.score(X, names[Y]) > 0.6


@MODELS
def test_rows_whose_label_is_no_class_are_left_out_silently(model):
    strange = np.where(Y == 2, 17, Y)
    fitted = model(**NEARLY_EXACT, classes=[0, 1]).fit(X, strange)
    alone = model(**NEARLY_EXACT, classes=[0, 1]).fit(X[TWO], Y[TWO])
    assert fitted.class_count_.sum() == pytest.approx(TWO.sum(), rel=0.3)
    assert fitted.score(X[TWO], Y[TWO]) > alone.score(X[TWO], Y[TWO]) - 0.05


@MODELS
def test_a_class_that_nobody_has_does_no_harm(model):
    fitted = model(**NEARLY_EXACT, classes=[0, 1, 2, 3]).fit(X, Y)
    assert fitted.classes_.tolist() == [0, 1, 2, 3]
    assert np.isfinite(fitted.predict_proba(X)).all()


@MODELS
def test_integer_and_boolean_labels_are_found_by_noisy_counts(model):
    assert model(**NEARLY_EXACT).fit(X, Y + 40).classes_.tolist() == [40, 41, 42]
    found = model(**NEARLY_EXACT).fit(X, Y > 0).classes_
    assert found.dtype == bool
    assert found.tolist() == [False, True]


@MODELS
@pytest.mark.parametrize("labels", [np.array(["a", "b", "c"])[Y], Y + 0.5], ids=["text", "continuous"])
def test_other_labels_must_be_named(model, labels):
    with pytest.raises(ValueError, match="classes: declare the labels"):
        model(**NEARLY_EXACT).fit(X, labels)


@MODELS
def test_too_few_labels_above_the_noise_are_an_error(model):
    with pytest.raises(ValueError, match=r"noisy counts.*classes=\[0, 1\]"):
        model(epsilon=0.01, bounds=(-30, 30)).fit(X[:200], Y[:200])


@PRICES
def test_no_label_is_found_that_nobody_has(price):
    labels = read_class_labels(X, Y, None)
    rows = np.column_stack([X, Y])

    class Counting(Seeded):
        def histogram(self, rule, public, *, cells):
            assert (rule(np.array([[-1.0], [0.5], [256.0]]), public) == [-1, -1, 256]).all()
            return super().histogram(rule, public, cells=cells)

    for seed in range(50):
        marks, names = labels.resolve_classes(Counting(rows, (0.1, 0.9), **price, seed=seed))
        assert marks.tolist() == names.tolist() == [0, 1, 2]
    assert labels.selection_shares == ("1/9",)
    assert read_class_labels(X, Y, [0, 1, 2]).selection_shares == ()
    assert labels.target.high == MAX_LABELS


@MODELS
@pytest.mark.parametrize("classes", [[1], [0, 0, 1], [[0, 1], [2, 3]], []])
def test_classes_are_two_or_more_different_labels(model, classes):
    with pytest.raises(ValueError, match="at least two distinct labels"):
        model(**NEARLY_EXACT, classes=classes).fit(X, Y)
    with pytest.raises(ValueError, match="both"):
        model(**NEARLY_EXACT, classes=["a", "b"]).fit(X, Y)


def test_priors_are_taken_as_they_are_given():
    model = GaussianNB(**NEARLY_EXACT, classes=[0, 1, 2], priors=[0.98, 0.01, 0.01]).fit(X, Y)
    assert model.class_prior_.tolist() == [0.98, 0.01, 0.01]
    assert np.mean(model.predict(X) == 0) > 0.5
    for wrong in ([0.5, 0.5], [1.5, -0.5, 0], [0.5, 0.5, 0.5]):
        with pytest.raises(ValueError, match="priors must be 3 probabilities"):
            GaussianNB(**NEARLY_EXACT, classes=[0, 1, 2], priors=wrong).fit(X, Y)
    with pytest.raises(ValueError, match="declare the classes too"):
        GaussianNB(**NEARLY_EXACT, priors=[0.5, 0.5]).fit(X, Y)


@MODELS
def test_rows_of_one_person_count_as_one(model):
    many = np.concatenate([np.arange(3000), np.full(5000, 7)])
    rows, labels = X[many % 3000], Y[many % 3000]
    fitted = model(**NEARLY_EXACT, classes=[0, 1, 2]).fit(rows, labels, unit=many)
    assert fitted.class_count_.sum() == pytest.approx(3000, rel=0.05)
    assert fitted.loss_.unit == "unit"


@MODELS
def test_a_table_is_streamed_with_its_label_as_a_column(model):
    table = pa.table({**{f"x{j}": X[:, j] for j in range(4)}, "kind": Y})
    for classes in ([0, 1, 2], None):
        fitted = model(**NEARLY_EXACT, classes=classes).fit(table, "kind")
        assert fitted.feature_names_in_.tolist() == ["x0", "x1", "x2", "x3"]
        assert fitted.classes_.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="must be numbers"):
        model(**NEARLY_EXACT, classes=["a", "b"]).fit(table, "kind")


class Asked:
    """The rows of a query: two features and a label, each row a person's."""

    names, bounds = ("a", "b", "kind"), ((-30.0, 30.0), (-30.0, 30.0), (0.0, 5.0))
    ledger, by, question, protects = None, "owner", "SELECT a, b, kind FROM t", "visitor"

    def batches(self, size):
        yield np.column_stack([X[:, :2], Y]), np.arange(len(X))


@MODELS
def test_the_last_column_of_a_query_is_the_label(model):
    for classes in ([0, 1, 2], None):
        fitted = model(epsilon=1_000_000, bounds=None, classes=classes).fit_rows(Asked())
        assert fitted.feature_names_in_.tolist() == ["a", "b"]
        assert fitted.classes_.tolist() == [0, 1, 2]
        assert fitted.loss_.unit == "visitor"


@MODELS
def test_the_loss_names_its_neighbours(model):
    assert model(**NEARLY_EXACT, neighbours="replacement").fit(X, Y).loss_.neighbours == "replacement"
    assert model(epsilon=1, bounds=(-30, 30), classes=[0, 1, 2]).fit(X, Y).loss_.epsilon == 1


@MODELS
def test_a_fit_to_hardly_any_rows_is_still_a_model(model):
    for epsilon in (0.001, 1_000):
        fitted = model(epsilon=epsilon, bounds=(-30, 30), classes=[0, 1, 2]).fit(X[:3], Y[:3])
        assert np.isfinite(fitted.predict_log_proba(X)).all()


@pytest.mark.parametrize("price", [{"epsilon": 1}, {"epsilon": 10}, {"rho": 0.0175}, {"rho": 1}])
@pytest.mark.parametrize("share", [0, 0.001], ids=["constant", "rare"])
def test_a_feature_that_hardly_ever_varies_gets_no_large_weight(price, share):
    rng = np.random.default_rng(11)
    x = rng.uniform(0, 10, 4000)
    features = np.column_stack([x, rng.random(4000) < share])
    label = (6 - 0.2 * x + rng.normal(0, 0.5, 4000) > 5).astype(float)
    weight = []
    for seed in range(10):
        session = Seeded(np.column_stack([features, label]), SHARES, **price, seed=seed)
        spread = learn_scaling(session, (np.zeros(2), np.array([11.0, 1.0])))
        means = noisy_class_moments(session, spread, np.arange(2.0), SHARES[2:4])
        weights, offsets = noisy_newton(
            session, LogisticProblem(spread, means, np.arange(2.0), 1.0, fit_intercept=True)
        )
        scores = (features - spread.centre) / spread.scale @ weights[0] + offsets[0]
        assert np.mean((scores > 0) == label) > 0.75
        weight.append(weights[0, 1] / spread.scale[1])
    assert np.sqrt(np.mean(np.square(weight))) < 2.2


def test_a_rare_feature_that_decides_gets_no_extreme_weight():
    """Where probabilities are near 0 and 1, the curvature says little about how far to go."""
    rng = np.random.default_rng(11)
    rare, x = rng.random(2000) < 0.02, rng.normal(size=2000)
    label = rare | (x > 2.5)
    for seed in range(4):
        session = Seeded(np.column_stack([rare, x, label]), SHARES, epsilon=1_000_000, seed=seed)
        spread = learn_scaling(session, (np.array([-1.0, -5]), np.array([1.0, 5])))
        means = noisy_class_moments(session, spread, np.arange(2.0), SHARES[2:4])
        weights, offsets = noisy_newton(
            session, LogisticProblem(spread, means, np.arange(2.0), 1.0, fit_intercept=True)
        )
        scores = (np.column_stack([rare, x]) - spread.centre) / spread.scale @ weights[0] + offsets[0]
        assert np.mean((scores > 0) == label) > 0.98
        assert np.abs(weights).max() < 11  # three steps from at most 3
