"""Audits of whole fits with and without one person: neither outputs nor noisy sums exceed the claimed loss."""

import math

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import discreet as dc
from discreet.kernel.model_release import Combine
from discreet.learn import StandardScaler
from discreet.learn.boosting.explainable_boosting import ExplainableBoostingClassifier, ExplainableBoostingRegressor
from discreet.learn.cluster import KMeans
from discreet.learn.decomposition import PCA
from discreet.learn.fit_cost import REMOVAL, REPLACEMENT, cost_of, noises_for
from discreet.learn.fit_session import FitSession, FitSource, open_session
from discreet.learn.linear_model.least_squares import LinearRegression
from discreet.learn.linear_model.logistic import LogisticRegression
from discreet.learn.mixture import GaussianMixture
from discreet.learn.naive_bayes import GaussianNB
from discreet.learn.row_sources import array_rows, stream_rows
from tests.learn import audits
from tests.learn.audits import (
    MISSED,
    Data,
    attributes,
    audit,
    audit_fits,
    draws_of,
    epsilon_low,
    fitted,
    judged,
    learned,
    least,
    one_chance,
    replayed,
    residuals,
    spent,
    without,
)

BOX = (-5, 5)
DELTA = 0.01
PURE = {"epsilon": 0.25, "bounds": BOX}  # little, so that few fits can show more
GAUSSIAN = {"epsilon": 0.25, "delta": DELTA, "bounds": BOX}
RNG = np.random.default_rng(11)
CROWD = RNG.normal(-2, 0.5, (20, 2))
OUTLIER = Data(np.concatenate([CROWD, [[5, 5]]]))
LONE_LABEL = Data(OUTLIER.X, np.array([0] * 20 + [1]))
TWO_LABELS = Data(OUTLIER.X, np.array([0] * 11 + [1] * 9 + [7]))
FAR_TARGET = Data(OUTLIER.X[:, :1], OUTLIER.X[:, 1])
FIFTY_ROWS = Data(np.concatenate([CROWD, np.full((50, 2), 5.0)]), None, np.array([*range(20), *[20] * 50]))
FIFTY_LABELS = FIFTY_ROWS._replace(y=np.array([0] * 20 + [1] * 50))
MIXTURE = GaussianMixture(1, **GAUSSIAN)
EM = GaussianMixture(2, method="dp-em", n_iter=2, **GAUSSIAN)
CLASSIFIER = ExplainableBoostingClassifier(classes=[0, 1], rounds=2, max_bins=4, **PURE)
REGRESSOR = ExplainableBoostingRegressor(target_bounds=BOX, rounds=2, max_bins=4, **GAUSSIAN)
CASES = {
    "scaler, pure": (StandardScaler(**PURE), OUTLIER, 200),
    "scaler, Gaussian": (StandardScaler(**GAUSSIAN), OUTLIER, 200),
    "naive Bayes, pure": (GaussianNB(classes=[0, 1], **PURE), LONE_LABEL, 60),
    "naive Bayes, Gaussian": (GaussianNB(classes=[0, 1], **GAUSSIAN), LONE_LABEL, 60),
    "logistic regression": (LogisticRegression(classes=[0, 1], **PURE), LONE_LABEL, 60),
    "regression": (LinearRegression(target_bounds=BOX, **PURE), FAR_TARGET, 60),
    "dp-em": (EM, OUTLIER, 60),
    "whitened": (MIXTURE, OUTLIER, 50),
    "scaler, fifty rows": (StandardScaler(**PURE), FIFTY_ROWS, 200),
    "naive Bayes, fifty rows": (GaussianNB(classes=[0, 1], **PURE), FIFTY_LABELS, 60),
    "dp-em, fifty rows": (EM, FIFTY_ROWS, 60),
}
MORE_CASES = {
    **{name: (model, data) for name, (model, data, _) in CASES.items()},
    "whitened, two": (GaussianMixture(2, **GAUSSIAN), OUTLIER),
    "whitened, Laplace": (GaussianMixture(2, noise="laplace", **GAUSSIAN), OUTLIER),
    "whitened, fifty rows": (GaussianMixture(2, **GAUSSIAN), FIFTY_ROWS),
    "dp-em, Laplace": (GaussianMixture(2, method="dp-em", noise="laplace", n_iter=2, **GAUSSIAN), OUTLIER),
    "logistic regression, Gaussian": (LogisticRegression(classes=[0, 1], **GAUSSIAN), LONE_LABEL),
    "regression, Gaussian, fifty rows": (
        LinearRegression(target_bounds=BOX, **GAUSSIAN),
        FIFTY_ROWS._replace(y=FIFTY_ROWS.X[:, 1]),
    ),
    "principal components": (PCA(1, **PURE), OUTLIER),
    "principal components, Gaussian": (PCA(1, **GAUSSIAN), OUTLIER),
    "boosting": (CLASSIFIER, LONE_LABEL),
    "boosting, fifty rows": (CLASSIFIER, FIFTY_LABELS),
    "boosting of a regression": (REGRESSOR, FAR_TARGET),
    "boosting of a regression, fifty rows": (REGRESSOR, FIFTY_ROWS._replace(y=FIFTY_ROWS.X[:, 1])),
    "k-means": (KMeans(2, **PURE), OUTLIER),
    "k-means, Gaussian, fifty rows": (KMeans(2, **GAUSSIAN), FIFTY_ROWS),
}
every_case = pytest.mark.parametrize(("model", "data", "runs"), CASES.values(), ids=CASES)
every_fit = pytest.mark.parametrize(("model", "data"), MORE_CASES.values(), ids=MORE_CASES)


def last_person(data):
    return data.unit == data.unit[-1] if data.unit is not None else np.arange(len(data.X)) == len(data.X) - 1


@pytest.mark.long
@every_case
def test_fits_disclose_no_more_about_an_outlier_than_they_claim(model, data, runs):
    there = without(data, last_person(data))
    delta = float(model.delta)
    assert epsilon_low(runs, 0, runs, delta=delta, missed=MISSED / 6) > model.epsilon  # so many fits could show more
    for (seen,) in audit_fits(model, data, there, pilot=runs // 3, runs=runs, delta=delta):
        assert seen.epsilon <= model.epsilon
        if delta:
            assert seen.mu <= math.sqrt(2 * model.loss_.rho)


@pytest.mark.long(only=["whitened", "whitened, Laplace", "whitened, fifty rows", "whitened, two"])
@every_fit
def test_the_draws_of_a_fit_cost_no_more_than_its_loss(model, data):
    """The cost along the path that a fit took, in exact fractions: what one person moved, and by how much noise."""
    there = without(data, last_person(data))
    rows = [draws_of(model, each)[0].rows for each in (data, there)]
    for each in (data, there) * 3:
        epsilon, rho = spent(draws_of(model, each), *rows)
        assert 0 < rho <= model.loss_.rho
        if model.loss_.epsilon is not None:
            assert epsilon <= model.loss_.epsilon


@pytest.mark.long(only=["whitened", "whitened, Laplace", "whitened, fifty rows", "whitened, two"])
@every_fit
def test_every_draw_gets_fresh_noise_of_the_charged_scale(model, data):
    rows = draws_of(model, data)[0].rows
    found = [(draw, noise) for _ in range(6) for draw, noise in noises_of(model, data, rows)]
    for kind, law in (("Laplace", stats.laplace), ("Gaussian", stats.norm)):
        seen = [noise for draw, noise in found if type(draw.noise).__name__ == kind]
        if seen:
            assert stats.kstest(np.concatenate(seen), law.cdf).pvalue > MISSED / 100
    beginnings = [tuple(np.round(noise[:3], 9)) for _, noise in found if len(noise) > 2]  # fewer may agree by chance
    assert len(set(beginnings)) == len(beginnings) > 5


def noises_of(model, data, rows):
    draws = draws_of(model, data)
    return zip(draws, residuals(draws, rows), strict=True)


OTHERS = {
    "mixture of one or two": (GaussianMixture([1, 2], **GAUSSIAN), OUTLIER),
    "naive Bayes, own variances": (GaussianNB(variances="own", classes=[0, 1], **PURE), LONE_LABEL),
    "naive Bayes, labels unknown": (GaussianNB(epsilon=500, bounds=BOX), TWO_LABELS),
    "logistic regression, labels unknown": (LogisticRegression(epsilon=500, bounds=BOX), TWO_LABELS),
    "boosting, labels unknown": (
        ExplainableBoostingClassifier(epsilon=500, bounds=BOX),
        TWO_LABELS._replace(y=np.array([0] * 11 + [1] * 10)),
    ),
    "k-means, several rounds": (KMeans(3, n_iter=3, **PURE), OUTLIER),
}


@pytest.mark.parametrize(("model", "data"), [*MORE_CASES.values(), *OTHERS.values()], ids=[*MORE_CASES, *OTHERS])
def test_a_model_is_a_function_of_the_draws_only(model, data):
    """The same draws from quite other people give the same model, bit by bit, by the same questions."""
    with one_chance():
        drawn = draws_of(model, data)
        found = attributes(model)
        with replayed(drawn):
            assert attributes(fitted(model, other_people(data))) == found


def other_people(data):
    X = RNG.uniform(-9, 9, (7, data.X.shape[1]))
    y = None if data.y is None else np.array([0, 1, 7, 7, 250, 3, 1]).astype(data.y.dtype)
    return Data(X, y, None if data.unit is None else np.array([5, 5, 5, 9, 9, 2, 1]))


@pytest.mark.long
def test_undeclared_labels_are_counted_and_a_unique_one_is_hardly_ever_a_class():
    X = np.concatenate([RNG.normal(-2, 1, (300, 1)), RNG.normal(2, 1, (300, 1)), [[5.0]]])
    y = np.array([0] * 300 + [1] * 300 + [7])
    model = GaussianNB(epsilon=5, bounds=BOX)
    shown = sum(7 in model.fit(X, y).classes_ for _ in range(60))
    # A threshold that empty labels exceed once in 256,000 times is exceeded by a lone person e^0.5 times as often.
    assert least(shown, 60, MISSED) <= math.exp(0.5) / 256_000


# --- Doors through which more could come than was paid for


def rows_of(X, unit=None):
    return array_rows(np.asarray(X, float), (np.full(np.shape(X)[1], -5.0), np.full(np.shape(X)[1], 5.0)), unit)


@pytest.mark.parametrize(
    ("bought", "price", "neighbours"),
    [(2, 1, REMOVAL), (1, "1/2", REPLACEMENT), (1, 1, REPLACEMENT)],
    ids=["cheaper", "half, replaced", "removal's noise, replaced"],
)
def test_a_session_stops_where_noise_costs_more_than_its_budget(bought, price, neighbours):
    noises = noises_for(cost_of(bought, 0), [1, 2], REMOVAL)
    with pytest.raises(ValueError, match="cost must be at least"):
        FitSession(FitSource(rows_of(CROWD)), noises, cost_of(price, 0), "x", neighbours)


@pytest.mark.parametrize("neighbours", [REMOVAL, REPLACEMENT])
@pytest.mark.parametrize("delta", [0, DELTA])
def test_a_loss_names_its_neighbours_and_their_noise_is_for_them(neighbours, delta):
    """Somebody who moves from corner to corner moves sums by two balls, and the noise is for that."""
    model = StandardScaler(epsilon=1, delta=delta, bounds=BOX, neighbours=neighbours)
    crowd = np.zeros((20, 3))
    here, there = (Data(np.concatenate([crowd, np.full((1, 3), end)])) for end in BOX)
    rows = [draws_of(model, each)[0].rows for each in (here, there)]
    epsilon, rho = spent(draws_of(model, here), *rows)
    within = rho <= model.loss_.rho if delta else epsilon <= model.loss_.epsilon
    assert within == (neighbours == REPLACEMENT)
    assert model.loss_.neighbours == neighbours
    assert StandardScaler(**PURE).fit(CROWD, unit=np.arange(20)).loss_.unit == "unit"


def corner(rows, _):
    return rows / 10


def test_a_sum_of_rows_is_clipped_to_the_ball_like_their_mean():
    """A unit with a hundred rows adds their sum, if it is asked for, and no more than the radius."""
    fifty, hundred = rows_of(np.full((2, 1), 2.0), [1, 1]), rows_of(np.full((100, 1), 5.0), [1] * 100)
    for rows, told in ((fifty, 0.4), (hundred, 1)):
        session = open_session(FitSource(rows), name="x", epsilon=10**6, shares=[1])
        assert session.sum(corner, (), size=1, radius=1, combine=Combine.SUM)[0] == pytest.approx(told, abs=1e-3)


def test_a_cost_cannot_be_divided_by_invalid_shares():
    for shares in ([1, 0], [2, -1]):
        with pytest.raises(ValueError, match="shares"):
            noises_for(cost_of(1, 0), shares)


def in_chunks(most, unit):
    """A table in batches, with somebody who has rows in several of them, and numbers beyond the bounds."""
    X, units = np.array([[9.0], [9], [-9], [1], [9], [9], [9]]), np.array(unit)
    table = pa.table({"who": units, "x": X[:, 0]})
    return pa.Table.from_batches(table.to_batches(max_chunksize=most))


@pytest.mark.parametrize("most", [1, 2, 3, 7])
@pytest.mark.parametrize("engine", [False, True], ids=["Arrow", "DuckDB"])
def test_rows_of_one_person_in_many_batches_count_as_one(most, engine):
    table = in_chunks(most, ["a", "b", "a", "c", "b", "b", "b"])
    with duckdb.connect() as database:
        database.register("t", table)
        rows = stream_rows(
            database.sql("FROM t") if engine else table, ("x",), (-np.ones(1) * 5, np.ones(1) * 5), "who"
        )
        assert rows.grouped
        for size in (1, 2, 100):
            found = [(x, who) for batch, places in rows.batches(size) for (x,), who in zip(batch, places, strict=True)]
            of_each = [sorted(x for x, who in found if who == each) for each in sorted({who for _, who in found})]
            assert of_each == [[-5, 5], [5, 5, 5, 5], [1]]
            session = open_session(FitSource(rows), name="x", epsilon=10**6, shares=[1])
            assert session.histogram(nowhere, (), cells=1)[0] == pytest.approx(3, abs=1e-3)


def nowhere(rows, _):
    return np.zeros(len(rows), np.int64)


def test_a_dropped_row_drops_its_unit_id():
    table = pa.table({"who": ["a", "a", "b", "c"], "x": [1.0, math.nan, math.inf, 2.0], "z": [0.0, 0, 0, None]})
    rows = stream_rows(table, ("x", "z"), (-np.ones(2), np.ones(2)), "who")
    ((batch, places),) = rows.batches(100)
    assert batch.tolist() == [[1, 0]]
    assert len(places) == 1


def test_a_stream_with_a_target_keeps_its_units_and_its_bounds():
    table = pa.table({"who": ["a"] * 50 + ["b"], "x": [9.0] * 51, "y": [900.0] * 51})
    (draw, *_) = draws_of(LinearRegression(target_bounds=(0, 7), **PURE), Data(table, "y", "who"))
    assert draw.rows.grouped
    batch, places = next(draw.rows.batches(100))
    assert batch.max(axis=0).tolist() == [5, 7]
    assert len(set(places)) == 2


def test_targets_are_clamped_to_their_range_and_must_be_numbers():
    (draw, *_) = draws_of(LinearRegression(target_bounds=(0, 7), **PURE), Data(CROWD[:2, :1], np.array([900.0, -9])))
    assert next(draw.rows.batches(9))[0][:, 1].tolist() == [7, 0]
    with pytest.raises(ValueError, match="finite"):
        LinearRegression(target_bounds=(0, 7), **PURE).fit(CROWD[:2, :1], [1.0, math.nan])


def test_a_ledger_records_who_asked():
    ledger = dc.memory_ledger(name="d", budget=dc.Budget(1))
    open_session(FitSource(rows_of(CROWD), ledger=ledger, by="ana"), name="x", epsilon="1/2", shares=[1])
    assert [event.by for event in ledger.events()] == ["ana"]


def test_a_stream_is_charged_to_its_ledger():
    ledger = dc.memory_ledger(name="d", budget=dc.Budget(1))
    StandardScaler(**PURE).fit(pa.table({"x": [1.0, 2.0]}), ledger=ledger)
    assert ledger.spent().epsilon == 0.25


POLICY = """
[data]
name = "places"
ledger = ":memory:"
[budget]
epsilon = 2
[tables.t]
source = "t"
unit = "who"
[tables.t.columns]
who = { type = "text" }
x = { type = "real", between = [-5, 5] }
y = { type = "real", between = [0, 7] }
"""


def test_a_query_keeps_the_bounds_of_each_column_and_its_units():
    table = pa.table({"who": ["a"] * 50 + ["b"], "x": [9.0] * 51, "y": [900.0] * 51})
    with dc.open(dc.policy.Policy.parse(POLICY), data={"t": table}) as curator, audits.watched() as found:
        curator.fit(LinearRegression(epsilon="1/4"), "SELECT x, y FROM t")
        assert (found[0].rows.low.tolist(), found[0].rows.high.tolist()) == ([-5, 0], [5, 7])
        curator.fit(LinearRegression(epsilon="1/4", bounds=(-1, 1), target_bounds=(0, 1)), "SELECT x, y FROM t")
        rows = found[-1].rows
        assert rows.grouped
        batches = [(batch.max(), len(set(places))) for batch, places in rows.batches(100)]
        assert batches == [(1, 2)]
        assert curator.budget().remaining.epsilon == 1.5


# --- The audit itself is right


@pytest.mark.long
def test_an_audit_finds_nearly_all_that_plain_noise_loses_and_no_more():
    rng = np.random.default_rng(3)
    for scale, epsilon in ((1.0, 1.0), (0.5, 2.0)):
        seen = audit(lambda at, b=scale: [rng.laplace(at, b)], 0.0, 1.0, pilot=3000, runs=30_000)
        assert 0.8 * epsilon < seen.epsilon <= epsilon
    seen = audit(lambda at: [rng.normal(at, 0.5), 7.0], 0.0, 1.0, pilot=3000, runs=30_000)
    assert 0.9 * 2 < seen.mu <= 2


def test_an_audit_detects_a_difference_in_variance():
    rng = np.random.default_rng(4)
    seen = audit(lambda spread: rng.normal(0, spread, 20), 1.0, 2.0, pilot=300, runs=600)
    assert seen.epsilon > 2


def test_a_delta_is_subtracted():
    here, there = np.r_[np.ones(50), np.zeros(950)], np.zeros(1000)
    tried = [here, there]
    assert judged(tried, tried, delta=0.1, missed=0.05).epsilon == 0
    assert judged(tried, tried, delta=0.0, missed=0.05).epsilon > 1
    assert epsilon_low(900, 100, 1000, delta=0.2, missed=0.025) == pytest.approx(
        math.log((0.8797 - 0.2) / 0.1203), abs=1e-3
    )


def test_all_outputs_of_a_fit_are_audited():
    model = StandardScaler(**PURE).fit(CROWD)
    assert len(learned(model)) == 1 + 1 + 2 * 3  # rows, columns; means, variances, scales
    assert {model.mean_[0], model.var_[1], model.n_samples_seen_} <= set(learned(model))
