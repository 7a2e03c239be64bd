"""Read and write whole tables as CSV or Parquet without changing a value."""

import codecs
import re
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from discreet.cli.terminal import usage_error


def write_csv(table: pa.Table, path: Path, delimiter: str) -> None:
    """Write a table as CSV; null is an empty field, and an empty string is "".

    >>> import tempfile
    >>> table = pa.table({"zip": ["02139", None], "jobs": ["cook, nurse", ""], "pay": [6000.0, 0.5]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_csv(table, Path(folder) / "t.csv", ",")
    ...     print((Path(folder) / "t.csv").read_text(), end="")
    zip,jobs,pay
    02139,"cook, nurse",6000.0
    ,"",0.5
    """
    with duckdb.connect() as connection:
        connection.from_arrow(table).write_csv(str(path), sep=delimiter)


def restore_texts(table: pa.Table, texts: pa.Table, kept_rows: np.ndarray | None, quasi: Iterable[str]) -> pa.Table:
    """Restore the original texts, such as 6000.0 or 1e3, of columns that were not generalised.

    A quasi-identifier is restored only if equal values have equal texts; otherwise the texts would distinguish rows of
    the same class.

    >>> table = pa.table({"age": ["20", "30"], "pay": ["6e3", "7"]})
    >>> restore_texts(pa.table({"age": ["20-30"] * 2, "pay": [6000.0, 7.0]}), table, None, ["age"]).to_pydict()
    {'age': ['20-30', '20-30'], 'pay': ['6e3', '7']}
    """
    quasi_columns = frozenset(quasi)
    original = texts if kept_rows is None else texts.take(pa.array(kept_rows))
    for index, name in enumerate(table.column_names):
        if pa.types.is_string(table.schema.field(index).type) or not pa.types.is_string(
            original.schema.field(index).type
        ):
            continue
        if name not in quasi_columns or _count_distinct(table.column(index)) == _count_distinct(original.column(index)):
            table = table.set_column(index, name, original.column(index))
    return table


def _count_distinct(column: pa.ChunkedArray) -> int:
    return int(pc.count_distinct(column, mode="all").as_py())


_DELIMITER_BY_SUFFIX = {".csv": ",", ".tsv": "\t"}
_PARQUET_SUFFIXES = (".parquet", ".pq")
_READABLE = ".csv, .tsv (each also with .gz), .parquet or .pq"
_DELIMITERS = (",", ";", "\t", "|")  # the first of equally frequent ones is used
_HEADER_BYTES = 65_536
WRITABLE_SUFFIXES = (*_DELIMITER_BY_SUFFIX, *_PARQUET_SUFFIXES)

# Text is converted to a number or a time only if nothing is lost: 02139 remains text.
_TYPE_PATTERNS = (
    (r"^(0|-?[1-9][0-9]{0,17})$", pa.int64()),
    (r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$", pa.float64()),
    (r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", pa.date32()),
    (r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?$", pa.timestamp("us")),
)

_EXACT_REAL_PATTERN = r"^[-0-9.]{1,15}$"  # a double keeps up to 15 digits exactly


def read_table(path: Path, option: str = "TABLE") -> pa.Table:
    """Read a table; every column of a CSV file is text, and an unquoted empty field is null."""
    if not path.is_file():
        usage_error(f"{option}: the file {path} does not exist. Correct the path.")
    name = path.name.lower().removesuffix(".gz")
    if not name.endswith(WRITABLE_SUFFIXES):
        usage_error(f"{option}: the format of {path} is not supported. Use a file that ends in {_READABLE}.")
    try:
        return pa.parquet.read_table(path) if name.endswith(_PARQUET_SUFFIXES) else _read_csv(path)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if is_text_file(path) and (encoding := _guess_encoding(path)):
            convert = f"iconv -f {encoding} -t UTF-8 {path.name} > utf8-{path.name}"
            usage_error(f"{option}: {path} is not UTF-8. Save it as UTF-8, or convert it: {convert}")
        usage_error(f"{option}: cannot read {path} ({str(error).splitlines()[0]}). Check that the file is complete.")


def is_text_file(path: Path) -> bool:
    """Whether the columns of a file are all read as text."""
    return not path.name.lower().endswith(_PARQUET_SUFFIXES)


def _guess_encoding(path: Path) -> str | None:
    """Guess the encoding of a file that is not UTF-8; None if it is UTF-8 or cannot be read."""
    content = b""
    try:
        with pa.input_stream(path, compression="detect") as stream:
            content = stream.read()
        content.decode()
    except UnicodeDecodeError:
        return "UTF-16" if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "WINDOWS-1252"
    except (pa.ArrowException, OSError):
        return None
    return None


def _read_csv(path: Path) -> pa.Table:
    parse_options = pa.csv.ParseOptions(delimiter=_guess_delimiter(path), newlines_in_values=True)
    with pa.csv.open_csv(path, parse_options=parse_options) as reader:
        names = reader.schema.names
    convert_options = pa.csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    return pa.csv.read_csv(path, parse_options=parse_options, convert_options=convert_options)


def _guess_delimiter(path: Path) -> str:
    """Return the most frequent delimiter in the header; guessing from rows may drop some of them."""
    with pa.input_stream(path, compression="detect") as stream:
        line = stream.read(_HEADER_BYTES).partition(b"\n")[0].decode("utf-8", "replace")
    bare = re.sub(r'"[^"]*"', "", line)
    return max(_DELIMITERS, key=bare.count)


def infer_types(table: pa.Table, columns: Iterable[str]) -> pa.Table:
    """Convert text columns to numbers, dates or times where every value is one.

    >>> table = pa.table({"zip": ["02139", "13053"], "age": ["41", None], "born": ["1984-02-29", "1990-01-01"]})
    >>> [str(kind) for kind in infer_types(table, table.column_names).schema.types]
    ['string', 'int64', 'date32[day]']
    """
    for name in columns:
        if table.column_names.count(name) == 1:
            index = table.column_names.index(name)
            table = table.set_column(index, name, _infer_type(table[name]))
    return table


def _infer_type(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    values = pc.unique(column).drop_null()
    for pattern, kind in _TYPE_PATTERNS:
        if len(values) and pc.all(pc.match_substring_regex(values, pattern)).as_py():
            if kind == pa.float64() and not _are_exact_reals(values):
                return column
            try:
                return column.cast(kind)
            except pa.ArrowInvalid:  # such as 30 February
                return column
    return column


def _are_exact_reals(texts: pa.Array) -> bool:
    """Whether converting the texts to doubles changes no number, as it would for long identifiers."""
    doubtful = texts.filter(pc.invert(pc.match_substring_regex(texts, _EXACT_REAL_PATTERN)))
    try:
        return all(Decimal(repr(float(text))) == Decimal(text) for text in doubtful.to_pylist())
    except InvalidOperation:  # an exponent out of range
        return False


def write_table(table: pa.Table, path: Path, option: str = "--out") -> None:
    """Write a table as CSV or Parquet."""
    end = path.suffix.lower()
    try:
        if end in _PARQUET_SUFFIXES:
            pa.parquet.write_table(table, path)
        else:
            write_csv(table, path, _DELIMITER_BY_SUFFIX[end])
    except (pa.ArrowException, duckdb.Error, OSError) as error:
        usage_error(f"{option}: cannot write {path} ({str(error).splitlines()[0]}). Choose another path.")
