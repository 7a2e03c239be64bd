"""measure() finds what the definitions say, and says what is left open."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.anonymity import LinkageRisk, measure, read_hierarchy
from discreet.anonymity.metrics.linkage_risk import max_combination_size
from tests.anonymity import naive
from tests.anonymity.conftest import in_library
from tests.anonymity.samples import sample

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "a": st.sampled_from([0, 1, None]),
            "b": st.sampled_from(["x", "y", "z", None]),
            "c": st.sampled_from([0.5, float("nan"), None]),
            "word": st.sampled_from(["red", "green", "blue", None]),
            "number": st.sampled_from([1, 2, 5, 9, None]),
        }
    ),
    min_size=1,
    max_size=25,
).filter(lambda rows: all(any(row[name] == row[name] is not None for row in rows) for name in rows[0]))
QUASI = ["a", "b", "c"]
SCHEMA = pa.schema(
    [("a", pa.int64()), ("b", pa.string()), ("c", pa.float64()), ("word", pa.string()), ("number", pa.int32())]
)


def known(rows):
    """Replace NaN, which is not equal to itself, by null."""
    return [{name: None if value != value else value for name, value in row.items()} for row in rows]  # noqa: PLR0124


@pytest.mark.long
@given(ROWS)
def test_every_measure_is_that_of_the_definitions(rows):
    risk = measure(pa.Table.from_pylist(rows, SCHEMA), QUASI, ["word", "number"])
    rows = known(rows)
    sizes = [len(group) for group in naive.classes(rows, QUASI)]
    assert (risk.rows, risk.classes, risk.k) == (len(rows), len(sizes), min(sizes))
    assert risk.unique == sizes.count(1)
    assert risk.sizes == {size: sizes.count(size) for size in sizes}
    for found, distance in zip(risk.sensitive, (naive.equal, naive.ordered), strict=True):
        expected = naive.exposure(rows, QUASI, found.column, distance)
        assert found.exposed_rows.tolist() == expected.pop("exposed")
        assert found.l == expected["l"] == found.recursive[1]
        assert found.recursive[0] == pytest.approx(expected.pop("c"))
        assert {name: getattr(found, name) for name in expected} == pytest.approx(expected, abs=1e-11)
        assert found.homogeneous == len({risk.equivalence_classes.ids[row] for row in found.exposed_rows})
    assert risk.prosecutor.mean_risk == pytest.approx(len(sizes) / len(rows))
    assert risk.prosecutor.share_above(0.2) == pytest.approx(sum(size for size in sizes if size < 5) / len(rows))
    assert {each.columns: each.unique_rows for each in risk.uniqueness()} == naive.alone(rows, QUASI)


DIVERSE = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3)), min_size=6, max_size=40)


@pytest.mark.long
@given(DIVERSE)
def test_diverse_classes_are_measured_alike(pairs):
    rows = [{"a": a, "s": s} for a, s in pairs]
    found = measure(pa.Table.from_pylist(rows), "a", "s").sensitive[0]
    expected = naive.exposure(rows, ["a"], "s", naive.ordered)
    assert found.recursive == pytest.approx((expected["c"], expected["l"]))
    assert found.entropy_l == pytest.approx(expected["entropy_l"])
    assert found.t == pytest.approx(expected["t"], abs=1e-11)


@pytest.mark.long
@given(ROWS)
def test_the_worst_column_determines_the_result(rows):
    risk = measure(pa.Table.from_pylist(rows, SCHEMA), QUASI, ["word", "number"])
    for name in ("l", "entropy_l"):
        assert getattr(risk, name) == min(getattr(each, name) for each in risk.sensitive)
    for name in ("alpha", "beta", "enhanced_beta", "delta", "t"):
        assert getattr(risk, name) == max(getattr(each, name) for each in risk.sensitive)
    assert risk.recursive in [each.recursive for each in risk.sensitive]
    assert risk.recursive[1] == risk.l


def test_every_library_is_measured_alike(awkward, library):
    risk = measure(in_library(awkward, library), ["whole", "text"], ["yes", "day"])
    assert str(risk) == str(measure(awkward, ["whole", "text"], ["yes", "day"]))
    assert (risk.k, risk.unique, risk.classes) == (1, 2, 3)
    assert risk.other_columns == ("real", "exact")


def test_homogeneous_rows_are_found_in_the_hospital():
    risk = measure(pa.table(sample("hospital")), ["zip", "age"], "condition")
    assert (risk.k, risk.l, risk.sizes) == (4, 1, {4: 3})
    assert risk.sensitive[0].exposed_rows.tolist() == [8, 9, 10, 11]
    assert risk.sensitive[0].homogeneous == 1
    assert "homogeneity attack (4 rows in 1 class with a single value of 'condition')" in risk.not_protected


def test_halves_are_exact_so_that_limits_can_be_compared():
    risk = measure(pa.table({"a": [0] * 6, "s": list("aabbcc")}), "a", "s")
    assert risk.entropy_l == 3
    assert risk.alpha == round(1 / 3, 12)
    assert risk.t == 0


def test_one_class_discloses_nothing_and_one_value_everything():
    risk = measure(pa.table({"a": [0] * 4, "s": [1, 2, 2, 1]}), "a", "s")
    assert (risk.k, risk.t, risk.beta, risk.delta, risk.enhanced_beta) == (4, 0, 0, 0, 0)
    risk = measure(pa.table({"a": [0, 0, 1], "s": [5, 5, 5]}), "a", "s")
    assert (risk.l, risk.t, risk.alpha, risk.recursive) == (1, 0, 1, (1, 1))


def test_null_is_a_value_like_any_other():
    risk = measure(pa.table({"a": [None, None, 1], "s": ["x", None, "x"]}), "a", "s")
    assert (risk.k, risk.sizes, risk.sensitive[0].values) == (1, {1: 1, 2: 1}, 2)
    assert risk.sensitive[0].exposed_rows.tolist() == [2]


def test_a_hierarchy_makes_related_values_close():
    tree = read_hierarchy("flu;lung;*\ncold;lung;*\nulcer;gut;*")
    table = pa.table({"a": [0, 0, 1, 1], "ill": ["flu", "flu", "cold", "ulcer"]})
    plain, near = measure(table, "a", "ill"), measure(table, "a", "ill", hierarchies={"ill": tree})
    assert (plain.t, plain.sensitive[0].distance) == (0.5, "equal")
    # Of a class of flu alone, 1/4 has to become cold, half the way up the tree, and 1/4 an ulcer.
    assert (near.t, near.sensitive[0].distance) == (0.375, "hierarchical")


@pytest.mark.parametrize("name", ["l", "t", "entropy_l", "recursive", "alpha", "beta", "delta", "enhanced_beta"])
def test_measures_of_sensitive_columns_need_a_sensitive_column(name):
    risk = measure(pa.table({"a": [1]}), "a")
    with pytest.raises(ValueError, match="no sensitive column"):
        getattr(risk, name)
    assert "homogeneity attack (not checked: no sensitive column" in risk.not_protected


@pytest.mark.parametrize(
    ("values", "attack"),
    [
        (["x", "x"], "homogeneity attack (2 rows in 1 class with a single value of 's')"),
        (["x", "x", "y"], "skewness attack (up to 66.6 % of a class have the same value of 's')"),
        (["x", "z", "y"], "background-knowledge attack (up to 33.3 % of a class have the same value of 's')"),
    ],
)
def test_the_attack_that_is_named_is_the_one_that_applies(values, attack):
    risk = measure(pa.table({"a": [1] * len(values), "s": values, "id": range(len(values))}), "a", "s")
    assert attack in risk.not_protected
    assert "intersection attack" in risk.not_protected
    assert "linkage by other columns (id)" in risk.not_protected
    assert "linkage attack" not in risk.not_protected
    assert "\n" not in risk.not_protected


def test_unique_rows_can_be_linked():
    risk = measure(pa.table({"a": [1, 2, 2]}), "a")
    assert "linkage attack (1 row is unique)" in risk.not_protected
    assert (risk.prosecutor.highest_risk, risk.prosecutor.uniquely_linked_rows, risk.marketer) == (1, 1, 2 / 3)


def test_a_risk_of_a_fifth_is_not_above_a_fifth():
    assert LinkageRisk({5: 10, 4: 30}).share_above(0.2) == 0.75
    assert LinkageRisk({0: 10, 1: 10}).share_above(0.2) == 0.5


def test_many_columns_are_combined_a_few_at_a_time():
    table = pa.table({f"c{i}": [i % 2, 1, 0, i % 3] for i in range(20)})
    found = measure(table, table.column_names).uniqueness()
    assert max(len(each.columns) for each in found) == max_combination_size(20) == 2
    assert len(found) == 20 + 190
    assert len(measure(table, table.column_names).uniqueness(1)) == 20


def test_subsets_of_wide_columns_are_counted_as_narrow_ones_are():
    rows = [{f"c{i}": (j * j * (7 + i) + j) % 97 for i in range(3)} for j in range(90)]
    found = measure(pa.Table.from_pylist(rows), ["c0", "c1", "c2"]).uniqueness()
    assert {each.columns: each.unique_rows for each in found} == naive.alone(rows, ["c0", "c1", "c2"])
    assert 0 < found[0].share < 1


@pytest.mark.long
def test_keys_of_subsets_do_not_overflow():
    many = 2**16
    once = pa.array(range(many))
    table = pa.table({f"c{i}": once for i in range(5)} | {"c0": pa.array([0, *range(1, many - 1), 0])})
    table = pa.concat_tables([table, table.set_column(0, "c0", pa.array([many - 1, *range(1, many)]))])
    alone = {each.columns: each.unique_rows for each in measure(table, table.column_names).uniqueness()}
    assert alone["c1", "c2", "c3", "c4"] == 0
    assert alone["c0", "c1", "c2", "c3", "c4"] == 4  # 80 bits: the first column must not fall off


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"hierarchies": {"zip": read_hierarchy("1;*")}}, ValueError, "hierarchies: 'zip' is neither"),
        ({"hierarchies": {"a": "a.csv"}}, TypeError, "hierarchies: 'a' must have a Hierarchy, not str"),
        ({"sensitive": "s", "hierarchies": {"s": read_hierarchy("q;*")}}, ValueError, "does not contain 2 of the 2"),
        ({"population": [1]}, TypeError, "population: expected a"),
        ({"population": pa.table({"b": [1]})}, ValueError, "population: column 'a' does not exist"),
        ({"population": pa.table({"a": pa.nulls(1)})}, ValueError, "population: column 'a' has only nulls"),
        ({"original": pa.table({"b": [1]})}, ValueError, "original: column 'a' does not exist"),
        ({"original": pa.table({"a": [1]})}, ValueError, "original: it has fewer rows (1) than the release (2)"),
        ({"original": pa.table({"a": [1, 3]})}, ValueError, "original: column 'a' has no value that row 1"),
    ],
)
def test_wrong_arguments_are_refused(given, error, words):
    with pytest.raises(error) as caught:
        measure(pa.table({"a": [1, 2], "s": ["x", "y"]}), "a", **given)
    assert words in str(caught.value)


def test_a_risk_has_a_readable_text_form():
    risk = measure(pa.table(sample("hospital")), ["zip", "age"], "condition")
    assert repr(risk) == str(risk)
    assert str(risk).endswith(risk.not_protected)
    assert str(risk).startswith("12 rows in 3 classes of 4 to 4 rows by zip, age: 4-anonymous, 0 unique rows\n")


def test_a_sensitive_column_is_found_by_its_name():
    table = pa.table({"a": [1, 1, 2], "s": ["x", "y", "x"], "t": [3, 3, 3]})
    risk = measure(table, "a", ["s", "t"])
    assert risk.attribute_risk("t") is risk.sensitive[1]
    with pytest.raises(ValueError, match=r"^column: 'a' is not a sensitive column. Those are: s, t\.$"):
        risk.attribute_risk("a")
    with pytest.raises(ValueError, match="Those are: none"):
        measure(table, "a").attribute_risk("s")


@pytest.mark.long
@given(ROWS)
def test_what_was_measured_goes_to_json_and_back(rows):
    table = pa.Table.from_pylist(rows, SCHEMA)
    risk = measure(table, QUASI, ["word", "number"], original=table, population=table)
    found = risk.to_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert (found["k"], found["not_protected"]) == (risk.k, risk.not_protected)
    assert found["sensitive"]["word"]["l"] == risk.attribute_risk("word").l
    assert found["sensitive"]["word"]["exposed"] == len(risk.attribute_risk("word").exposed_rows)
    assert found["loss"]["columns"] == dict(risk.loss.columns)
    assert found["journalist"]["single"] == risk.journalist.uniquely_linked_rows
    assert found["population"] == len(rows)


def test_infinite_measures_are_null_in_json():
    found = measure(pa.table({"a": [1, 2, 2], "s": ["x", "y", "y"]}), "a", "s").to_dict()
    assert found["sensitive"]["s"]["enhanced_beta"] is None
    assert found["sensitive"]["s"]["recursive"] == [1.0, 1]
    assert (found["population"], found["loss"]) == (None, None)
