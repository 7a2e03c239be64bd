"""Frames in, frames of the same library out; the arguments form a policy, and nothing is inferred from rows."""

import datetime as dt
import warnings
from decimal import Decimal
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dc
from discreet.answer.frames import FrameKind
from discreet.policy import Between, Keys, NoDomain, NoUnit, PersonUnit, Policy, RowUnit

PEOPLE = 60
WARDS = ["A", "B", "C"]
COLUMNS = {"ward": WARDS, "cost": (0, 500), "age": (0, 120), "day": (dt.date(2026, 1, 1), dt.date(2026, 12, 31))}
BY_WARD = "SELECT ward, COUNT(*) AS n, AVG(cost) AS mean FROM data GROUP BY ward ORDER BY ward"
SURE = 500  # an epsilon at which no noise is left: one draw in e^200 is not 0


def rows(people=PEOPLE):
    return {
        "patient": list(range(people)),
        "ward": [WARDS[i % 2] for i in range(people)],
        "cost": [float(i) for i in range(people)],
        "age": [i % 90 for i in range(people)],
        "day": [dt.datetime(2026, 1, 1 + i % 28, 12) for i in range(people)],
    }


ARROW = pa.table(rows())
PANDAS = pd.DataFrame(rows())
POLARS = pl.DataFrame(rows())


class Strange:
    """Holds rows that cannot be read, and says so with one of them."""

    def __arrow_c_stream__(self, requested_schema=None):
        raise ValueError("row 7: Ana Schmidt is no number")


def opened(frame=ARROW, **said):
    usual = {"unit": "patient", "budget": 2 * SURE, "columns": COLUMNS, "groups": 1, "rows": 1, "ledger": ":memory:"}
    return dc.open(frame, **(usual | said))


def declared(frame=ARROW, **said):
    with opened(frame, **said) as curator:
        return curator.policy


@pytest.mark.parametrize(
    ("frame", "kind"),
    [
        (PANDAS, pd.DataFrame),
        (POLARS, pl.DataFrame),
        (POLARS.lazy(), pl.DataFrame),
        (ARROW, pa.Table),
        (ARROW.to_batches()[0], pa.Table),
    ],
    ids=["pandas", "polars", "lazy", "table", "batch"],
)
def test_the_same_kind_of_frame_comes_back(frame, kind):
    with opened(frame) as curator:
        answer = curator.ask(BY_WARD, epsilon=SURE)
    assert type(answer.frame) is kind
    assert list(answer.frame["ward"]) in (WARDS, [pa.scalar(ward) for ward in WARDS])
    assert answer.to_arrow()["n"].to_pylist() == [30, 30, 0]
    assert answer.to_pandas()["n"].tolist() == answer.to_polars()["n"].to_list() == [30, 30, 0]


def test_a_one_shot_stream_is_read_once():
    for stream in (ARROW.to_reader(), duckdb.connect().from_arrow(ARROW)):
        with opened(stream) as curator:
            answer = curator.ask(BY_WARD, epsilon=SURE)
        assert answer.frame["n"].to_pylist() == [30, 30, 0]


def test_an_answer_under_a_policy_is_of_arrow_whatever_its_data():
    text = """
        [data]
        name = "d"
        ledger = ":memory:"
        [budget]
        epsilon = 1
        [tables.data]
        source = "data"
        unit = "patient"
        groups = 1
        rows = 1
        columns = { patient = { type = "integer" } }
    """
    with dc.open(Policy.parse(text), data={"data": PANDAS}) as curator:
        answer = curator.ask("SELECT COUNT(*) AS n FROM data", epsilon=1)
    assert isinstance(answer.frame, pa.Table)
    assert isinstance(answer.with_frame_kind(FrameKind.POLARS).frame, pl.DataFrame)


def test_short_forms_mean_what_a_policy_writes_out():
    long = {
        "patient": {"type": "integer"},
        "ward": {"type": "text", "in": WARDS},
        "cost": {"type": "real", "between": [0, 500]},
        "age": {"type": "integer", "between": [0, 120]},
        "day": {"type": "timestamp", "between": [dt.date(2026, 1, 1), dt.date(2026, 12, 31)]},
    }
    assert declared(columns=COLUMNS).tables == declared(columns=long).tables
    untyped = {name: {key: entry[key] for key in entry if key != "type"} for name, entry in long.items()}
    assert declared(columns=untyped).tables == declared(columns=long).tables


def test_columns_accept_all_keys_of_a_policy():
    columns = {"cost": {"between": (Decimal("0.5"), np.int64(100)), "step": "1/4", "outside": "null"}, "ward": "text"}
    table = declared(columns=columns).tables["data"]
    assert table.columns["cost"].domain == Between(Fraction(1, 2), Fraction(100), Fraction(1, 4), "null")
    assert table.columns["ward"].domain == NoDomain()


def test_numpy_numbers_may_be_listed():
    assert declared(columns={"age": list(np.arange(3))}).tables["data"].columns["age"].domain == Keys((0, 1, 2))


def test_the_unit_is_a_column_by_itself_and_no_other_column_exists():
    table = declared(columns={"ward": WARDS}).tables["data"]
    assert list(table.columns) == ["patient", "ward"]
    with (
        opened(columns={"ward": WARDS}) as curator,
        pytest.raises(dc.Refused, match='column "cost" does not exist'),
    ):
        curator.ask("SELECT SUM(cost) FROM data", epsilon=1)


def test_a_declared_unit_column_has_its_declared_type():
    policy = declared(PANDAS.astype({"patient": "float64"}), columns={"Patient": "integer"}, unit="PATIENT")
    assert policy.unit == PersonUnit("integer")


def test_single_rows_can_be_protected():
    policy = declared(unit="row", groups=None, rows=None)
    assert policy.unit == RowUnit()
    assert "patient" not in policy.tables["data"].columns


@pytest.mark.parametrize("frame", [PANDAS, POLARS, ARROW], ids=["pandas", "polars", "arrow"])
def test_a_policy_does_not_depend_on_the_rows(frame):
    assert declared(frame).tables == declared(frame[:0]).tables


@pytest.mark.parametrize(
    ("column", "word"),
    [
        (pd.array([1, None], dtype="Int64"), "integer"),
        (pd.array([True, None], dtype="boolean"), "boolean"),
        (pd.array(["a", None], dtype="string"), "text"),
        (pd.Series([1, 2], dtype=object), "text"),  # what it holds is for its owner to say
        (pd.Categorical(["a", "b"]), "text"),
        (pd.Categorical([3, 4]), "integer"),
        (pd.array([Decimal("1.5")] * 2, dtype=pd.ArrowDtype(pa.decimal128(5, 2))), "decimal"),
        (pd.array([dt.date(2026, 1, 1)] * 2, dtype=pd.ArrowDtype(pa.date32())), "date"),
        (pd.to_datetime(["2026-01-01"] * 2).tz_localize("UTC"), "timestamp"),
        (pl.Series(["a", "b"], dtype=pl.Categorical), "text"),
        (pl.Series(["a", "b"], dtype=pl.Enum(["a", "b"])), "text"),
        (pa.array(["a", "b"]).dictionary_encode(), "text"),
        (pa.array(["a", "b"], pa.string_view()), "text"),
        (pa.array([1.5, 2.5], pa.float32()), "real"),
    ],
)
def test_a_type_is_the_schemas(column, word):
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
    frame = make[type(column).__module__.partition(".")[0]]({"patient": [1, 2], "x": column})
    assert declared(frame, columns={"x": {}}).tables["data"].columns["x"].type == word


def test_categories_are_data_and_never_become_keys():
    frame = PANDAS.assign(ward=PANDAS["ward"].astype("category"))
    assert declared(frame, columns={"ward": "text"}).tables["data"].columns["ward"].domain == NoDomain()
    for found in (frame["ward"].dtype, frame["ward"].cat.categories, frame["ward"].unique(), frame["ward"], set(WARDS)):
        with pytest.raises(
            dc.PolicyError, match=r"column ward: .* is not a declaration.* They are never taken from the rows\."
        ):
            opened(frame, columns={"ward": found})
    with opened(frame) as curator:
        assert curator.ask(BY_WARD, epsilon=SURE).frame["n"].tolist() == [30, 30, 0]


@pytest.mark.parametrize(
    ("given", "budget"),
    [
        (1, dc.Budget(1)),
        ("1/3", dc.Budget("1/3")),
        (0.1, dc.Budget("1/10")),
        (Decimal("0.1"), dc.Budget("1/10")),
        ((1, 1e-9), dc.Budget(1, "1/1000000000", discover="1/2")),
        (dc.Budget(2), dc.Budget(2)),
        (dc.Budget(2, 1e-6), dc.Budget(2, 1e-6)),
        (dc.Budget(2, 1e-6, discover="1/3"), dc.Budget(2, 1e-6, discover="1/3")),
    ],
)
def test_a_budget_can_be_written_in_several_ways(given, budget):
    assert declared(budget=given).budget == budget


def test_several_frames_are_joined_on_the_person():
    visits = pd.DataFrame({"patient": [i % PEOPLE for i in range(120)], "ward": [WARDS[i % 2] for i in range(120)]})
    people = pl.DataFrame({"patient": range(PEOPLE), "sex": ["f" if i < 20 else "m" for i in range(PEOPLE)]})
    floors = pa.table({"ward": WARDS, "floor": [1, 2, 2]})
    with opened(
        {"visits": visits, "people": people},
        public={"floors": floors},
        columns={"visits": {"ward": {"references": "floors.ward"}}, "people": {"sex": ["f", "m"]}},
        rows={"visits": 2, "people": 1},
    ) as curator:
        assert isinstance(curator.policy.tables["floors"].unit, NoUnit)
        assert [curator.policy.tables[name].rows for name in ("visits", "people")] == [2, 1]
        assert curator.policy.data.name == "data"
        answer = curator.ask(
            "SELECT p.sex, f.floor, COUNT(*) AS n FROM visits v JOIN people p ON v.patient = p.patient "
            "JOIN floors f ON v.ward = f.ward GROUP BY p.sex, f.floor ORDER BY p.sex, f.floor",
            epsilon=SURE,
            rows=2,
        )
    assert isinstance(answer.frame, pd.DataFrame)  # as the first of them
    assert answer.frame["n"].tolist() == [20, 20, 40, 40]


def test_a_table_may_belong_to_people_through_another():
    stays = pa.table({"stay": [1, 2, 3], "patient": [1, 1, 2]})
    notes = pa.table({"stay": [1, 1, 3], "kind": ["x", "y", "x"]})
    with opened(
        {"stays": stays, "notes": notes},
        unit={"stays": "patient", "notes": {"through": "stays", "on": "stay"}},
        columns={"stays": {"stay": "integer"}, "notes": {"stay": "integer", "kind": ["x", "y"]}},
        rows=3,
        groups=2,
    ) as curator:
        answer = curator.ask("SELECT kind, COUNT(*) AS n FROM notes GROUP BY kind ORDER BY kind", epsilon=SURE)
    assert answer.frame["n"].to_pylist() == [2, 1]


def test_public_tables_can_stand_beside_one_frame():
    with opened(public={"floors": pa.table({"ward": WARDS, "floor": [1, 2, 2]})}) as curator:
        sql = "SELECT floor, COUNT(*) AS n FROM data JOIN floors USING (ward) GROUP BY floor ORDER BY floor"
        assert curator.ask(sql, epsilon=SURE).frame["n"].to_pylist() == [30, 30]


def test_a_ledger_in_memory_is_warned_of_where_it_is_opened():
    with pytest.warns(UserWarning, match=r'lost when this process ends.*ledger="visits\.sqlite"') as seen:
        opened(ledger=None).close()
    assert seen[0].filename.endswith("test_open_frames.py")


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_a_text_that_is_declared_otherwise_is_warned_of_and_objects_are_not(library):
    frame = library({"patient": [1, 2], "age": ["30", "old"]})
    columns = {"age": {"type": "integer", "between": (0, 120)}}
    with pytest.warns(UserWarning, match="column age: it is stored as text but read as an integer") as seen:
        opened(frame, columns=columns).close()
    assert seen[0].filename.endswith("test_open_frames.py")
    objects = pd.DataFrame({"patient": [1, 2], "age": pd.Series([30, None], dtype="object")})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opened(objects, columns=columns).close()


def test_a_ledger_that_was_named_is_not_warned_of(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opened(ledger=":memory:").close()
        opened(ledger=tmp_path / "l.sqlite").close()


def test_a_ledger_file_records_what_was_spent(tmp_path):
    ledger = tmp_path / "visits.sqlite"
    with opened(ledger=ledger, budget=1) as curator:
        curator.ask(BY_WARD, epsilon="3/4")
    with opened(PANDAS, ledger=str(ledger), budget=1) as curator:
        assert curator.budget().remaining.epsilon == Fraction(1, 4)
        with pytest.raises(dc.Refused):
            curator.ask("SELECT COUNT(*) AS n FROM data", epsilon="1/2")
        curator.ledger.verify()


@pytest.mark.parametrize("unit", ["row", "age", "ward"])
def test_a_ledger_is_not_used_for_another_unit(tmp_path, unit):
    opened(ledger=tmp_path / "l.sqlite").close()
    with pytest.raises(dc.PolicyError, match="unit or window differs"):
        opened(ledger=tmp_path / "l.sqlite", unit=unit)


def test_a_ledger_is_not_used_for_other_data(tmp_path):
    opened(ledger=tmp_path / "l.sqlite", table="visits").close()
    with opened(ledger=tmp_path / "l.sqlite", name="visits") as curator:  # a name that is said wins
        assert curator.policy.tables.keys() == {"data"}
    with pytest.raises((dc.PolicyError, dc.LedgerError), match="visits"):
        opened(ledger=tmp_path / "l.sqlite")


def test_a_version_is_the_owners_label_of_the_data():
    assert (declared().data.version, declared(version="2026-11").data.version) == (None, "2026-11")


WRONG = [
    ({"unit": None}, r"unit: table data: declare the privacy unit"),
    ({"unit": "patinet"}, r'unit: .*column "patinet" does not exist; did you mean "patient"\?'),
    ({"unit": "cost"}, r"column cost: the unit cannot be real.* Declare integer"),
    ({"budget": None}, r"budget: there is no default.*budget=\(1, 1e-9\)"),
    ({"budget": (1, 2, 3)}, r"budget: there is no default"),
    ({"budget": -1}, r"\[budget\]: epsilon must be greater than 0"),
    ({"budget": True}, r"\[budget\]: epsilon must be a finite number"),
    ({"budget": (1, 2)}, r"\[budget\]: delta must be .*less than 1"),
    ({"columns": None}, r"columns: table data: declare the columns"),
    ({"columns": ["ward"]}, r"columns: table data: declare the columns"),
    ({"columns": {1: (0, 1)}}, r"columns: table data: 1 is not a column name"),
    ({"columns": {"cots": (0, 5)}}, r'columns: .*column "cots" does not exist; did you mean "cost"\?'),
    ({"columns": {"cots": {"type": "real", "between": [0, 5]}}}, r"column cots: it does not exist"),
    ({"columns": {"cost": (5, 0)}}, r"column cost: between: the lower bound must be less"),
    ({"columns": {"cost": (5,)}}, r"column cost: between must be a list of two"),
    (
        {"columns": {"cost": [0, 500]}},
        r"column cost: a list of two values is ambiguous\. Write \(low, high\)",
    ),
    ({"columns": {"age": [0, 120]}}, r"column age: a list of two values"),
    ({"columns": {"ward": ("A", "B")}}, r"column ward: a text column cannot have a range"),
    ({"columns": {"ward": "string"}}, r'column ward: type must be .*not "string"'),
    ({"columns": {"ward": {"inn": ["A"]}}}, r'column ward: unknown key "inn"'),
    ({"groups": 0}, r"table data: groups must be an integer"),
    ({"rows": "3"}, r"table data: rows must be an integer"),
    ({"table": 3}, r"table: 3 is not a table name"),
    ({"table": "a.b"}, r"must not contain a dot"),
    ({"name": 3}, r"\[data\]: name must be a quoted string"),
    ({"ledger": 3}, r"\[data\]: ledger must be a quoted path"),
    ({"public": [ARROW]}, r"public: expected a dict"),
    ({"public": {"Data": ARROW}}, r"public: there is a private table Data"),
    ({"data": {"data": ARROW}}, r"data: only allowed with a policy"),
]


@pytest.mark.parametrize(("said", "words"), WRONG, ids=[str(said)[:40] for said, _ in WRONG])
def test_a_wrong_argument_is_named_with_a_hint(said, words):
    with pytest.raises(dc.PolicyError, match=words):
        opened(**said)


TWO = {"visits": ARROW, "regions": ARROW}


@pytest.mark.parametrize(
    ("frames", "said", "words"),
    [
        (TWO, {"unit": {"visits": "patient"}}, r"unit: table regions: declare the privacy unit.* public="),
        (
            TWO,
            {"unit": {"visits": "patient", "regions": None}},
            r"unit: table regions: declare the privacy unit.* public=",
        ),
        (TWO, {"unit": {"visit": "patient"}}, r"unit: it does not apply to a table 'visit'; did you mean \"visits\""),
        (TWO, {"columns": {"ward": WARDS}}, r"columns: it does not apply to a table 'ward'"),
        (TWO, {"columns": {"visits": COLUMNS}}, r"columns: table regions: declare the columns"),
        (TWO, {"columns": 5}, r"columns: expected a dict by table name"),
        (TWO, {"groups": {"region": 1}}, r"groups: it does not apply to a table 'region'"),
        (TWO, {"table": "visits"}, r"table: a dict of frames already names"),
        ({}, {}, r"frame: there is no private table"),
        ({1: ARROW}, {}, r"table: 1 is not a table name"),
        ({"visits": [1, 2]}, {}, r"table visits: list is not a table"),
        ([1, 2], {}, r"table data: list is not a table"),
        (None, {}, r"table data: NoneType is not a table"),
        (pd.Series([1]), {}, r"cannot be read as a table"),
    ],
)
def test_mismatched_frames_are_named_with_a_hint(frames, said, words):
    columns = {"visits": COLUMNS, "regions": COLUMNS}
    with pytest.raises(dc.PolicyError, match=words):
        opened(frames, **({"columns": columns if frames is TWO else COLUMNS} | said))


def test_an_error_of_a_frame_does_not_quote_it():
    with pytest.raises(dc.PolicyError, match="table data: the object cannot be read") as error:
        opened(Strange())
    assert "Schmidt" not in str(error.value)


@pytest.mark.parametrize("said", [{"unit": "x"}, {"table": "x"}, {"ledger": "x"}, {"groups": 1}, {"version": "2"}])
def test_settings_of_a_policy_cannot_be_given_twice(said):
    with pytest.raises(dc.PolicyError, match=rf"^{next(iter(said))}: not allowed with a policy"):
        dc.open("nowhere.toml", **said)
