"""Tables are read from any library, and given back in the one they came in."""

from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pytest

from discreet.anonymity.encoding.encoded_table import encode_column, encode_table
from discreet.anonymity.encoding.table_adapters import adapt_table, resolve_column_names
from tests.anonymity.conftest import in_library

TABLE = pa.table({"age": [41, 29, 35], "zip": ["13053", "13068", None], "sex": ["F", "M", "F"]})


def refused(error, words, call, *given):
    with pytest.raises(error) as caught:
        call(*given)
    assert words in str(caught.value)


def test_a_table_returns_in_its_library_with_rows_selected_and_columns_replaced(library):
    table = in_library(TABLE, library)
    back = adapt_table(table).rebuild({"age": pa.array(["30-49", "20-29"])}, np.array([2, 1]), note="care")
    assert type(back) is type(table)
    rows = adapt_table(back)
    assert rows.column_names == ("age", "zip", "sex")
    assert [rows.column(name).to_pylist() for name in rows.column_names] == [
        ["30-49", "20-29"],
        [None, "13068"],
        ["F", "M"],
    ]
    assert adapt_table(table).column("age").to_pylist() == [41, 29, 35]


def test_an_unchanged_table_is_the_same_object(library):
    table = in_library(TABLE, library)
    assert adapt_table(table).rebuild({}).equals(table)


def test_the_input_table_is_not_modified(library):
    table = in_library(TABLE, library)
    back = adapt_table(table).rebuild({"age": pa.array(["*"] * 3)}, note="care")
    assert adapt_table(back).column("age").to_pylist() == ["*"] * 3
    assert adapt_table(table).column("age").to_pylist() == [41, 29, 35]
    assert not getattr(table, "attrs", None)


def test_pandas_keeps_its_types_and_gets_a_note_without_identifying_metadata():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {"age": [41, 29, 35], "kind": pd.Categorical(["a", "b", "a"], ordered=True), "mixed": [1, "x", [2]]},
        index=pd.Index(["Ana", "Bob", "Cem"], name="Dan"),
    )
    frame.attrs["source"] = "Ana"
    back = adapt_table(frame).rebuild({"age": pa.array(["*", "*"])}, np.array([1, 2]), note="care")
    assert back.index.equals(pd.RangeIndex(2))
    assert back.index.name is None
    assert back.attrs == {"not_protected": "care"}
    assert back["kind"].dtype == frame["kind"].dtype
    assert back["mixed"].tolist() == ["x", [2]]
    assert frame.attrs == {"source": "Ana"}
    assert frame.index.tolist() == ["Ana", "Bob", "Cem"]
    assert frame["age"].tolist() == [41, 29, 35]


def test_arrow_gets_a_note_and_loses_its_metadata():
    inner = pa.struct([pa.field("x", pa.int64(), metadata={b"names": b"Ana"})])
    schema = pa.schema(
        [pa.field("age", pa.int64(), metadata={b"names": b"Ana, Bob"}), pa.field("deep", pa.list_(inner))],
        metadata={b"source": b"Ana", b"pandas": b"{}"},
    )
    table = pa.table({"age": [41, 29], "deep": [[{"x": 1}], []]}, schema)
    back = adapt_table(table).rebuild({}, np.array([0]), note="care")
    assert back.schema.metadata == {b"not_protected": b"care"}
    assert back.schema.field("age").metadata is None
    assert back.schema.field("deep").type.value_type.field("x").metadata is None
    assert back.to_pylist() == [{"age": 41, "deep": [{"x": 1}]}]


@pytest.mark.parametrize(
    "kind",
    [
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int32(), pa.large_string(), ordered=True),
        pa.list_(pa.dictionary(pa.int32(), pa.string())),
        pa.map_(pa.string(), pa.dictionary(pa.int32(), pa.string())),
        pa.struct([("x", pa.dictionary(pa.int32(), pa.string()))]),
    ],
)
def test_unused_values_of_an_arrow_dictionary_are_removed(kind):
    texts = ["Cem", "Ana", None, "Bob"]
    values = [{pa.types.is_list: [text], pa.types.is_map: [("k", text)]}.get(_shape(kind), text) for text in texts]
    if pa.types.is_struct(kind):
        values = [{"x": text} for text in texts]
    back = adapt_table(pa.table({"a": pa.array(values, kind)})).rebuild({}, np.array([3, 0, 2]))
    assert back["a"].type == kind
    assert back["a"].to_pylist() == [values[3], values[0], values[2]]
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, back.schema) as writer:
        writer.write_table(back)
    assert b"Bob" in stream.getvalue().to_pybytes()
    assert b"Ana" not in stream.getvalue().to_pybytes()


def _shape(kind):
    return next((fits for fits in (pa.types.is_map, pa.types.is_list) if fits(kind)), None)


def test_equal_values_of_a_dictionary_become_one():
    twice = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None]), pa.array(["a", "a", None]))
    back = adapt_table(pa.table({"a": twice})).rebuild({})["a"].chunk(0)
    assert back.dictionary.to_pylist() == ["a"]
    assert back.indices.to_pylist() == [0, 0, None, None]


def test_the_order_of_a_dictionary_stays():
    sizes = pa.DictionaryArray.from_arrays(pa.array([2, 0]), pa.array(["low", "mid", "high"]), ordered=True)
    assert adapt_table(pa.table({"a": sizes})).rebuild({})["a"].chunk(0).dictionary.to_pylist() == ["low", "high"]


def test_unused_categories_of_pandas_are_removed():
    pd = pytest.importorskip("pandas")
    arrow = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
    frame = pd.DataFrame({"a": pd.Categorical(["x", "Ana"]), "b": pd.array(["x", "Ana"], arrow)})
    back = adapt_table(frame).rebuild({}, np.array([0]))
    assert back["a"].cat.categories.tolist() == ["x"]
    assert back["b"].dtype == arrow
    assert pa.table(back)["b"].chunk(0).dictionary.to_pylist() == ["x"]


def test_unused_categories_of_polars_are_removed():
    pl = pytest.importorskip("polars")
    kinds = {"a": pl.Enum(["z", "Ana", "x"]), "b": pl.Categorical(pl.Categories("people"))}
    frame = pl.DataFrame({"a": ["x", "Ana", "z"], "b": ["x", "Ana", None]}, schema=kinds)
    back = adapt_table(frame).rebuild({}, np.array([0, 2]))
    assert back.rows() == [("x", "x"), ("z", None)]
    assert back["a"].dtype.categories.to_list() == ["z", "x"]
    assert isinstance(back["b"].dtype, pl.Categorical)
    assert back["b"].dtype != frame["b"].dtype  # which lists Ana


def test_a_lazy_frame_comes_back_lazy():
    pl = pytest.importorskip("polars")
    back = adapt_table(pl.from_arrow(TABLE).lazy()).rebuild({"age": pa.array(["*"] * 3)})
    assert isinstance(back, pl.LazyFrame)
    assert back.collect()["age"].to_list() == ["*"] * 3


def test_columns_of_pandas_may_have_numbers_as_names():
    pd = pytest.importorskip("pandas")
    rows = adapt_table(pd.DataFrame(np.array([[1, 2], [3, 4]])))
    assert resolve_column_names([0, 1], "quasi", rows) == ("0", "1")
    assert rows.rebuild({"1": pa.array(["x", "y"])})[1].tolist() == ["x", "y"]


@pytest.mark.parametrize("given", [[1, 2], "table.csv", None, {"a": [1]}, np.zeros((2, 2))])
def test_a_value_that_is_not_a_table_is_refused(given):
    refused(TypeError, "expected a pandas, polars or Arrow table, not ", adapt_table, given)


def test_a_single_column_is_not_a_table():
    refused(TypeError, "not Series", adapt_table, pytest.importorskip("pandas").Series([1]))
    refused(TypeError, "not Series", adapt_table, pytest.importorskip("polars").Series([1]))


def test_a_record_batch_and_a_stream_are_tables():
    batch = TABLE.to_batches()[0]
    assert adapt_table(batch).row_count == 3
    assert adapt_table(pa.RecordBatchReader.from_batches(TABLE.schema, [batch])).column_names == ("age", "zip", "sex")


def test_a_single_name_is_accepted_as_a_list():
    assert resolve_column_names("age", "quasi", adapt_table(TABLE)) == ("age",)
    assert resolve_column_names(("age", "zip"), "quasi", adapt_table(TABLE)) == ("age", "zip")


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ("zipp", ValueError, "quasi: column 'zipp' does not exist. The table has: age, zip, sex. Did you mean 'zip'?"),
        ("ZIP", ValueError, "Did you mean 'zip'?"),
        ("colour", ValueError, "The table has: age, zip, sex."),
        ("x" * 10_000, ValueError, "x…' does not exist"),
        ([], ValueError, "quasi: name at least one column. The table has: age, zip, sex."),
        (["age", "age"], ValueError, "quasi: 'age' is named twice."),
        ([None], TypeError, "quasi: expected a column name or a list of names, not NoneType."),
        ([["age"]], TypeError, "not list"),
        (1.5, TypeError, "not float"),
        (True, TypeError, "not bool"),
    ],
)
def test_wrong_names_are_refused_with_a_hint(given, error, words):
    refused(error, words, resolve_column_names, given, "quasi", adapt_table(TABLE))


def test_two_columns_of_one_name_are_refused_if_named():
    twice = pa.table([[1], [2], [3]], names=["a", "a", "b"])
    assert resolve_column_names("b", "quasi", adapt_table(twice)) == ("b",)
    refused(ValueError, "several columns 'a'", resolve_column_names, "a", "quasi", adapt_table(twice))


def test_a_table_of_many_columns_keeps_the_message_short():
    wide = pa.table({f"column{i}": [1] for i in range(500)})
    refused(ValueError, "and 488 more", resolve_column_names, "x", "quasi", adapt_table(wide))


@pytest.mark.parametrize(
    ("table", "quasi", "sensitive", "words"),
    [
        (TABLE, "age", "age", "sensitive: 'age' is already quasi-identifying."),
        (TABLE, "age", "ill", "sensitive: column 'ill' does not exist."),
        (TABLE.slice(0, 0), "age", None, "table: the table has no rows."),
        (pa.table({"a": pa.nulls(2, pa.int64())}), "a", None, "quasi: column 'a' has only nulls."),
        (pa.table({"a": pa.nulls(2)}), "a", None, "only nulls"),
        (pa.table({"a": [1.0, 2.0], "b": [float("nan")] * 2}), "a", "b", "sensitive: column 'b' has only nulls"),
    ],
)
def test_wrong_inputs_are_refused(table, quasi, sensitive, words):
    refused(ValueError, words, encode_table, table, quasi, sensitive)


@pytest.mark.parametrize("values", [[[1], [2]], [{"a": 1}, {"a": 2}]])
def test_nested_columns_are_refused_when_they_are_named(values):
    table = pa.table({"a": [1, 2], "deep": values})
    assert encode_table(table, "a").quasi[0].codes.tolist() == [0, 1]
    refused(TypeError, "column 'deep' has type", encode_table, table, "deep")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1, "1"], "column 'a' mixes int and str. Convert it to one type, for example: table['a']"),
        ([True, 1], "mixes bool and int"),
        ([{1}, {2}], "column 'a' has type list"),
        ([2**70, 1], "column 'a' cannot be converted to Arrow. Convert it to text or numbers first."),
        (["\ud800", "b"], "column 'a' cannot be converted to Arrow"),
        ([object(), object()], "column 'a' cannot be converted to Arrow"),
    ],
)
def test_objects_of_several_kinds_are_refused_when_they_are_named(values, words):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": pd.Series(values, dtype=object), "b": [1, 2]})
    assert encode_table(frame, "b").source.row_count == 2
    refused(TypeError, words, encode_table, frame, "a")


def test_a_date_and_a_timestamp_are_different_types():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": pd.Series([date(2024, 1, 1), datetime(2024, 1, 1, 5)], dtype=object)})
    refused(TypeError, "mixes date and datetime", encode_table, frame, "a")


def test_pandas_own_types_are_read():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "bin": pd.cut([1, 2, 9, np.nan], [0, 5, 10]),
            "span": pd.arrays.IntervalArray.from_tuples([(0, 1), (0, 1), (1, 2), None]),
            "month": pd.PeriodIndex(["2024-02", "2024-01", "2024-02", None], freq="M"),
            "thin": pd.arrays.SparseArray([0, 7, 0, 7]),
            "whole": pd.array([1, 2, None, 2], "Int64"),
        }
    )
    rows = adapt_table(frame)
    assert encode_column(rows, "bin").values.to_pylist() == ["(0, 5]", "(5, 10]", None]
    assert encode_column(rows, "span").codes.tolist() == [0, 0, 1, 2]
    assert encode_column(rows, "month").codes.tolist() == [1, 0, 1, 2]
    assert encode_column(rows, "month").is_ordered
    assert encode_column(rows, "thin").values.to_pylist() == [0, 7]
    assert encode_column(rows, "whole").codes.tolist() == [0, 1, 2, 1]


@pytest.mark.parametrize("kind", ["Object", "Int128"])
def test_columns_of_polars_that_arrow_lacks_are_refused(kind):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"a": pl.Series([1, 2], dtype=getattr(pl, kind)), "b": [1, 2]})
    assert encode_table(frame, "b").source.row_count == 2
    refused(TypeError, "column 'a' cannot be converted to Arrow", encode_table, frame, "a")


def test_objects_of_one_kind_are_read():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"n": pd.Series([1, 2.5, None], dtype=object), "t": pd.Series(["a", None, "a"], dtype=object)})
    assert encode_column(adapt_table(frame), "n").values.to_pylist() == [1.0, 2.5, None]
    assert encode_column(adapt_table(frame), "t").codes.tolist() == [0, 1, 0]
