"""Discreet's estimators, and no others, get private rows through the curator: bounded numbers, by unit."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.curator import fit
from discreet.curator.fit import PrivateRows
from discreet.engines.table_source import EngineError
from discreet.policy import Policy

POLICY = """
[data]
name = "places"
ledger = ":memory:"
[budget]
epsilon = 1
[budget.analysts]
ana = { epsilon = 1, tables = ["visits"] }
[tables.visits]
source = "visits"
unit = "UNIT"
groups = 1
rows = 2
[tables.visits.columns]
person = { type = "text" }
lat = { type = "real", between = [-90, 90] }
n = { type = "integer", between = [0, 9] }
code = { type = "integer" }
word = { type = "text" }
[tables.other]
source = "other"
unit = "person"
[tables.other.columns]
person = { type = "text" }
"""
VISITS = pa.table(
    {
        "person": ["b", "a", "b", None, "c", "a"],
        "lat": [1.5, float("nan"), 2.5, 7.0, None, 3.5],
        "n": [1, 2, 3, 4, 5, 6],
        "code": [1, 2, 3, 4, 5, 6],
        "word": list("uvwxyz"),
    }
)


class Recorder:
    """An estimator that only keeps what it was given."""

    def fit_rows(self, rows):
        self.rows = rows
        self.batches = list(rows.batches(2))


Recorder.__module__ = "discreet.learn"


@pytest.fixture(autouse=True)
def recorders_are_ours(monkeypatch):
    """To see what an estimator is given; who is really ours is tested below."""
    known = fit.is_own_estimator
    monkeypatch.setattr(fit, "is_own_estimator", lambda kind: kind is Recorder or known(kind))


class Stranger(Recorder):
    """The same, but not one of ours."""


def opened(unit="person"):
    text = POLICY.replace("UNIT", unit)
    text = text if unit == "person" else text[: text.index("[tables.other]")]
    data = {"visits": VISITS, "other": pa.table({"person": ["a"]})}
    return dc.open(Policy.parse(text), data={name: data[name] for name in data if f"[tables.{name}]" in text})


def test_an_estimator_gets_no_number_outside_its_bounds():
    """Its noise is made for the bounds: the owner's ranges say what is allowed, not what is stored."""
    stored = pa.table({"person": ["a", "b", "c"], "lat": [1e300, float("-inf"), -91.0], "n": [10**12, 5, -(10**12)]})
    stored = stored.append_column("code", stored["n"]).append_column("word", stored["person"])
    with dc.open(Policy.parse(POLICY.replace("UNIT", "person")), data={"visits": stored, "other": stored}) as curator:
        found = curator.fit(Recorder(), "SELECT lat, n FROM visits WHERE n > 5 OR n < 0")
        assert np.concatenate([numbers for numbers, _ in found.batches]).tolist() == [[90.0, 9.0], [-90.0, 0.0]]
        found = curator.fit(Recorder(), "SELECT n + 1 AS more FROM visits WHERE n > 0")
        assert found.rows.bounds == ((2.0, 10.0),)
        assert np.concatenate([numbers for numbers, _ in found.batches]).tolist() == [[10.0], [6.0]]


def test_an_estimator_gets_numbers_with_their_public_ranges_unit_by_unit():
    with opened() as curator:
        found = curator.fit(Recorder(), "SELECT lat AS y, n * 2 AS twice FROM visits", by="ana")
        assert isinstance(found.rows, PrivateRows)
        assert (found.rows.names, found.rows.by) == (("y", "twice"), "ana")
        assert found.rows.bounds == ((-90.0, 90.0), (0.0, 18.0))
        assert found.rows.ledger is curator.ledger
    numbers, units = (np.concatenate(column) for column in zip(*found.batches, strict=True))
    # Rows with a missing number or without a person are left out, and nothing tells who it is.
    assert sorted(numbers.tolist()) == [[1.5, 2.0], [2.5, 6.0], [3.5, 12.0]]
    assert units.tolist() == [1, 2, 2]
    assert numbers.dtype == np.float64


def test_where_every_row_is_a_unit_each_has_its_own_number():
    with opened("row") as curator:
        found = curator.fit(Recorder(), "SELECT n FROM visits")
    units = np.concatenate([units for _, units in found.batches])
    assert sorted(units.tolist()) == list(range(1, 7))


def test_only_our_own_estimators_see_rows():
    with opened() as curator:
        stranger = Stranger()
        with pytest.raises(dc.Refused, match=r"not an estimator of discreet\.learn"):
            curator.fit(stranger, "SELECT n FROM visits")
        assert not hasattr(stranger, "rows")
        with pytest.raises(dc.Refused, match=r"not an estimator of discreet\.learn"):
            curator.fit(object(), "SELECT n FROM visits")


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT word FROM visits", "not numeric"),
        ("SELECT code FROM visits", "no public range"),
        ("SELECT COUNT(*) FROM visits", "fitted to rows"),
        ("SELECT n FROM visits ORDER BY n", "ORDER BY: private rows cannot be ordered"),
        ("SELECT n FROM visits LIMIT 3", "LIMIT is not allowed on private rows"),
        ("SELECT nothing FROM visits", "nothing"),
        ("SELECT", "line 1"),
    ],
)
def test_what_gives_no_rows_of_numbers_is_refused(sql, words):
    with opened() as curator, pytest.raises(dc.Refused, match=words):
        curator.fit(Recorder(), sql)


def test_analysts_without_access_cannot_fit():
    with opened() as curator:
        with pytest.raises(dc.Refused, match="has no access"):
            curator.fit(Recorder(), "SELECT n FROM visits", by="eve")
        with pytest.raises(dc.Refused):
            curator.fit(Recorder(), "SELECT 1 AS n FROM other", by="ana")


def test_after_the_engine_was_closed_there_are_no_rows():
    with opened() as curator:
        found = curator.fit(Recorder(), "SELECT n FROM visits")
    with pytest.raises(EngineError, match="closed"):
        list(found.rows.batches())


class Fake(dc.learn.StandardScaler):
    """Says that it is ours."""

    def fit_rows(self, rows):
        raise AssertionError("it saw the rows")


Fake.__module__ = "discreet.learn"
Fake.__name__ = "StandardScaler"


def test_only_the_very_classes_of_learn_see_rows():
    with opened() as curator, pytest.raises(dc.Refused, match=r"not an estimator of discreet\.learn"):
        curator.fit(Fake(epsilon=1), "SELECT lat FROM visits")


def test_an_estimators_own_methods_and_objects_see_nothing():
    seen = []

    class Spy(float):
        def __float__(self):
            seen.append("looked")
            return 1.0

    with opened() as curator:
        patched = dc.learn.StandardScaler(epsilon="1/4")
        patched.fit_rows = patched._fit_source = seen.append
        assert curator.fit(patched, "SELECT lat FROM visits").loss_.epsilon == Fraction(1, 4)
        with pytest.raises(dc.Refused, match=r"epsilon: .* not Spy"):
            curator.fit(dc.learn.StandardScaler(epsilon=Spy(1)), "SELECT lat FROM visits")
        with pytest.raises(dc.Refused, match="not Spy"):
            curator.fit(dc.learn.StandardScaler(epsilon="1/4", bounds=[Spy(0), 90]), "SELECT lat FROM visits")
        with pytest.raises(dc.Refused, match="EXPLAIN"):
            curator.fit(dc.learn.StandardScaler(epsilon="1/4"), "EXPLAIN SELECT lat FROM visits")
    assert not seen


def test_refitting_a_model_keeps_nothing_of_the_first_fit():
    ratings = pa.table(
        {"person": list("aabb"), "lat": [0.0] * 4, "n": [1, 2, 1, 2], "code": [1] * 4, "word": list("uvwx")}
    )
    model = dc.learn.Recommender(epsilon="1/4", items=[1, 2], bounds=(1, 5), level="user")
    with dc.open(Policy.parse(POLICY.replace("UNIT", "person")), data={"visits": ratings, "other": ratings}) as curator:
        curator.fit(model, "SELECT n, lat FROM visits")
        curator.fit(model.set_params(bounds=(10, 50)), "SELECT n, lat FROM visits")
    assert model.predict([1, 2]).min() >= 10


PLACES = """
[tables.places]
source = "places"
public = true
[tables.places.columns]
n = { type = "integer" }
height = { type = "real", between = [0, 100] }
"""


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT height FROM visits JOIN places ON visits.n = places.n",
        "SELECT n FROM visits UNION ALL SELECT n FROM visits",
    ],
    ids=["join", "union"],
)
def test_a_row_that_is_protected_on_its_own_counts_once(sql):
    """A row that a join multiplies would contribute several times; a person's rows are bounded together."""
    places = pa.table({"n": [1, 1, 1, 2], "height": [1.0, 2.0, 3.0, 4.0]})
    for unit, refused in (("row", True), ("person", False)):
        text = (POLICY[: POLICY.index("[tables.other]")] + PLACES).replace("UNIT", unit)
        with dc.open(Policy.parse(text), data={"visits": VISITS, "places": places}) as curator:
            if refused:
                with pytest.raises(dc.Refused, match="row"):
                    curator.fit(Recorder(), sql)
            else:
                assert curator.fit(Recorder(), sql).batches


def test_rows_joined_to_one_public_row_can_be_learned_from():
    places = pa.table({"n": [1, 2, 3], "height": [1.0, 2.0, 3.0]})
    text = (POLICY[: POLICY.index("[tables.other]")] + PLACES).replace("UNIT", "row")
    with dc.open(Policy.parse(text), data={"visits": VISITS, "places": places}) as curator:
        found = curator.fit(Recorder(), "SELECT height FROM visits JOIN places ON visits.n = places.n")
    assert sorted(np.concatenate([numbers for numbers, _ in found.batches]).ravel().tolist()) == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize(("most", "words"), [(2**42, None), (2**42 + 1, "lower rows_max")])
def test_the_number_of_units_is_limited_to_what_64_bit_sums_allow(unit, most, words):
    text = POLICY[: POLICY.index("[tables.other]")].replace("UNIT", unit).replace("rows = 2", f"rows_max = {most}")
    with dc.open(Policy.parse(text), data={"visits": VISITS}) as curator:
        if words is None:
            assert curator.fit(Recorder(), "SELECT n FROM visits").batches
        else:
            with pytest.raises(dc.Refused, match=words):
                curator.fit(Recorder(), "SELECT n FROM visits")
