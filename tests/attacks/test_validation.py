"""What others give an attack is checked where it comes in."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet.attacks.validation import arrow_table, finite_array

TABLE = {"zip": ["02139", "02138"], "age": [30, 31]}


@pytest.mark.parametrize(
    "table",
    [
        TABLE,
        pa.table(TABLE),
        pd.DataFrame(TABLE, index=[7, 9]),
        pd.DataFrame(TABLE).astype({"zip": "category"}),
        pl.DataFrame(TABLE),
        pl.DataFrame(TABLE).cast({"zip": pl.Categorical}),
        pa.table({**TABLE, "zip": pa.array(TABLE["zip"], pa.large_string())}),
    ],
    ids=["dict", "arrow", "pandas", "categories", "polars", "polars categories", "large"],
)
def test_tables_of_every_kind_become_the_same(table):
    assert arrow_table(table, "table").to_pydict() == TABLE
    assert arrow_table(table, "table").schema.field("zip").type == pa.string()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (5, "must be an Arrow"),
        (None, "must be an Arrow"),
        ({"a": [1], "b": [1, 2]}, "columns of equal length"),
        ({"a": 5}, "columns of equal length"),
        ({"a": [1, "x"]}, "values of one type"),
        (pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), "same name"),
    ],
    ids=str,
)
def test_a_value_that_is_not_a_table_is_refused(bad, message):
    with pytest.raises((TypeError, ValueError), match=message):
        arrow_table(bad, "table")


@pytest.mark.parametrize(
    "bad", [None, "5", "many", object(), [[1, 2], [3]]], ids=["None", "text", "word", "thing", "ragged"]
)
def test_non_numeric_values_are_refused(bad):
    with pytest.raises(TypeError, match="the oracle must return an array of numbers, 2, not"):
        finite_array(bad, (2,), "the oracle")


@pytest.mark.parametrize("bad", [[1, 2, 3], 1, [[1, 2]], [np.nan, 1], [np.inf, 1]])
def test_numbers_of_another_shape_are_refused(bad):
    with pytest.raises(ValueError, match="the oracle must return an array of numbers, 2"):
        finite_array(bad, (2,), "the oracle")


def test_any_number_of_numbers_may_be_allowed():
    assert finite_array([[1, 2]], (-1, 2), "the oracle").shape == (1, 2)
