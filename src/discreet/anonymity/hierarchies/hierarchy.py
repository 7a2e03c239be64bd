"""Generalisation hierarchies: the labels that generalise the values of a column, level by level."""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from pathlib import Path
from typing import Any

from discreet.anonymity.hierarchies.label_syntax import format_range
from discreet.arguments import ArgumentError, ArgumentTypeError, require

ANY_VALUE = "*"
_MAX_LABEL_LENGTH = 60
_SOURCE_HINT = "the path of a file, or its text, with lines such as 28;20-29;*"


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A generalisation hierarchy; create one with `read_hierarchy`, `intervals` or `prefixes`.

    `path` returns the labels of levels 1 to `height` above a value, or None if the hierarchy does not contain it.
    `leaves` are the values of a listed hierarchy, and None for a rule.

    >>> prefixes(5).path("13053")
    ('1305*', '130**', '13***', '1****', '*')
    """

    name: str
    height: int
    path: Callable[[Any], tuple[str, ...] | None] = field(repr=False)
    leaves: tuple[str, ...] | None = field(repr=False, default=None)


def read_hierarchy(source: str | Path) -> Hierarchy:
    r"""Read a hierarchy in the format of ARX: each line has a value and its labels on levels 1, 2, ...

    Fields are separated by semicolons. The source is the path of a UTF-8 file, or the text itself.

    >>> ages = read_hierarchy("28;<30;*\n31;30-39;*\n37;30-39;*")
    >>> ages.height, ages.path(31)
    (2, ('30-39', '*'))
    """
    name, text = _read_source(source)
    rows = _parse_lines(text, name)
    require(
        rows and len(rows[0].cells) >= 2,
        f"{name} has no levels. Each line must be value;label of level 1;...;*.",
        "source",
    )
    first = rows[0]
    for row in rows:
        if len(row.cells) != len(first.cells):
            sizes = f"{len(first.cells)} in line {first.line}, {len(row.cells)} in line {row.line}"
            raise ArgumentError("source", f"{name}: all lines must have the same number of fields, not {sizes}.")
    _check_tree([row.cells for row in rows], name)
    _check_equal_numbers(rows, name)
    paths = {row.cells[0]: row.cells[1:] for row in rows}
    return Hierarchy(name, len(first.cells) - 1, _path_lookup(paths), tuple(paths))


@dataclass(frozen=True)
class _CsvLine:
    """A line number and the cells of the line."""

    line: int
    cells: tuple[str, ...]


def _parse_lines(text: str, name: str) -> list[_CsvLine]:
    """Return all lines that are not empty."""
    reader = csv.reader(io.StringIO(text), delimiter=";")
    try:
        rows = [_CsvLine(reader.line_num, tuple(cell.strip() for cell in cells)) for cells in reader]
    except csv.Error as error:
        raise ArgumentError("source", f"{name}: line {reader.line_num} is not valid CSV ({error}).") from None
    return [row for row in rows if any(row.cells)]


def _check_equal_numbers(rows: Sequence[_CsvLine], name: str) -> None:
    """Raise ValueError if equal numbers, such as 30 and 30.0, have different labels."""
    seen: dict[Decimal, _CsvLine] = {}
    for row in rows:
        number = _parse_decimal(row.cells[0])
        if number is not None and (first := seen.setdefault(number, row)).cells[1:] != row.cells[1:]:
            labels = [f"{_quote_label(line.cells[0])} in line {line.line}" for line in (first, row)]
            conflict = f"{' and '.join(labels)} are the same number but have different labels"
            raise ArgumentError("source", f"{name}: {conflict}. Keep one of the lines.")


def _read_source(source: Any) -> tuple[str, str]:
    """Return the name of the hierarchy in messages, and its text."""
    if not isinstance(source, str | Path):
        raise ArgumentTypeError("source", f"expected {_SOURCE_HINT}, not {type(source).__name__}.")
    if isinstance(source, str) and (";" in source or "\n" in source):
        return "the hierarchy", source
    name = f"the hierarchy {Path(source).name}"
    try:
        return name, Path(source).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise FileNotFoundError(f"source: file {source} does not exist. Pass {_SOURCE_HINT}.") from None
    except UnicodeDecodeError:
        raise ArgumentError("source", f"{name} is not valid UTF-8. Save it as UTF-8.") from None


def _check_tree(rows: Sequence[tuple[str, ...]], name: str) -> None:
    for level in range(len(rows[0]) - 1):
        parents: dict[str, str] = {}
        for row in rows:
            first = parents.setdefault(row[level], row[level + 1])
            if first != row[level + 1]:
                parent_labels = f"{_quote_label(first)} and {_quote_label(row[level + 1])}"
                conflict = f"{_quote_label(row[level])} on level {level} has two parents, {parent_labels}"
                raise ArgumentError("source", f"{name} is not a tree: {conflict}. Give each label one parent.")


def _quote_label(label: str) -> str:
    return repr(label if len(label) <= _MAX_LABEL_LENGTH else label[:_MAX_LABEL_LENGTH] + "…")


def _path_lookup(paths: dict[str, tuple[str, ...]]) -> Callable[[Any], tuple[str, ...] | None]:
    """Return a function that looks up the labels of a value of any type in a file of text."""
    by_decimal = {number: path for text, path in paths.items() if (number := _parse_decimal(text)) is not None}
    by_float = {float(number): path for number, path in by_decimal.items()}
    for number, labels in by_decimal.items():
        if by_float.get(float(number)) not in (labels, None):  # different numbers that are the same float
            del by_float[float(number)]
    by_lowercase = {text.lower(): path for text, path in paths.items()}

    def path(value: Any) -> tuple[str, ...] | None:
        if isinstance(value, bool):
            return by_lowercase.get(str(value).lower())
        if isinstance(value, float):
            return by_float.get(value)
        if isinstance(value, int | Decimal):
            return by_decimal.get(Decimal(value))
        return paths.get(str(value))

    return path


def _parse_decimal(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def intervals(low: float, high: float, widths: float | Iterable[float]) -> Hierarchy:
    """Return a hierarchy of numbers from low to high, with one level of intervals for each width, and then *.

    Each width must be a multiple of the one before. Intervals of integers are written 20-29, all others [0.5, 1.0).

    >>> intervals(0, 99, [10, 20]).path(37), intervals(0, 2, 0.5).path(0.7)
    (('30-39', '20-39', '*'), ('[0.5, 1.0)', '*'))
    """
    steps = _check_widths(list(widths) if isinstance(widths, Iterable) else [widths])
    start, end = _check_number(low, "low"), _check_number(high, "high")
    require(start < end, "high must be above low.", "intervals")
    are_integers = all(term == term.to_integral_value() for term in (start, *steps))

    def path(value: Any) -> tuple[str, ...] | None:
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            return None
        number = Decimal(str(value))
        if not start <= number <= end:
            return None
        is_whole = are_integers and isinstance(value, int)
        finest = (number - start) // steps[0]
        labels = []
        for step in steps:
            left = start + finest // (step // steps[0]) * step
            labels.append(
                _integer_interval(left, min(left + step - 1, end))
                if is_whole
                else _half_open_interval(left, left + step)
            )
        return (*labels, ANY_VALUE)

    listed = ", ".join(str(step) for step in steps)
    return Hierarchy(f"intervals({low}, {high}, [{listed}])", len(steps) + 1, path)


def _check_widths(given: Sequence[Any]) -> list[Decimal]:
    steps = [_check_number(width, "each width") for width in given]
    require(steps and steps[0] > 0, "pass at least one width above 0.", "intervals")
    for narrow, wide in pairwise(steps):
        require(
            wide > narrow and not wide % narrow,
            f"the width {wide} must be a multiple of {narrow}, the one before it.",
            "intervals",
        )
    return steps


def _check_number(number: Any, argument: str) -> Decimal:
    parsed = None if isinstance(number, bool | str) else _parse_decimal(str(number))
    if parsed is None:
        raise ArgumentTypeError("intervals", f"{argument} must be a number, not {type(number).__name__}.")
    return parsed


def _integer_interval(low: Decimal, high: Decimal) -> str:
    return f"{low:.0f}" if low == high else format_range(f"{low:.0f}", f"{high:.0f}")


def _half_open_interval(low: Decimal, high: Decimal) -> str:
    return f"[{low:f}, {high:f})"


def prefixes(length: int) -> Hierarchy:
    """Return a hierarchy of codes of equal length, masked from the right: 13053, 1305*, 130**, ..., *.

    Integers are padded with zeros on the left.

    >>> prefixes(5).path(2139)
    ('0213*', '021**', '02***', '0****', '*')
    """
    require(
        not isinstance(length, bool) and isinstance(length, int) and length >= 1,
        "length must be an integer of at least 1.",
        "prefixes",
    )

    def path(value: Any) -> tuple[str, ...] | None:
        if isinstance(value, bool) or not isinstance(value, int | str):
            return None
        text = str(value).zfill(length) if isinstance(value, int) else value
        if len(text) != length or (isinstance(value, int) and value < 0):
            return None
        return (*(text[:-hidden] + "*" * hidden for hidden in range(1, length)), ANY_VALUE)

    return Hierarchy(f"prefixes({length})", length, path)
