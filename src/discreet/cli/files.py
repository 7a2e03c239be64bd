"""Whole tables in files: read so that no value is changed, and written in the format that the name ends in."""

import codecs
import os
import re
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from discreet.cli.csv_text import write_csv
from discreet.cli.stops import wrong

_TEXT = {".csv": ",", ".tsv": "\t"}
_PARQUET = (".parquet", ".pq")
_READABLE = ".csv, .tsv (each also with .gz), .parquet or .pq"
_DELIMITERS = (",", ";", "\t", "|")  # of equally many, the first
_FIRST = 65_536  # bytes in which the first line ends
_MANY = 1 << 20
_WRITABLE = (*_TEXT, *_PARQUET)

# Text becomes a number or a time only if nothing is lost by it: 02139 is a code, and stays one.
_TYPES = (
    (r"^(0|-?[1-9][0-9]{0,17})$", pa.int64()),
    (r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$", pa.float64()),
    (r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", pa.date32()),
    (r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?$", pa.timestamp("us")),
)

_SURE = r"^[-0-9.]{1,15}$"  # up to 15 digits every real keeps


def read_table(path: Path, option: str = "TABLE") -> pa.Table:
    """Read a file; every column of CSV is text, and an empty field without quotes is null."""
    if not path.is_file():
        wrong(f"{option}: there is no file {path}. Correct the path.")
    name = path.name.lower().removesuffix(".gz")
    if not name.endswith(_WRITABLE):
        wrong(f"{option}: {path} cannot be read. Give a file that ends in {_READABLE}.")
    try:
        return pa.parquet.read_table(path) if name.endswith(_PARQUET) else _read_csv(path)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if is_text(path) and (coding := _other_coding(path)):
            convert = f"iconv -f {coding} -t UTF-8 {path.name} > utf8-{path.name}"
            wrong(f"{option}: {path} is not in UTF-8. Save it as UTF-8, or convert it: {convert}")
        wrong(f"{option}: {path} cannot be read in its format ({str(error).splitlines()[0]}). Check that it is whole.")


def is_text(path: Path) -> bool:
    """Return whether a file's columns are read as text, whatever they are."""
    return not path.name.lower().endswith(_PARQUET)


def _other_coding(path: Path) -> str | None:
    """Guess the coding of a text that is not UTF-8; None if it is."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with pa.input_stream(path, compression="detect") as stream:
            first = stream.read(_MANY)
            piece = first
            while piece:
                decoder.decode(piece)
                piece = stream.read(_MANY)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return "UTF-16" if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "WINDOWS-1252"
    except (pa.ArrowException, OSError):
        return None
    return None


def _read_csv(path: Path) -> pa.Table:
    parsed = pa.csv.ParseOptions(delimiter=_delimiter(path), newlines_in_values=True)
    with pa.csv.open_csv(path, parse_options=parsed) as begun:
        names = begun.schema.names
    texts = pa.csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    return pa.csv.read_csv(path, parse_options=parsed, convert_options=texts)


def _delimiter(path: Path) -> str:
    """Return what stands most often between the names in the first line; tools that guess by rows may drop some."""
    with pa.input_stream(path, compression="detect") as stream:
        line = stream.read(_FIRST).partition(b"\n")[0].decode("utf-8", "replace")
    bare = re.sub(r'"[^"]*"', "", line)
    return max(_DELIMITERS, key=bare.count)


def typed(table: pa.Table, columns: Iterable[str]) -> pa.Table:
    """Make numbers, dates and times of columns of text in which every value is one.

    >>> table = pa.table({"zip": ["02139", "13053"], "age": ["41", None], "born": ["1984-02-29", "1990-01-01"]})
    >>> [str(kind) for kind in typed(table, table.column_names).schema.types]
    ['string', 'int64', 'date32[day]']
    """
    for name in columns:
        if table.column_names.count(name) == 1:
            place = table.column_names.index(name)
            table = table.set_column(place, name, _of_type(table[name]))
    return table


def _of_type(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    values = pc.unique(column).drop_null()
    for pattern, kind in _TYPES:
        if len(values) and pc.all(pc.match_substring_regex(values, pattern)).as_py():
            if kind == pa.float64() and not _are_exact(values):
                return column
            try:
                return column.cast(kind)
            except pa.ArrowInvalid:  # the 30th of February
                return column
    return column


def _are_exact(texts: pa.Array) -> bool:
    """Tell whether reals, written as short as can be, are the numbers of the texts; long ids would become others."""
    doubtful = texts.filter(pc.invert(pc.match_substring_regex(texts, _SURE)))
    try:
        return all(Decimal(repr(float(text))) == Decimal(text) for text in doubtful.to_pylist())
    except InvalidOperation:  # an exponent beyond all bounds
        return False


def check_place(path: Path | None, option: str, force: bool, *, endings: tuple[str, ...] = _WRITABLE) -> None:
    """Stop, before any work, if a file could not be written or would overwrite another."""
    if path is None:
        return
    if not path.absolute().parent.is_dir():
        wrong(f"{option}: there is no folder {path.absolute().parent}.")
    if path.suffix.lower() not in endings:
        wrong(f"{option}: write a name that ends in {', '.join(endings)}.")
    if os.path.lexists(path) and not force:
        wrong(f"{option}: {path} is there already. Name another place, or overwrite it with --force.")


def write_table(table: pa.Table, path: Path, option: str = "--out") -> None:
    """Write a table as CSV or Parquet."""
    end = path.suffix.lower()
    try:
        if end in _PARQUET:
            pa.parquet.write_table(table, path)
        else:
            write_csv(table, path, _TEXT[end])
    except (pa.ArrowException, OSError) as error:
        wrong(f"{option}: {path} cannot be written ({str(error).splitlines()[0]}). Name another place.")
