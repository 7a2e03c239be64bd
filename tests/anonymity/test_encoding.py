"""Values become codes, and rows with equal codes classes."""

from collections import defaultdict
from datetime import date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.anonymity.encoding.encoded_table import encode_column
from discreet.anonymity.encoding.equivalence_classes import group_equal_rows
from discreet.anonymity.encoding.table_adapters import adapt_table
from tests.anonymity.conftest import in_library


def coded(array):
    return encode_column(pa.table({"it": array}), "it")


def test_each_kind_of_value_is_coded_in_order_with_null_last(awkward, library):
    rows = adapt_table(in_library(awkward, library))
    expected = {
        "whole": ([1, 0, 2, 1], [1, 3, None], True),
        "real": ([1, 2, 2, 0], [0.0, 0.5, None], True),
        "text": ([1, 0, 2, 1], ["a", "b", None], False),
        "yes": ([1, 2, 0, 1], [False, True, None], False),
        "day": ([1, 0, 2, 1], [date(2024, 1, 1), date(2024, 2, 1), None], True),
        "exact": ([1, 0, 2, 1], [Decimal("0.10"), Decimal("1.50"), None], True),
    }
    for name, (codes, values, ordered) in expected.items():
        column = encode_column(rows, name)
        assert column.codes.tolist() == codes
        assert column.values.to_pylist() == values
        assert (column.is_ordered, column.null_code) == (ordered, 2)


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["b", "a", None, "b"]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([2, 0, 3, 1]), pa.array(["a", "b", "b", None])),
        pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 1]), pa.array(["a", "b", "unused"], pa.string_view())),
        pa.array(["b", "a", None, "b"], pa.string_view()),
        pa.array([b"b", b"a", None, b"b"], pa.binary_view()),
        pa.array([b"b", b"a", None, b"b"], pa.binary(1)),
        pa.array([2, 1, None, 2], pa.float16()),
        pa.array([2, 1, None, 2], pa.decimal32(5, 1)),
        pa.array([datetime(2024, 1, 2), datetime(2024, 1, 1), None, datetime(2024, 1, 2)], pa.timestamp("ns", "UTC")),
        pa.array([time(2), time(1), None, time(2)]),
        pa.array([timedelta(2), timedelta(1), None, timedelta(2)]),
        pa.RunEndEncodedArray.from_arrays([1, 2, 3, 4], ["b", "a", None, "b"]),
        pa.chunked_array([["b", "a"], [], [None, "b"]]),
        pa.chunked_array([pa.array(["b", "a"]).dictionary_encode(), pa.array([None, "b"]).dictionary_encode()]),
    ],
    ids=lambda array: str(array.type),
)
def test_columns_are_coded_however_arrow_stores_them(array):
    column = coded(array)
    assert column.codes.tolist() == [1, 0, 2, 1]
    assert column.null_code == 2
    assert len(column.values) == 3


def test_a_column_without_null_has_no_code_for_it():
    assert coded([5, 4, 5]).null_code is None
    assert coded(pa.array([], pa.int64())).codes.tolist() == []


def test_zero_has_one_sign():
    assert coded([-0.0, 1.0, 0.0]).codes.tolist() == [0, 1, 0]


def test_long_texts_that_differ_at_their_ends_are_distinct():
    long = "x" * 1_000_000
    assert coded([long + "b", long + "a", long + "b"]).codes.tolist() == [1, 0, 1]


def test_integers_that_floats_cannot_distinguish_stay_distinct():
    assert coded([2**53 + 1, 2**53]).codes.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("array", "places"),
    [
        (pa.array([7, 5, None]), [0, 2, np.nan]),
        (pa.array([7.0, 5.0, np.nan]), [5, 7, np.nan]),
        (pa.array([2**63 - 1, -(2**63)]), [0, 2.0**64]),
        (pa.array([2**60 + 1, 2**60, 2**60 + 3]), [0, 1, 3]),
        (pa.array([2**64 - 1, 2**64 - 3], pa.uint64()), [0, 2]),
        (pa.array([2**60 + 1, 2**60], pa.timestamp("ns")), [0, 1]),
        (pa.array([2**60 + 1, 2**60], pa.duration("ns")), [0, 1]),
        (pa.array([Decimal(f"1{end:037d}") for end in (2, 1)]), [0, 1]),
        (pa.array([date(1970, 1, 3), date(1970, 1, 1)]), [0, 2]),
        (pa.array([Decimal("0.5"), Decimal("0.25")]), [0, 0.25]),
        (pa.array([9, 4], pa.timestamp("s")), [0, 5]),
        (pa.array([9, 4], pa.time32("s")), [0, 5]),
        (pa.array([9, 4], pa.duration("s")), [0, 5]),
    ],
)
def test_ordered_values_have_positions_on_a_line(array, places):
    np.testing.assert_array_equal(coded(array).positions, places)


@pytest.mark.long
@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=30))
def test_classes_are_those_of_a_dictionary(rows):
    expected = defaultdict(list)
    for place, row in enumerate(rows):
        expected[row].append(place)
    found = group_equal_rows(list(np.array(rows, np.int32).T))
    assert [np.flatnonzero(found.ids == each).tolist() for each in range(len(found.sizes))] == list(expected.values())
    assert found.sizes.tolist() == [len(each) for each in expected.values()]
    assert found.first_rows.tolist() == [each[0] for each in expected.values()]


def test_keys_too_long_for_64_bits_are_renumbered():
    last = 2**31 - 1
    wide = [np.array([0, last, last, 0, 5, last], np.int32), *[np.array([last] * 6, np.int32)] * 3]
    assert group_equal_rows(wide).ids.tolist() == [0, 1, 1, 0, 2, 1]  # four times 31 bits, and the first column counts


def test_classes_of_no_column_are_refused():
    with pytest.raises(ValueError, match="at least one column"):
        group_equal_rows([])
