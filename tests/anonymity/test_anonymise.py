"""anonymise and attempt, from table to table: every target holds, nothing is told wrongly, nothing else changes."""

import math
import re
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.anonymity import anonymise, anonymise_and_measure, intervals, measure, prefixes, read_hierarchy
from tests.anonymity import naive
from tests.anonymity.conftest import in_library
from tests.anonymity.samples import DATA

QUASI = ["age", "job", "zip"]
OTHERS = ["ill", "pay", "row"]
PEOPLE = pa.table(
    {
        "age": [23, 29, 35, 41, 47, 53],
        "job": ["cook", "judge", "cook", "cook", "judge", "nurse"],
        "zip": ["13053", "13068", "13053", "14850", "14853", "14850"],
        "ill": ["flu", "gout", "flu", "gout", "flu", "cold"],
        "pay": [10, 20, 30, 10, 20, 30],
    }
)
ROW = st.fixed_dictionaries(
    {
        "age": st.none() | st.integers(-3, 12),
        "job": st.none() | st.sampled_from(["a", "b, c", "{d}", "e"]),
        "zip": st.none() | st.sampled_from(["110", "111", "120", "200", "211"]),
        "ill": st.none() | st.sampled_from("xyz"),
        "pay": st.none() | st.integers(0, 3),
    }
)
ENOUGH = [
    {"age": 1, "job": "a", "zip": "110", "ill": "x", "pay": 1},
    {"age": 2, "job": "e", "zip": "211", "ill": "y", "pay": 2},
]
GOALS = st.one_of(
    st.just({}),
    st.just({"l": 2}),
    st.just({"l": 1.2, "diversity": "entropy"}),
    st.just({"l": 2, "diversity": "recursive", "c": 20}),
    st.sampled_from([{"t": 0.2}, {"t": 0.5}, {"l": 2, "t": 0.6}]),
)
METHODS = st.sampled_from(
    [{"method": "mondrian"}, {"method": "full-domain"}, {"method": "full-domain", "suppress": 0.2}]
)


def is_inside(value, label, name, has_hierarchy):
    """Tell whether a released text may stand for a value, read by the rules and without any code of ours."""
    if label in {"*", value} or (value is not None and label == str(value)):
        return True
    if value is None or label is None:
        return label is not None and "null" in label
    if has_hierarchy:
        return label == value[: label.count("*") * -1] + "*" * label.count("*")
    if name == "age":
        low, high = label.split(" to ") if " to " in label else label.split("-")
        return int(low) <= value <= int(high)
    return label.startswith("{") and value in label[1:-1]


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(st.lists(ROW, max_size=40), st.integers(1, 4), GOALS, METHODS, st.booleans())
def test_a_release_meets_every_criterion(rows, k, goals, method, with_hierarchy):
    rows = [{**row, "row": place} for place, row in enumerate([*rows, *ENOUGH])]
    k = min(k, len(rows))
    table = pa.Table.from_pylist(rows)
    hierarchies = {"zip": prefixes(3)} if with_hierarchy else None
    try:
        done = anonymise_and_measure(table, QUASI, k, ["ill", "pay"], hierarchies=hierarchies, **goals, **method)
    except ValueError as error:
        if "diversity" in goals and re.search("even the whole table|no levels reach", str(error)):
            return
        raise
    out = done.table.to_pylist()
    assert done.suppressed == len(rows) - len(out) <= method.get("suppress", 0) * len(rows)
    assert min(map(len, naive.classes(out, QUASI))) >= k
    for name, distance in (("ill", naive.equal), ("pay", naive.ordered)):
        found = naive.exposure(out, QUASI, name, distance)
        assert found["t"] <= goals.get("t", 1) + 1e-9
        if "diversity" not in goals:
            assert found["l"] >= goals.get("l", 1)
        elif goals["diversity"] == "entropy":
            assert found["entropy_l"] >= goals["l"] - 1e-9
    assert [row["row"] for row in out] == sorted({row["row"] for row in out})
    for row in out:
        original = rows[row["row"]]
        assert {name: row[name] for name in OTHERS} == {name: original[name] for name in OTHERS}
        for name in QUASI:
            assert is_inside(original[name], row[name], name, with_hierarchy and name == "zip")
    assert measure(done.table, QUASI, ["ill", "pay"]).not_protected == done.not_protected
    assert done.table.schema.metadata[b"not_protected"].decode() == done.not_protected


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(st.lists(ROW, min_size=4, max_size=40), st.integers(1, 4))
def test_recursive_diversity_holds_in_every_class(rows, k):
    rows = [*rows, *ENOUGH]
    try:
        out = anonymise(pa.Table.from_pylist(rows), QUASI, k, "ill", 2, diversity="recursive", c=3).to_pylist()
    except ValueError:
        return
    for group in naive.classes(out, QUASI):
        values = [out[place]["ill"] for place in group]
        counts = sorted((values.count(value) for value in set(values)), reverse=True)
        assert counts[0] < 3 * sum(counts[1:])


def test_the_release_has_the_same_frame_type_as_the_table(library):
    table = in_library(PEOPLE, library)
    for method in ("mondrian", "full-domain"):
        out = anonymise(table, QUASI, 2, method=method)
        assert type(out) is type(table)
        assert list(out.columns if library != "arrow" else out.column_names) == PEOPLE.column_names
        assert measure(out, QUASI).k >= 2


def test_the_index_and_attrs_of_pandas_are_not_released():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(PEOPLE.to_pydict(), index=list("uvwxyz"))
    frame.attrs["source"] = "here"
    before = frame.copy()
    out = anonymise(
        frame, ["age", "zip"], 3, hierarchies={"age": intervals(0, 99, 50)}, method="full-domain", suppress=0.2
    )
    assert list(out.attrs) == ["not_protected"]
    assert "intersection attack" in out.attrs["not_protected"]
    assert out.index.equals(pd.RangeIndex(5))  # neither names nor gaps that tell which rows went
    assert list(out.age) == ["0-49"] * 5
    assert list(out.pay) == [10, 20, 30, 10, 20]
    pd.testing.assert_frame_equal(frame, before)


def _with_categories(table, library):
    return table.to_pandas() if library == "pandas" else in_library(table, library)


def test_no_category_names_somebody_who_was_left_out(library):
    table = pa.table({"age": [30, 30, 31], "job": ["cook", "cook", "pope"], "name": ["Ana", "Bob", "Pius"]})
    for column in ("job", "name"):
        coded = table.set_column(table.column_names.index(column), column, table[column].dictionary_encode())
        out = pa.table(
            anonymise(_with_categories(coded, library), ["age", "job"], 2, method="full-domain", suppress=0.4)
        )
        assert out.num_rows == 2
        assert len(out[column].chunk(0).dictionary) == len(set(out[column].to_pylist()))


@pytest.mark.parametrize(
    "kind", [pa.timestamp("us"), pa.timestamp("ns"), pa.duration("ns"), pa.duration("us"), pa.int64(), pa.uint64()]
)
def test_large_numbers_and_distant_dates_keep_their_distances(kind):
    table = pa.table({"d": pa.array([2**57, 2**57 + 1, 2**57 + 2, 2**57 + 3], pa.int64()).cast(kind)})
    made = anonymise_and_measure(table, "d", 2)
    assert made.after.k == 2
    assert made.after.loss.ncp == pytest.approx(1 / 3)


def test_the_last_representable_day_can_be_released():
    days = pa.array(["2024-01-01 00:00:00", "9999-12-31 00:00:00"] * 2).cast(pa.timestamp("us"))
    assert anonymise(pa.table({"d": days}), "d", 4)["d"].to_pylist() == ["2024-01-01 to 9999-12-31"] * 4


def test_a_range_of_clock_times_is_read_to_the_nanosecond():
    table = pa.table({"d": pa.array([1, 2, 3, 4], pa.time64("ns"))})
    made = anonymise_and_measure(table, "d", 2)
    assert measure(made.table, "d", original=table).loss.ncp == made.after.loss.ncp == pytest.approx(1 / 3)


@pytest.mark.parametrize("method", ["mondrian", "full-domain"])
@pytest.mark.parametrize(
    "values", [["A", "B", "A, B", "C"], ["*", "A", "B", "C"], ["{A, B}", "A", "B", "C"], ["null", None, "A", 'say "B"']]
)
def test_values_that_look_like_labels_do_not_hide_information_loss(values, method):
    table = pa.table({"a": values})
    made = anonymise_and_measure(table, "a", 2, method=method)
    assert made.after.k >= 2
    assert made.after.loss.ncp == (1 if method == "full-domain" else 0.5)


def test_a_set_keeps_its_values_distinct():
    values = ["A", "B", "A, B", "C", "null", None, 'a "word"', " D"]
    table = pa.table({"a": values, "b": [0, 0, 1, 1, 2, 2, 3, 3]})
    made = anonymise_and_measure(table, ["b", "a"], 2)
    assert made.table["a"].to_pylist()[::2] == ["{A, B}", '{"A, B", C}', '{"null", null}', '{" D", "a ""word"""}']
    assert measure(made.table, ["b", "a"], original=table).loss == made.after.loss
    people = measure(made.table, ["b", "a"], population=table).journalist
    assert people.rows_by_candidates == {2: 8}


def test_an_ambiguous_value_or_label_is_refused():
    table = pa.table({"a": ["*", "A", "B", "C"]})
    made = anonymise(table, "a", 4)
    for other in ({"original": table}, {"population": table}):
        with pytest.raises(ValueError, match=r"table: '\*' in column 'a' .* label"):
            measure(made, "a", **other)
    assert measure(table, "a", original=table).loss.ncp == 0


EAST, WEST = timezone(timedelta(hours=2)), timezone(timedelta(hours=-5))


@pytest.mark.parametrize(
    "values",
    [
        [1, 1.0, 2, 2.0],
        [Decimal("1.0"), Decimal("1.00"), Decimal("2.0"), Decimal(2)],
        [datetime(2024, 1, 1, 12, tzinfo=EAST), datetime(2024, 1, 1, 5, tzinfo=WEST)] * 2,
        [None, float("nan"), "x", "x"],
        [None, float("nan"), True, True],
    ],
)
@pytest.mark.parametrize("method", ["mondrian", "full-domain"])
def test_objects_that_count_as_equal_look_equal(values, method):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": pd.Series(values, dtype=object)})
    out = anonymise(frame, "a", 2, method=method)["a"]
    for first, second in ((0, 1), (2, 3)):
        assert repr(out[first]) == repr(out[second])
    assert out.notna().tolist() == frame["a"].notna().tolist()


def test_a_lazy_frame_comes_back_lazy():
    pl = pytest.importorskip("polars")
    out = anonymise(pl.from_arrow(PEOPLE).lazy(), QUASI, 3)
    assert isinstance(out, pl.LazyFrame)
    assert measure(out, QUASI).k >= 3


def test_a_column_that_did_not_change_keeps_its_type():
    table = pa.table({"age": [1, 1, 2, 2], "year": pa.array([7, 8, 7, 8], pa.int16()), "job": list("aabb")})
    out = anonymise(table, ["age", "year", "job"], 2)
    assert out.schema.field("age").type == pa.int64()
    assert out.schema.field("job").type == pa.string()
    assert out.to_pydict() == {"age": [1, 1, 2, 2], "year": ["7-8"] * 4, "job": list("aabb")}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2, 8, 9], ["1-2", "1-2", "8-9", "8-9"]),
        ([-5, -4, 8, 9], ["-5 to -4", "-5 to -4", "8-9", "8-9"]),
        ([0.5, 1.5, 8.0, 9.25], ["[0.5, 1.5]", "[0.5, 1.5]", "[8, 9.25]", "[8, 9.25]"]),
        ([Decimal(text) for text in ("0.50", "1.00", "8.00", "9.00")], ["[0.50, 1.00]"] * 2 + ["[8.00, 9.00]"] * 2),
        ([date(2024, 1, 1), date(2024, 1, 31), date(2025, 1, 1), date(2025, 1, 2)],
         ["2024-01-01 to 2024-01-31"] * 2 + ["2025-01-01 to 2025-01-02"] * 2),
        ([1, 2, None, None], ["1-2", "1-2", None, None]),
        ([1.0, 2.0, math.nan, math.nan], ["1-2", "1-2", None, None]),
        ([1.0, 2.0, 8.0, math.inf], ["[1, 2]", "[1, 2]", "[8, inf]", "[8, inf]"]),
        ([1.0, 2.0, 2.0**60, 2.0**61], ["[1, 2]"] * 2 + [f"[{2**60}, {2**61}]"] * 2),
        ([1, None, 1, 2], ["1", "*", "1", "*"]),
        ([True, False, True, False], [True, False, True, False]),
        ([True, False, False, False], ["*"] * 4),
        (["a", "b", "c", "c"], ["{a, b}", "{a, b}", "c", "c"]),
        (["a", None, "c", "c"], ["{a, null}", "{a, null}", "c", "c"]),
        (["x", "y", "y", "y"], ["*"] * 4),
    ],
)  # fmt: skip
def test_a_class_is_written_as_a_range_or_a_set(values, expected):
    assert anonymise(pa.table({"it": values}), "it", 2)["it"].to_pylist() == expected


def test_what_counts_as_equal_looks_equal():
    """NaN beside null, or -0.0 beside 0.0, would tell the rows of a class apart."""
    table = pa.table({"it": pa.array([math.nan, 1.0, 1.0, None, 0.0, -0.0], pa.float32()), "k": list("abcdef")})
    for method in ("mondrian", "full-domain"):
        out = anonymise(table, "it", 2, method=method)
        assert out.schema.field("it").type == pa.float32()
        assert list(map(str, out["it"].to_pylist())) == ["None", "1.0", "1.0", "None", "0.0", "0.0"]
        coded = pa.table({"it": table["it"].dictionary_encode()})
        assert anonymise(coded, "it", 2, method=method)["it"].to_pylist() == out["it"].to_pylist()


def test_a_set_too_long_to_read_is_suppressed():
    table = pa.table({"job": [f"job{place}" for place in range(300)], "sex": ["f"] * 150 + ["m"] * 150})
    assert set(anonymise(table, ["sex", "job"], 150)["job"].to_pylist()) == {"*"}
    assert "*" not in anonymise(table, ["sex", "job"], 50)["job"].to_pylist()


def test_a_hierarchy_gives_its_own_labels_and_no_others():
    jobs = read_hierarchy("cook;food;*\nbaker;food;*\njudge;law;*\nclerk;law;*\nspy;state;*")
    table = pa.table({"job": ["cook", "baker", "judge", "judge", "clerk", "clerk", "clerk"]})
    out = anonymise(table, "job", 2, hierarchies={"job": jobs})["job"].to_pylist()
    assert out == ["food", "food", "judge", "judge", "clerk", "clerk", "clerk"]
    out = anonymise(table, "job", 3, hierarchies={"job": jobs})["job"].to_pylist()
    assert out == ["*", "*", "*", "*", "clerk", "clerk", "clerk"]


def test_categories_of_pandas_and_polars_are_texts(library):
    if library == "arrow":
        table = PEOPLE.set_column(1, "job", PEOPLE["job"].dictionary_encode())
    else:
        table = in_library(PEOPLE, library)
        if library == "pandas":
            table["job"] = table["job"].astype("category")
        else:
            pl = pytest.importorskip("polars")
            table = table.with_columns(pl.col("job").cast(pl.Categorical))
    out = anonymise(table, QUASI, 3)
    assert measure(out, QUASI).k >= 3


def test_a_result_reports_what_was_done():
    done = anonymise_and_measure(PEOPLE, QUASI, 2, "ill", hierarchies={"zip": prefixes(5)}, method="full-domain")
    assert (done.method, done.k, done.suppressed) == ("full-domain", 2, 0)
    assert done.before.k == 1
    assert done.after.k >= 2
    assert done.after.loss.ncp > 0
    told = str(done).splitlines()
    assert told[0] == "full-domain: 6 of 6 rows released, 0 suppressed"
    assert told[1].startswith("levels: age 1, job ")
    assert "optimal among 24 combinations of levels" in told[1]
    assert told[-1] == done.not_protected
    assert "<h1>" in done._repr_html_()
    assert str(anonymise_and_measure(PEOPLE, QUASI, 2)).startswith(
        "mondrian: 6 of 6 rows released, 0 suppressed\n6 rows in "
    )


def test_a_missing_age_does_not_turn_the_others_into_reals():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"age": [21, 31, None, None, 40, 44], "zip": [2139, 2138, None, None, 2139, 2139]})
    assert frame.age.dtype == "float64"
    assert list(anonymise(frame, "age", 2).age.fillna("?")) == ["21-31", "21-31", "?", "?", "40-44", "40-44"]
    zips = anonymise(frame, "zip", 2, hierarchies={"zip": prefixes(5)}, method="full-domain").zip
    assert list(zips.fillna("?")) == ["0213*", "0213*", "?", "?", "0213*", "0213*"]
    out = anonymise(frame, "age", 2, hierarchies={"age": intervals(20, 49, [10, 30])}, method="full-domain")
    assert set(out.age.fillna("?")) == {"20-49", "?"}
    assert measure(out, "age", original=frame, hierarchies={"age": intervals(20, 49, [10, 30])}).loss.ncp > 0


def test_a_result_reports_which_columns_have_a_hierarchy():
    zips = {"zip": prefixes(5)}
    told = anonymise_and_measure(
        PEOPLE, QUASI, 2, "ill", hierarchies={**zips, "ill": read_hierarchy("flu;*\ngout;*\ncold;*")}
    )
    assert told.hierarchies == {"zip": "prefixes(5)"}
    assert "by a hierarchy: zip (prefixes(5)); " in str(told)
    assert repr(told) == str(told)
    assert "optimal" not in repr(anonymise_and_measure(PEOPLE, QUASI, 2))
    assert "ierarchy" not in str(anonymise_and_measure(PEOPLE, QUASI, 2))
    whole = str(anonymise_and_measure(PEOPLE, QUASI, 2, hierarchies=zips, method="full-domain"))
    assert "by a hierarchy: zip (prefixes(5)).\nNo hierarchy for age, job: " in whole
    assert "No hierarchy" not in str(anonymise_and_measure(PEOPLE, "zip", 2, hierarchies=zips, method="full-domain"))


def test_a_result_reports_which_rows_remain():
    table = pa.table({"age": [9, 1, 1, 1], "row": [0, 1, 2, 3]})
    done = anonymise_and_measure(table, "age", 2, method="full-domain", suppress=0.3)
    assert done.kept_rows.tolist() == done.table["row"].to_pylist() == [1, 2, 3]
    assert anonymise_and_measure(table, "age", 2).kept_rows is None


def test_the_sensitive_hierarchy_measures_closeness():
    """Flu and cold are both of the nose: classes that differ in nothing else are close."""
    ills = read_hierarchy("flu;nose;*\ncold;nose;*\ngout;foot;*")
    table = pa.table({"sex": list("ffmm"), "ill": ["flu", "gout", "cold", "gout"]})
    assert anonymise(table, "sex", 2, "ill", t=0.3)["sex"].to_pylist() == ["f", "f", "m", "m"]
    assert anonymise(table, "sex", 2, "ill", t=0.2)["sex"].to_pylist() == ["*"] * 4
    near = anonymise(table, "sex", 2, "ill", t=0.2, hierarchies={"ill": ills})
    assert near["sex"].to_pylist() == ["f", "f", "m", "m"]


REFUSED = [
    ({"quasi": "zipp"}, ValueError, "quasi: column 'zipp' does not exist.*Did you mean 'zip'"),
    ({"quasi": []}, ValueError, "quasi: name at least one"),
    ({"quasi": ["age", "age"]}, ValueError, "quasi: 'age' is named twice"),
    ({"quasi": ["age", "ill"], "sensitive": "ill"}, ValueError, "sensitive: 'ill' is already"),
    ({"k": 0}, ValueError, "k: must be at least 1, not 0"),
    ({"k": 2.0}, TypeError, "k: must be an integer, not float"),
    ({"k": True}, TypeError, "k: must be an integer, not bool"),
    ({"k": "2"}, TypeError, "k: must be an integer, not str"),
    ({"k": 7}, ValueError, "k: must be at most 6, .*, not 7"),
    ({"l": 2}, ValueError, "l: .* a sensitive column"),
    ({"t": 0.2}, ValueError, "t: .* a sensitive column"),
    ({"sensitive": "ill", "l": 4}, ValueError, "l: must be at most 3, .* 'ill', not 4"),
    ({"sensitive": "ill", "l": 0}, ValueError, "l: must be an integer of at least 1"),
    ({"sensitive": "ill", "l": 1.5}, ValueError, "l: must be an integer"),
    ({"sensitive": "ill", "l": "2"}, TypeError, "l: must be a number"),
    ({"sensitive": "ill", "l": math.nan}, TypeError, "l: must be a number"),
    ({"sensitive": "ill", "l": 2.99, "diversity": "entropy"}, ValueError, "l: the whole table"),
    ({"sensitive": "ill", "l": 3, "diversity": "recursive", "c": 1}, ValueError, "l: the whole table"),
    ({"sensitive": "ill", "l": 2, "diversity": "recursive"}, ValueError, "c: required for recursive"),
    ({"sensitive": "ill", "l": 2, "c": 2}, ValueError, "c: .* not allowed otherwise"),
    ({"sensitive": "ill", "l": 2, "diversity": "recursive", "c": 0}, ValueError, "c: must be above 0"),
    ({"sensitive": "ill", "l": 2, "diversity": "recursive", "c": "2"}, TypeError, "c: must be a number"),
    ({"sensitive": "ill", "l": 2, "diversity": "many"}, ValueError, "diversity: expected .* 'entropy'"),
    ({"sensitive": "ill", "diversity": "entropy"}, ValueError, "l: .* for example 2"),
    ({"sensitive": "ill", "t": 0}, ValueError, "t: must be above 0 and at most 1, not 0"),
    ({"sensitive": "ill", "t": 1.5}, ValueError, "t: must be above 0 and at most 1"),
    ({"sensitive": "ill", "t": True}, TypeError, "t: must be a number"),
    ({"method": "best"}, ValueError, "method: expected 'mondrian' or 'full-domain'"),
    ({"suppress": 1}, ValueError, "suppress: must be at least 0 and below 1"),
    ({"suppress": -0.1}, ValueError, "suppress: must be at least 0"),
    ({"suppress": "some"}, TypeError, "suppress: must be a share"),
    ({"hierarchies": {"pay": prefixes(2)}}, ValueError, "hierarchies: 'pay' is neither"),
    ({"hierarchies": {"zip": "zip.csv"}}, TypeError, "hierarchies: 'zip' .* not str.*read_hierarchy"),
    ({"hierarchies": {"zip": prefixes(4)}}, ValueError, r"prefixes\(4\) does not contain 4 of the 4 distinct values"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "kind", "words"), REFUSED)
def test_wrong_arguments_are_refused_with_the_argument_and_a_hint(changed, kind, words):
    arguments = {"quasi": QUASI, "k": 2, **changed}
    for call in (anonymise, anonymise_and_measure):
        with pytest.raises(kind, match=words):
            call(PEOPLE, **arguments)


def test_full_domain_reports_when_no_levels_meet_the_criteria():
    with pytest.raises(ValueError, match=r"suppress: .* at most 0 of 6 rows"):
        anonymise(PEOPLE, QUASI, 2, "ill", 2.99, method="full-domain", diversity="entropy")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (pa.table({"age": pa.array([], pa.int64())}), "table: .* no rows"),
        (pa.table({"age": pa.nulls(3)}), "quasi: column 'age' has only nulls"),
        (pa.table({"age": pa.array([None, None], pa.int64())}), "quasi: column 'age' has only nulls"),
    ],
)
def test_empty_tables_are_refused(table, words):
    with pytest.raises(ValueError, match=words):
        anonymise(table, "age", 1)


def test_nested_columns_are_refused_only_where_they_are_compared():
    table = pa.table({"age": [1, 2, 3, 4], "tags": [[1], [2], [1], []]})
    assert anonymise(table, "age", 2)["tags"].to_pylist() == [[1], [2], [1], []]
    with pytest.raises(TypeError, match="column 'tags' has type list"):
        anonymise(table, ["age", "tags"], 2)


def test_mixed_objects_of_pandas_are_refused():
    pd = pytest.importorskip("pandas")
    with pytest.raises(TypeError, match="column 'it' mixes int and str"):
        anonymise(pd.DataFrame({"it": [1, "a", 2]}), "it", 2)


def test_long_texts_and_unusual_names_are_accepted():
    table = pa.table({"a\nb": ["x" * 100_000, "y" * 100_000, "x" * 100_000, "y" * 100_000], "": [1, 2, 3, 4]})
    out = anonymise(table, ["a\nb", ""], 2)
    assert measure(out, ["a\nb", ""]).k == 2


def test_infinite_numbers_are_accepted():
    table = pa.table({"it": [math.inf, -math.inf, 1.0, 2.0, 3.0, math.inf]})
    out = anonymise(table, "it", 2)
    assert measure(out, "it").k >= 2


def test_a_fraction_of_rows_may_be_suppressed():
    table = pa.table({"age": [1, 1, 1, 9], "job": list("aaab")})
    assert anonymise(table, ["age", "job"], 2, method="full-domain", suppress=Fraction(1, 4)).num_rows == 3
    assert anonymise(table, ["age", "job"], 2, method="full-domain", suppress=Fraction(24, 100)).num_rows == 4


def test_k_of_one_changes_nothing():
    assert anonymise(PEOPLE, QUASI, 1).to_pydict() == PEOPLE.to_pydict()
    assert anonymise(PEOPLE, QUASI, np.int64(1), method="full-domain").to_pydict() == PEOPLE.to_pydict()


def test_the_same_table_gives_the_same_release():
    noise = np.random.default_rng(11)
    table = pa.table({"x": noise.normal(size=500), "y": noise.integers(0, 9, 500).astype(str)})
    assert anonymise(table, ["x", "y"], 5).equals(anonymise(table, ["x", "y"], 5))


@pytest.mark.long
@pytest.mark.skipif(not (DATA / "adult.parquet").exists(), reason="the shared data are not here")
def test_adult_is_diverse_and_close_by_both_methods():
    import pyarrow.parquet as pq

    adult = pq.read_table(DATA / "adult.parquet")
    quasi = ["age", "education", "marital_status", "race", "sex", "native_country"]
    files = {name: DATA / "adult_hierarchies" / f"{name.replace('_', '-')}.csv" for name in quasi}
    hierarchies = {name: read_hierarchy(file) for name, file in files.items()}
    loose = anonymise_and_measure(adult, quasi, 10, "occupation", 3, 0.4)
    tight = anonymise_and_measure(adult, quasi, 10, "occupation", 3, 0.4, hierarchies)
    whole = anonymise_and_measure(
        adult, quasi, 10, "occupation", 3, 0.4, hierarchies, method="full-domain", suppress=0.05
    )
    for done in (loose, tight, whole):
        assert done.after.k >= 10
        assert done.after.l >= 3
        assert done.after.t <= 0.4
    assert whole.suppressed <= 0.05 * adult.num_rows
    assert tight.after.loss.ncp < whole.after.loss.ncp
