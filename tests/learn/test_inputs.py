"""Rows from arrays, frames, Arrow tables, DuckDB relations and curators give the same sums."""

import warnings
from importlib import import_module

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dc
from discreet.kernel import reservation
from discreet.kernel.mechanism import Laplace
from discreet.learn import StandardScaler
from discreet.learn.bounds import check_bounds_not_from_data, parse_bounds
from discreet.learn.fit_cost import cost_of, noises_for
from discreet.learn.fit_inputs import source_from_data
from discreet.learn.fit_session import FitSource, open_session
from discreet.learn.row_sources import array_rows

RNG = np.random.default_rng(5)
POINTS = RNG.normal(0, 1, (500, 2)).round(3)
UNITS = RNG.integers(0, 90, 500)
TABLE = pa.table({"user": UNITS, "x": POINTS[:, 0], "y": POINTS[:, 1]})


class Quiet(Laplace):
    def perturb(self, values):
        return values


@pytest.fixture
def quiet(monkeypatch):
    """No noise, so that sums can be compared."""
    import_module("discreet.pricing.allocation")  # imported while the name is patched, it would keep what replaces it
    monkeypatch.setattr("discreet.privacy.calibration.laplace_for", lambda *_: Quiet("1e-9"))
    monkeypatch.setattr("discreet.kernel.reservation.Loss.includes", lambda *_: True)


def fitted(X, **more):
    found = StandardScaler(epsilon=1, bounds=(-4, 4)).fit(X, **more)
    return [*found.mean_, *found.var_, found.n_samples_seen_]


def test_every_kind_of_table_gives_the_same_model(quiet):
    expected = fitted(POINTS)
    named = TABLE.drop_columns("user")
    with duckdb.connect() as engine:
        engine.register("points", TABLE)
        relation = engine.sql("SELECT x, y FROM points")
        kinds = [
            POINTS.tolist(),
            pd.DataFrame(POINTS),
            pl.DataFrame(POINTS),
            named,
            relation,
            np.asfortranarray(POINTS),
        ]
        for kind in kinds:
            assert fitted(kind) == expected, type(kind)
    assert expected[:2] == pytest.approx(POINTS.mean(axis=0), abs=1e-4)
    assert expected[-1] == pytest.approx(500)


def test_units_have_weight_one_in_every_kind_of_source(quiet):
    expected = fitted(POINTS, unit=UNITS)
    words = np.array([f"user {unit}" for unit in UNITS], object)
    with duckdb.connect() as engine:
        engine.register("points", TABLE)
        for table, unit in (
            (POINTS, words),
            (TABLE, "user"),
            (engine.sql("FROM points"), "user"),
            (POINTS, pd.Series(UNITS)),
        ):
            assert fitted(table, unit=unit) == pytest.approx(expected, rel=1e-9), type(table)
    means = np.array([POINTS[unit == UNITS].mean(axis=0) for unit in set(UNITS)])
    assert expected[:2] == pytest.approx(means.mean(axis=0), abs=1e-4)
    assert expected[-1] == pytest.approx(len(set(UNITS)))


POLICY = """
[data]
name = "places"
protects = "visitor"
ledger = ":memory:"
[budget]
epsilon = 2
[tables.points]
source = "points"
unit = "user"
[tables.points.columns]
user = { type = "integer" }
x = { type = "real", between = [-4, 4] }
y = { type = "real", between = [-4, 4] }
"""


def test_a_curator_fits_the_same_model_and_charges(quiet):
    with dc.open(dc.policy.Policy.parse(POLICY), data={"points": TABLE}) as curator:
        model = curator.fit(StandardScaler(epsilon="1/2"), "SELECT x, y FROM points")
        assert [*model.mean_, *model.var_, model.n_samples_seen_] == pytest.approx(fitted(POINTS, unit=UNITS))
        assert str(model.loss_) == "Loss(epsilon=1/2, rho=1/8, for the removal of one visitor)"
        (event,) = curator.ledger.events()
        assert (event.state, event.id) == ("released", model.receipt_)
        assert event.question == "fit StandardScaler: SELECT x, y FROM points"
        assert curator.budget().remaining.epsilon == 1.5
        assert model.feature_names_in_.tolist() == ["x", "y"]
        with pytest.raises(dc.Refused):
            curator.fit(StandardScaler(epsilon="1.6"), "SELECT x, y FROM points")
        assert curator.budget().remaining.epsilon == 1.5


def test_a_models_own_bounds_narrow_the_policys(quiet):
    with dc.open(dc.policy.Policy.parse(POLICY), data={"points": TABLE}) as curator:
        model = curator.fit(StandardScaler(epsilon=1, bounds=(0, 1)), "SELECT x FROM points")
    clipped = np.clip(POINTS[:, 0], 0, 1)
    assert model.mean_[0] == pytest.approx(np.mean([clipped[unit == UNITS].mean() for unit in set(UNITS)]), abs=1e-4)


def test_missing_values_of_a_table_are_left_out_and_those_of_an_array_refused(quiet):
    with_gaps = pa.table({"user": [1, 1, None, 2], "x": [1.0, None, 3.0, float("nan")], "y": [0.5, 1.0, 1.0, 1.0]})
    assert fitted(with_gaps.select(["x", "y"]))[-1] == pytest.approx(2)
    assert fitted(with_gaps, unit="user")[-1] == pytest.approx(1)
    for wrong in ([[1.0, float("nan")]], [[1.0, float("inf")]]):
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            fitted(wrong)


@pytest.mark.parametrize(
    ("bounds", "problem"),
    [
        (None, "declare .low, high."),
        ("auto", "declare"),
        ((1, 0), "low < high"),
        ((0, float("inf")), "finite"),
        ((0, [1, 2, 3]), "2 numbers"),
        (5, "must be .low, high."),
        ((float("nan"), 1), "finite"),
        ((-1e90, 1e90), "Use another unit"),
        ((0, [1, 1e-320]), "Use another unit"),
    ],
)
def test_bounds_are_declared(bounds, problem):
    with pytest.raises(ValueError, match=problem):
        parse_bounds(bounds, 2)


def test_bounds_that_are_the_extremes_of_the_data_are_refused():
    for ends in ((POINTS.min(axis=0), POINTS.max(axis=0)), (POINTS.min(), POINTS.max())):
        with pytest.raises(ValueError, match="minimum and maximum of the data"):
            StandardScaler(epsilon=1, bounds=ends).fit(POINTS)
    grades = np.array([[0.0, 16.0], [16.0, 0.0]])
    check_bounds_not_from_data(grades, *parse_bounds((0, 16), 2))  # anybody may have thought of these


@pytest.mark.parametrize(
    ("unit", "problem"),
    [
        ([1, 2], "each of the 3 rows"),
        ([1.0, float("nan"), 2.0], "no unit"),
        (["a", None, "b"], "no unit"),
    ],
)
def test_units_are_complete(unit, problem):
    with pytest.raises(ValueError, match=problem):
        array_rows(np.zeros((3, 1)), (np.zeros(1), np.ones(1)), unit)


def test_pairs_that_can_be_read_in_two_ways_are_refused():
    with pytest.raises(ValueError, match="ambiguous"):
        parse_bounds([(0, 120), (100, 220)], 2)


def test_a_column_of_texts_is_found_before_anything_is_charged():
    ledger = dc.memory_ledger(name="d", budget=dc.Budget(1))
    with pytest.raises(TypeError, match="column 'word' has type string"):
        StandardScaler(epsilon=1, bounds=(0, 1)).fit(pa.table({"word": ["a"]}), ledger=ledger)
    assert not ledger.events()


def test_the_privacy_unit_of_a_policys_ledger_must_be_named():
    with dc.open(dc.policy.Policy.parse(POLICY), data={"points": TABLE}) as curator:
        scaler = StandardScaler(epsilon="1/2", bounds=(-4, 4))
        with pytest.raises(ValueError, match="unit: this ledger belongs to a policy"):
            scaler.fit(POINTS, ledger=curator.ledger)
        assert scaler.fit(POINTS, unit=UNITS, ledger=curator.ledger).loss_.unit == "unit"
    with pytest.raises(TypeError, match="open ledger"):
        scaler.fit(POINTS, ledger="ledger.sqlite")


@pytest.mark.parametrize(
    ("unit", "word"),
    [('"user"', "visitor"), ('"row"', "row"), ('"user"\nwindow = "1 day"\ntime = "at"', "visitor's day")],
)
def test_a_fit_names_what_the_policy_protects(unit, word):
    text = POLICY.replace('"user"', unit, 1).replace(
        "user = {", 'at = { type = "timestamp", between = [2020-01-01, 2020-12-31] }\nuser = {'
    )
    at = pa.array([pd.Timestamp("2020-05-01")] * 500)
    with dc.open(dc.policy.Policy.parse(text), data={"points": TABLE.append_column("at", at)}) as curator:
        assert curator.fit(StandardScaler(epsilon=1), "SELECT x FROM points").loss_.unit == word


def test_names_keep_their_case_and_conditions_are_numbers(quiet):
    text = POLICY.replace("x = {", "Height = {")
    table = TABLE.rename_columns(["user", "Height", "y"])
    with dc.open(dc.policy.Policy.parse(text), data={"points": table}) as curator:
        model = curator.fit(StandardScaler(epsilon=1), "SELECT Height, y > 0 AS up FROM points")
    assert model.feature_names_in_.tolist() == ["Height", "up"]
    assert model.mean_[1] == pytest.approx(
        np.mean([(POINTS[unit == UNITS, 1] > 0).mean() for unit in set(UNITS)]), abs=1e-3
    )


def test_equal_units_are_one_unit_whatever_they_are_written_as():
    rows = array_rows(np.zeros((6, 1)), (np.zeros(1), np.ones(1)), np.array([1, 1.0, True, "1", "b", "b"], object))
    assert rows.unit_numbers.tolist() == [0, 0, 0, 1, 2, 2]
    with pytest.raises(TypeError, match="hashable"):
        array_rows(np.zeros((2, 1)), (np.zeros(1), np.ones(1)), np.array([{}, {}], object))


def test_different_units_stay_different_in_a_list():
    rows = array_rows(np.zeros((6, 1)), (np.zeros(1), np.ones(1)), [1, "1", 2**53, 2**53 + 1, 0.5, "a"])
    assert len(set(rows.unit_numbers.tolist())) == 6
    with pytest.raises(TypeError, match="mask"):
        array_rows(np.zeros((2, 1)), (np.zeros(1), np.ones(1)), np.ma.masked_array([1, 2], [True, False]))
    with pytest.raises(ValueError, match="some rows have no unit"):
        array_rows(np.zeros((2, 1)), (np.zeros(1), np.ones(1)), [pd.NA, "a"])


def test_an_engine_that_takes_units_for_equal_keeps_them_together(quiet):
    with duckdb.connect() as engine:
        engine.execute("CREATE TABLE t (who VARCHAR COLLATE NOCASE, x DOUBLE)")
        engine.execute(
            "INSERT INTO t SELECT CASE i % 3 WHEN 0 THEN 'Ann' WHEN 1 THEN 'ann' ELSE 'aNN' END, 0.5 "
            "FROM range(60) r(i)"
        )
        engine.execute("INSERT INTO t VALUES ('bob', 0.5), (NULL, 0.5)")
        assert fitted(engine.sql("FROM t"), unit="who")[-1] == pytest.approx(2)


def test_units_of_every_column_type_are_distinct(quiet):
    kinds = [
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array([0.0, 1.0, -0.0]),
        pa.array([True, False, True]),
        pa.array([b"a", b"b", b"a"]),
        pa.array([10**6, 10**7, 10**6], pa.timestamp("us")),
    ]
    for kind in kinds:
        assert fitted(pa.table({"user": kind, "x": [0.5, 0.5, 0.5]}), unit="user")[-1] == pytest.approx(2), kind.type
    with pytest.raises(TypeError, match="numbers, strings or times"):
        fitted(pa.table({"user": [[1], [2], [1]], "x": [0.5, 0.5, 0.5]}), unit="user")


@pytest.mark.parametrize("value", [2**60, float("nan"), float("inf")])
def test_no_value_of_a_table_stops_a_fit(value):
    """Whether a fit ends must not depend on one row; a batch may be left with no rows at all."""
    table = pa.table({"x": pa.array([value], pa.int64() if isinstance(value, int) else pa.float64())})
    for model in (StandardScaler(epsilon=1, bounds=(0, 1)), dc.learn.KMeans(2, epsilon=1, bounds=(0, 1))):
        assert model.fit(table).loss_.epsilon == 1


@pytest.mark.parametrize("secret", ["x >= 0", "x < 0 AND y > 3.99 AND x + y > 0"])
def test_nothing_is_counted_before_the_charge(secret):
    model = dc.learn.GaussianMixture(2, epsilon=1, delta=1e-6, method="dp-em", neighbours="replacement")
    with dc.open(dc.policy.Policy.parse(POLICY), data={"points": TABLE}) as curator:
        with pytest.raises(ValueError, match="neighbours='removal'"):
            curator.fit(model, f"SELECT x FROM points WHERE {secret}")
        assert not curator.ledger.events()


def test_an_abandoned_fit_is_settled():
    """Why it does so depends on noisy counts alone; it must not count as a failure that stops the data set."""
    ledger = dc.memory_ledger(name="d", budget=dc.Budget(1))
    with pytest.raises(ValueError, match="noisy counts show"):
        dc.learn.GaussianNB(epsilon="1/1000", bounds=(-4, 4)).fit(POINTS, np.arange(500) % 2, ledger=ledger)
    assert [event.state for event in ledger.events()] == ["released"]


def test_rows_of_no_unit_are_left_out_of_a_table_and_not_made_units(quiet):
    nan = float("nan")
    for missing in (nan, None):
        table = pa.table({"user": pa.array([1.0, missing, missing, 1.0, missing]), "x": [0.5] * 5})
        assert fitted(table, unit="user")[-1] == pytest.approx(1)
    for kind in (np.datetime64("NaT"), nan, None):
        with pytest.raises(ValueError, match="some rows have no unit"):
            array_rows(np.zeros((2, 1)), (np.zeros(1), np.ones(1)), np.array([kind, kind]))


def test_a_table_names_its_columns():
    scaler = StandardScaler(epsilon=1, bounds=(0, 1))
    with pytest.raises(TypeError, match="column names"):
        scaler.fit(TABLE, unit=UNITS)
    with pytest.raises(TypeError, match="unit=frame"):
        scaler.fit(POINTS, unit="user")
    with pytest.raises(ValueError, match=r"column 'person' does not exist in X; .*'user', 'x', 'y'"):
        scaler.fit(TABLE, unit="person")
    with pytest.raises(TypeError, match="several passes"):
        scaler.fit(TABLE.to_reader())


def test_the_noise_costs_what_was_requested():
    for epsilon, delta, neighbours in ((1, 0, "removal"), ("1/3", 0, "replacement"), (1, 1e-6, "removal")):
        price = cost_of(epsilon, delta)
        noises = noises_for(price, [1, 2, 0.5], neighbours)
        paid = reservation.reserve(noises, substitution=neighbours == "replacement").loss
        assert price.includes(paid)
        assert float(paid.rho) == pytest.approx(float(price.rho), rel=1e-6) or paid.epsilon == price.epsilon


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"epsilon": None}, "epsilon: declare"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"epsilon": 1, "delta": 1}, "delta must be below 1"),
        ({"epsilon": 1, "neighbours": "both"}, "neighbours must be 'removal' or 'replacement'"),
    ],
)
def test_an_invalid_cost_is_refused(settings, problem):
    with pytest.raises((ValueError, TypeError), match=problem):
        StandardScaler(bounds=(-4, 4), **settings).fit(POINTS)


def test_a_ledger_counts_removals():
    ledger = dc.memory_ledger(name="d", budget=dc.Budget(1))
    source = source_from_data(StandardScaler(epsilon=1, bounds=(-4, 4)), POINTS, ledger=ledger)
    with pytest.raises(ValueError, match="neighbours='removal'"):
        open_session(source, name="x", epsilon=1, shares=[1], neighbours="replacement")
    assert not ledger.events()


def test_a_fit_is_charged_to_the_given_ledger():
    ledger = dc.memory_ledger(name="d", budget=dc.Budget(1))
    scaler = StandardScaler(epsilon="3/4", bounds=(-4, 4)).fit(POINTS, ledger=ledger)
    assert ledger.spent().epsilon == scaler.loss_.epsilon == 0.75
    with pytest.raises(dc.Refused):
        scaler.fit(POINTS, ledger=ledger)


def test_a_long_fit_reports_its_progress(monkeypatch, capsys):
    monkeypatch.setattr("discreet.learn.fit_session._SHOW_AFTER_SECONDS", -1.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = open_session(
            FitSource(array_rows(POINTS, parse_bounds((-4, 4), 2))), name="Example", epsilon=1, shares=[1, 1]
        )
        session.histogram(_cell, (), cells=2)
        session.histogram(_cell, (), cells=2)
    assert "Example: private sums" in capsys.readouterr().err


def _cell(rows, _):
    return (rows[:, 0] > 0).astype(np.int64)
