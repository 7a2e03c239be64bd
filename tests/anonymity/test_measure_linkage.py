"""Rows are linked to the people that they may be, whatever way the release was generalised."""

from datetime import date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.anonymity import intervals, measure, read_hierarchy
from discreet.anonymity.encoding.encoded_table import encode_column
from discreet.anonymity.hierarchies.label_coverage import build_coverage, format_values, parse_coverage
from discreet.anonymity.metrics import linkage_risk
from discreet.anonymity.metrics.linkage_risk import count_points_in_boxes
from tests.anonymity.samples import DATA

PEOPLE = pa.table(
    {
        "name": ["Ann", "Bob", "Cat", "Dan", "Eve"],
        "age": [23, 28, 31, 37, 44],
        "zip": ["13053", "13068", "13053", "14850", "14853"],
        "town": ["Oslo", "Rome", "Rome", "Oslo, old", "Nice"],
    }
)


def covered(labels, values):
    """Return which of the values each label stands for."""
    shown, originals = encode_column(pa.table({"it": labels}), "it"), encode_column(pa.table({"it": values}), "it")
    cover = parse_coverage(shown, originals)
    every = np.arange(len(originals.values))
    held = [cover.contains(np.full(len(every), place), every) for place in range(len(shown.values))]
    by_label = dict(zip(shown.values.to_pylist(), held, strict=True))
    return [originals.values.filter(pa.array(by_label[label])).to_pylist() for label in labels]


@pytest.mark.parametrize(
    ("label", "found"),
    [
        ("28", [28]),
        ("*", [-4, 9, 28, 30, 35, 41, None]),
        ("28-35", [28, 30, 35]),
        ("28 - 35", [28, 30, 35]),
        ("28..35", [28, 30, 35]),
        ("28 to 35", [28, 30, 35]),
        ("-4-9", [-4, 9]),
        ("-5--1", [-4]),
        ("-5 to -1", [-4]),
        ("[28, 35)", [28, 30]),
        ("(28, 35]", [30, 35]),
        ("[9, 9]", [9]),
        ("<30", [-4, 9, 28]),
        ("<=30", [-4, 9, 28, 30]),
        ("≤ 30", [-4, 9, 28, 30]),
        (">30", [35, 41]),
        ("≥30", [30, 35, 41]),
        (">= 30", [30, 35, 41]),
        ("30+", [30, 35, 41]),
        ("3*", [30, 35]),
        ("**", [28, 30, 35, 41, -4]),
        ("{28, 41}", [28, 41]),
        ("{28, null}", [28, None]),
        ("{}", []),
        ("old", []),
        ("35-28", []),
        ("a-b", []),
        ("nan-35", []),
        (None, [None]),
    ],
)
def test_a_label_covers_the_numbers_it_names(label, found):
    values = [9, 28, 30, 35, 41, None, -4]
    assert sorted(covered([label, "0"], values)[0], key=str) == sorted(found, key=str)


@pytest.mark.parametrize(
    ("label", "values", "found"),
    [
        ("130**", ["13053", "13068", "14850", "130"], ["13053", "13068"]),
        ("*****", ["13053", "130"], ["13053"]),
        ("*", ["13053", None], ["13053", None]),
        ("{Oslo, Rome}", ["Oslo", "Rome", "Nice"], ["Oslo", "Rome"]),
        ("{Oslo, old, Rome}", ["Oslo, old", "Rome", "Oslo"], ["Oslo, old", "Rome"]),
        ("1-2", ["1", "2"], []),
        ("1-2", ["1-2", "2"], ["1-2"]),
        ("{True, False}", [True, False], [False, True]),
        ("2024-01-01 to 2024-01-31", [date(2024, 1, 15), date(2024, 2, 1)], [date(2024, 1, 15)]),
        ("2024-01-01-2024-01-31", [date(2024, 1, 15), date(2024, 2, 1)], [date(2024, 1, 15)]),
        ("2024-01-01", [datetime(2024, 1, 1), datetime(2024, 1, 1, 5)], [datetime(2024, 1, 1)]),
        ("<2024-01-02 00:00:00", [datetime(2024, 1, 1, 5), datetime(2024, 1, 3)], [datetime(2024, 1, 1, 5)]),
        ("08:00:00-09:30:00", [time(8, 15), time(9, 45)], [time(8, 15)]),
        ("[0.5, 1.5]", [0.5, 1.5, 1.75], [0.5, 1.5]),
        ("[0.5, 1.5]", [Decimal("0.50"), Decimal("1.75")], [Decimal("0.50")]),
        ("30", [30.0, 30.5], [30.0]),
        ("inf", [float("inf"), 1.0], [float("inf")]),
    ],
)
def test_a_label_covers_values_of_every_type(label, values, found):
    assert covered([label], values)[0] == found


@pytest.mark.parametrize(
    "values",
    [
        pa.array([datetime(2024, 1, 1), datetime(2024, 1, 1, 5, 6, 7, 8)], pa.timestamp("us")),
        pa.array([1, 2_000_000_000], pa.timestamp("ns")),
        pa.array([0, 3_600_000_000], pa.timestamp("us", "Europe/Oslo")),
        pa.array([date(1024, 1, 1), date(2024, 1, 1)]),
        pa.array([time(0), time(23, 59, 59, 5)]),
        pa.array([timedelta(0), timedelta(1, 2, 3)]),
        pa.array([0.1, 1e300]),
        pa.array([Decimal("-0.10"), Decimal("7.00")]),
        pa.array([True, False]),
    ],
    ids=lambda values: str(values.type),
)
def test_labels_are_parsed_as_they_were_written(values):
    texts = format_values(values)
    assert covered(texts, values) == [[value] for value in values.to_pylist()]
    if values.type != pa.bool_():
        assert covered([f"{texts[0]} to {texts[1]}", f"[{texts[0]}, {texts[1]})"], values) == [
            values.to_pylist(),
            [values[0].as_py()],
        ]


def test_values_match_across_types_and_libraries():
    pd = pytest.importorskip("pandas")
    released = pd.DataFrame({"age": [23.0, None, 44.0], "zip": pd.Categorical(["13053", "13068", "14853"])})
    risk = measure(released, ["age", "zip"], population=PEOPLE)
    assert risk.journalist.rows_by_candidates == {0: 1, 1: 2}
    assert risk.journalist.unique_links.tolist() == [[0, 0], [2, 4]]


def test_people_are_found_by_ranges_prefixes_and_sets():
    released = pa.table(
        {
            "age": ["20-29", "20-29", "30-39", "25-45", "*", "50-59"],
            "zip": ["130**", "13053", "*", "1****", "{13053, 14853}", "*"],
            "ill": ["a", "b", "c", "d", "e", "f"],
        }
    )
    risk = measure(released, ["age", "zip"], "ill", population=PEOPLE)
    assert risk.journalist.rows_by_candidates == {0: 1, 1: 1, 2: 2, 3: 1, 4: 1}
    assert risk.journalist.unique_links.tolist() == [[1, 0]]
    assert (risk.journalist.highest_risk, risk.journalist.uniquely_linked_rows, risk.journalist.unmatched_rows) == (
        1,
        1,
        1,
    )
    assert risk.marketer == pytest.approx((1 + 1 / 2 + 1 / 2 + 1 / 3 + 1 / 4) / 6)
    assert "1 row matches exactly one person of the population" in risk.not_protected
    assert "1 row matches exactly one of 5 people, 1 nobody" in str(risk)


def test_without_a_population_the_journalist_is_the_prosecutor():
    risk = measure(PEOPLE, ["zip"])
    assert risk.population is None
    assert risk.journalist.rows_by_candidates == risk.prosecutor.rows_by_candidates == {1: 3, 2: 2}
    assert "same as prosecutor risk" in str(risk)


def test_labels_of_a_hierarchy_are_matched():
    regions = read_hierarchy('Oslo;North;*\nRome;South;*\nNice;South;*\n"Oslo, old";North;*')
    released = pa.table({"town": ["South", "North", "Nice", "*"], "age": ["20-39", "20-39", "40-59", "*"]})
    ages = intervals(20, 59, 20)
    risk = measure(released, ["town", "age"], population=PEOPLE, hierarchies={"town": regions, "age": ages})
    assert risk.journalist.rows_by_candidates == {1: 1, 2: 2, 5: 1}
    assert risk.journalist.unique_links.tolist() == [[2, 4]]


BOXES = st.lists(st.lists(st.integers(0, 4), max_size=4, unique=True).map(sorted), min_size=1, max_size=5)


@pytest.mark.long
@settings(max_examples=150)
@given(st.data(), st.integers(1, 3))
def test_boxes_match_the_points_inside_them(data, columns):
    sets = [data.draw(BOXES) for _ in range(columns)]
    boxes = data.draw(st.lists(st.tuples(*[st.integers(0, len(each) - 1) for each in sets]), min_size=1, max_size=8))
    points = data.draw(st.lists(st.tuples(*[st.integers(0, 4)] * columns), min_size=1, max_size=12))
    counts, one = count_points_in_boxes(
        list(np.array(boxes).T), [build_coverage(each, 5) for each in sets], list(np.array(points, np.int32).T)
    )
    for box, count, found in zip(boxes, counts.tolist(), one.tolist(), strict=True):
        inside = [
            place
            for place, point in enumerate(points)
            if all(value in sets[column][box[column]] for column, value in enumerate(point))
        ]
        assert count == len(inside)
        assert found in (inside or [-1])


def test_a_point_outside_one_column_is_in_no_box_of_another():
    covers = [build_coverage([[0], [1]], 2), build_coverage([[0], [1]], 3)]
    counts, one = count_points_in_boxes([np.array([0, 1]), np.array([1, 0])], covers, [np.array([1]), np.array([2])])
    assert (counts.tolist(), one.tolist()) == ([0, 0], [-1, -1])


def test_a_large_match_is_split_and_gives_the_same_result(monkeypatch):
    rng = np.random.default_rng(3)
    low = rng.integers(0, 40, (200, 3))
    covers = [build_coverage([range(a, min(a + 9, 50)) for a in low[:, column]], 50) for column in range(3)]
    boxes, points = [np.arange(200)] * 3, list(rng.integers(0, 50, (3, 2000)))
    whole = count_points_in_boxes(boxes, covers, points)
    monkeypatch.setattr(linkage_risk, "_MAX_PAIRS", 50)
    parts = count_points_in_boxes(boxes, covers, points)
    expected = [
        int(np.all([(low[box, c] <= points[c]) & (points[c] < low[box, c] + 9) for c in range(3)], axis=0).sum())
        for box in range(200)
    ]
    assert whole[0].tolist() == parts[0].tolist() == expected


@pytest.fixture(scope="module")
def fake_people():
    files = [DATA / f"linkage_synthetic_{name}.parquet" for name in ("medical", "demographic")]
    for file in files:
        if not file.exists():
            pytest.skip(f"needs {file.name} in DISCREET_DATA")
    return [pq.read_table(file) for file in files]


def test_generalised_patients_could_be_three_people_each(fake_people):
    medical, people = fake_people
    risk = measure(medical, ["Gender", "Age", "Zip"], "Diagnosis", population=people)
    assert risk.journalist.rows_by_candidates == risk.prosecutor.rows_by_candidates == {3: 30_000}


def test_patients_with_their_age_and_zip_are_linked_to_their_names(fake_people):
    medical, people = fake_people
    exact = medical.set_column(2, "Age", people["Age"]).set_column(3, "Zip", people["Zip"])
    mixed = people.take(np.random.default_rng(1).permutation(people.num_rows))
    risk = measure(exact, ["Gender", "Age", "Zip"], population=mixed)
    rows, persons = risk.journalist.unique_links.T
    assert exact["ID"].take(rows).equals(mixed["ID"].take(persons))
    assert len(rows) == risk.journalist.uniquely_linked_rows == 29_928
