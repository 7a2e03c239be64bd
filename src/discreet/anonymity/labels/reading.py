"""Reading a released column: original values, or texts that generalise them, as tables of k-anonymity write them.

*                               anything
130**                           five characters, the first of which are 130
20-29   [0.5, 1.5)   20..29     a range; its ends are in it, except at a round bracket
<30   >=40   ≥40   90+          a range with one end
{A, B}   {"A, B", C}            one of these
Europe                          what a hierarchy says
"""

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.anonymity.coding.columns import Column
from discreet.anonymity.labels.covers import Cover, cover_of
from discreet.anonymity.labels.sets import members_of
from discreet.anonymity.labels.spans import run_of

_STEM = re.compile(r"([^*]*)\*+", re.DOTALL)
_BEYOND = chr(0x10FFFF)
_NO_FRACTION = re.compile(r"\.0+(?=$|[-+Z])")


@dataclass(frozen=True, eq=False)
class _Originals:
    """The original values of a column: their codes by text, the texts sorted, and if it is ordered their places."""

    column: Column
    codes: Mapping[str, int]
    texts: Sequence[str]
    places: np.ndarray
    labels: Mapping[str, Sequence[int]]


def read_cover(released: Column, original: Column, labels: Mapping[str, Sequence[int]] | None = None) -> Cover:
    """Find which original values each released value may have been; `labels` are a hierarchy's, with the
    codes of the values below each.

    >>> from discreet.anonymity.coding.columns import encode
    >>> ages = encode(pa.table({"age": [21, 28, 35, 40]}), "age")
    >>> shown = encode(pa.table({"age": ["20-29", "3*", ">=28", "{21, 40}", "*"]}), "age")
    >>> list(zip(shown.values.to_pylist(), read_cover(shown, ages).counts().tolist()))
    [('*', 4), ('20-29', 2), ('3*', 1), ('>=28', 3), ('{21, 40}', 2)]
    """
    exact: list[int | None] = [None] * len(released.values)
    if released.values.type == original.values.type and not labels:
        exact = pc.index_in(released.values, original.values).to_pylist()
    if None not in exact and (original.ordered or _is_same(released, original) or not _has_labels(original)):
        return cover_of([(code,) for code in exact if code is not None], len(original.values))
    known = _originals(original, labels or {})
    _check_one_reading(released, known)
    pairs = zip(texts_of(released.values), exact, strict=True)
    return cover_of(
        [_stands_for(label, known) if code is None else (code,) for label, code in pairs], len(original.values)
    )


def _is_same(released: Column, original: Column) -> bool:
    return released.values.equals(original.values) and np.array_equal(released.codes, original.codes)


def _has_labels(original: Column) -> bool:
    return any(text is not None and _is_label(text) for text in texts_of(original.values))


def _is_label(text: str) -> bool:
    return text.endswith("*") or (text.startswith("{") and text.endswith("}"))


def _check_one_reading(released: Column, known: _Originals) -> None:
    """Refuse a text that is an original value, and may be the label of others just as well."""
    if known.column.ordered or _is_same(released, known.column):
        return
    for text in texts_of(released.values):
        if text is None or text in known.labels or text not in known.codes or not _is_label(text):
            continue
        others = range(len(known.column.values)) if text == "*" else _pattern(text, known)
        if set(others) - {known.codes[text]}:
            what = f"{text[:60]!r} in column {released.name[:60]!r} may be that value, or a label of others"
            raise ValueError(f"table: {what}; the other table has both. Give the value another name in both tables.")


def texts_of(values: pa.Array) -> list[str | None]:
    """Write values as texts that are equal if the values are: 30.0 as 30, and midnight as its date.

    >>> texts_of(pa.array([30.0, 0.5, None])), texts_of(pa.array([0, 90], pa.timestamp("s")))
    (['30', '0.5', None], ['1970-01-01', '1970-01-01 00:01:30'])
    """
    if pa.types.is_duration(values.type):
        values = values.cast(pa.int64())
    if pa.types.is_temporal(values.type):
        return [None if text is None else _moment(text) for text in values.cast(pa.string()).to_pylist()]
    return [None if value is None else _text(value) for value in values.to_pylist()]


def _moment(text: str) -> str:
    return _NO_FRACTION.sub("", text).removesuffix(" 00:00:00")


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _originals(column: Column, labels: Mapping[str, Sequence[int]]) -> _Originals:
    codes = {text: code for code, text in enumerate(texts_of(column.values)) if text is not None}
    places = column.positions[: column.null] if column.ordered else np.empty(0)
    return _Originals(column, codes, sorted(codes), places, labels)


def _stands_for(label: str | None, known: _Originals) -> Sequence[int]:
    if label is None:
        return () if known.column.null is None else (known.column.null,)
    if label in known.labels:
        return known.labels[label]
    if label in known.codes:
        return (known.codes[label],)
    return range(len(known.column.values)) if label == "*" else _pattern(label, known)


def _pattern(label: str, known: _Originals) -> Sequence[int]:
    if stem := _STEM.fullmatch(label):
        return _beginning_with(stem[1], len(label), known)
    if label.startswith("{") and label.endswith("}"):
        return _one_of(label[1:-1], known)
    if not known.column.ordered:
        return ()
    return run_of(label.strip(), known.places, known.column.values.type, known.column.origin)


def _beginning_with(stem: str, length: int, known: _Originals) -> Sequence[int]:
    first, end = bisect_left(known.texts, stem), bisect_left(known.texts, stem + _BEYOND)
    return sorted(known.codes[text] for text in known.texts[first:end] if len(text) == length)


def _one_of(inside: str, known: _Originals) -> Sequence[int]:
    members = members_of(inside, known.codes)
    found = {known.codes[text] for text in members if text is not None and text in known.codes}
    if None in members and known.column.null is not None:
        found.add(known.column.null)
    elif None in members and "null" in known.codes:
        found.add(known.codes["null"])
    return sorted(found)
