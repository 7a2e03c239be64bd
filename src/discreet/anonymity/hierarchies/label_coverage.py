"""The original values that each released value covers.

*                               any value
130**                           five characters that begin with 130
20-29   [0.5, 1.5)   20..29     a range including its ends, except at a round bracket
<30   >=40   ≥40   90+          a one-sided range
{A, B}   {"A, B", C}            one of a set of values
Europe                          a label of a hierarchy
"""

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.anonymity.encoding.encoded_table import EncodedColumn
from discreet.anonymity.hierarchies.label_syntax import parse_set, positions_in_range
from discreet.arguments import ArgumentError


@dataclass(frozen=True, eq=False)
class LabelCoverage:
    """The codes of the original values that each released value covers: low, ..., high - 1.

    If the codes are not contiguous, low and high are those of the smallest enclosing run, and `scattered_pairs` has
    the covered codes, as sorted numbers released·original_count + original.
    """

    original_count: int
    low: np.ndarray
    high: np.ndarray
    is_scattered: np.ndarray
    scattered_pairs: np.ndarray

    def contains(self, released: np.ndarray, original: np.ndarray) -> np.ndarray:
        """Return for pairs of codes whether the released value covers the original one."""
        inside = (self.low[released] <= original) & (original < self.high[released])
        doubtful = np.flatnonzero(inside & self.is_scattered[released])
        pairs = released[doubtful].astype(np.int64) * self.original_count + original[doubtful]
        inside[doubtful] = np.isin(pairs, self.scattered_pairs)
        return np.asarray(inside)

    def covered_counts(self) -> np.ndarray:
        """Return the number of original values that each released value covers."""
        counts = np.where(self.is_scattered, 0, self.high - self.low)
        np.add.at(counts, self.scattered_pairs // self.original_count, 1)
        return counts

    def covering_labels(self) -> np.ndarray | None:
        """Return the released value that covers each original one (-1 for none), or None if some have several."""
        runs = np.flatnonzero(~self.is_scattered)
        length = self.high[runs] - self.low[runs]
        if length.sum() + len(self.scattered_pairs) > self.original_count:
            return None
        steps = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
        covered_codes = np.concatenate(
            [np.repeat(self.low[runs], length) + steps, self.scattered_pairs % self.original_count]
        )
        label_of_code = np.full(self.original_count, -1)
        label_of_code[covered_codes] = np.concatenate(
            [np.repeat(runs, length), self.scattered_pairs // self.original_count]
        )
        return label_of_code if np.count_nonzero(label_of_code >= 0) == len(covered_codes) else None


def build_coverage(covered_codes: Sequence[Sequence[int]], original_count: int) -> LabelCoverage:
    """Return the coverage, given the sorted codes that each released value covers, out of `original_count` codes.

    >>> coverage = build_coverage([[0, 1], [3], [0, 3], []], 4)
    >>> coverage.contains(np.array([0, 2, 2]), np.array([1, 1, 3])).tolist(), coverage.covered_counts().tolist()
    ([True, False, True], [2, 1, 2, 0])
    >>> coverage.covering_labels() is None, build_coverage([[0, 1], [3]], 4).covering_labels().tolist()
    (True, [0, 0, -1, 1])
    """
    low = np.array([codes[0] if len(codes) else 0 for codes in covered_codes], np.int64)
    high = np.array([codes[-1] + 1 if len(codes) else 0 for codes in covered_codes], np.int64)
    is_scattered = high - low != np.array([len(codes) for codes in covered_codes], np.int64)
    pairs = [
        np.asarray(covered_codes[label], np.int64) + label * original_count
        for label in np.flatnonzero(is_scattered).tolist()
    ]
    return LabelCoverage(
        original_count, low, high, is_scattered, np.concatenate(pairs) if pairs else np.empty(0, np.int64)
    )


_STARRED_PREFIX = re.compile(r"([^*]*)\*+", re.DOTALL)
_LAST_CHARACTER = chr(0x10FFFF)
_ZERO_FRACTION = re.compile(r"\.0+(?=$|[-+Z])")


@dataclass(frozen=True, eq=False)
class _OriginalValues:
    """The original values of a column: codes by text, the sorted texts, and positions if the column is ordered."""

    column: EncodedColumn
    codes: Mapping[str, int]
    texts: Sequence[str]
    positions: np.ndarray
    labels: Mapping[str, Sequence[int]]


def parse_coverage(
    released: EncodedColumn, original: EncodedColumn, labels: Mapping[str, Sequence[int]] | None = None
) -> LabelCoverage:
    """Return the original values that each released value covers; `labels` maps hierarchy labels to covered codes.

    >>> from discreet.anonymity.encoding.encoded_table import encode_column
    >>> original = encode_column(pa.table({"age": [21, 28, 35, 40]}), "age")
    >>> released = encode_column(pa.table({"age": ["20-29", "3*", ">=28", "{21, 40}", "*"]}), "age")
    >>> list(zip(released.values.to_pylist(), parse_coverage(released, original).covered_counts().tolist()))
    [('*', 4), ('20-29', 2), ('3*', 1), ('>=28', 3), ('{21, 40}', 2)]
    """
    exact: list[int | None] = [None] * len(released.values)
    if released.values.type == original.values.type and not labels:
        exact = pc.index_in(released.values, original.values).to_pylist()
    if None not in exact and (
        original.is_ordered or _has_same_values(released, original) or not _has_label_like_values(original)
    ):
        return build_coverage([(code,) for code in exact if code is not None], len(original.values))
    originals = _index_originals(original, labels or {})
    _check_unambiguous(released, originals)
    pairs = zip(format_values(released.values), exact, strict=True)
    return build_coverage(
        [_covered_codes(label, originals) if code is None else (code,) for label, code in pairs], len(original.values)
    )


def _has_same_values(released: EncodedColumn, original: EncodedColumn) -> bool:
    return released.values.equals(original.values) and np.array_equal(released.codes, original.codes)


def _has_label_like_values(original: EncodedColumn) -> bool:
    return any(text is not None and _looks_like_label(text) for text in format_values(original.values))


def _looks_like_label(text: str) -> bool:
    return text.endswith("*") or (text.startswith("{") and text.endswith("}"))


def _check_unambiguous(released: EncodedColumn, originals: _OriginalValues) -> None:
    """Raise ValueError for a released text that is both an original value and a label of other values."""
    if originals.column.is_ordered or _has_same_values(released, originals.column):
        return
    for text in format_values(released.values):
        if text is None or text in originals.labels or text not in originals.codes or not _looks_like_label(text):
            continue
        covered = range(len(originals.column.values)) if text == "*" else _match_pattern(text, originals)
        if set(covered) - {originals.codes[text]}:
            ambiguity = f"{text[:60]!r} in column {released.name[:60]!r} can be that value or a label of other values"
            raise ArgumentError("table", f"{ambiguity}. Rename the value in both tables.")


def format_values(values: pa.Array) -> list[str | None]:
    """Return values as text, so that equal values have equal texts: 30.0 as 30, and midnight as a date.

    >>> format_values(pa.array([30.0, 0.5, None])), format_values(pa.array([0, 90], pa.timestamp("s")))
    (['30', '0.5', None], ['1970-01-01', '1970-01-01 00:01:30'])
    """
    if pa.types.is_duration(values.type):
        values = values.cast(pa.int64())
    if pa.types.is_temporal(values.type):
        return [None if text is None else _format_timestamp(text) for text in values.cast(pa.string()).to_pylist()]
    return [None if value is None else _format_value(value) for value in values.to_pylist()]


def _format_timestamp(text: str) -> str:
    return _ZERO_FRACTION.sub("", text).removesuffix(" 00:00:00")


def _format_value(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _index_originals(column: EncodedColumn, labels: Mapping[str, Sequence[int]]) -> _OriginalValues:
    codes = {text: code for code, text in enumerate(format_values(column.values)) if text is not None}
    positions = column.positions[: column.null_code] if column.is_ordered else np.empty(0)
    return _OriginalValues(column, codes, sorted(codes), positions, labels)


def _covered_codes(label: str | None, originals: _OriginalValues) -> Sequence[int]:
    if label is None:
        return () if originals.column.null_code is None else (originals.column.null_code,)
    if label in originals.labels:
        return originals.labels[label]
    if label in originals.codes:
        return (originals.codes[label],)
    return range(len(originals.column.values)) if label == "*" else _match_pattern(label, originals)


def _match_pattern(label: str, originals: _OriginalValues) -> Sequence[int]:
    if stem := _STARRED_PREFIX.fullmatch(label):
        return _codes_with_prefix(stem[1], len(label), originals)
    if label.startswith("{") and label.endswith("}"):
        return _codes_in_set(label[1:-1], originals)
    if not originals.column.is_ordered:
        return ()
    return positions_in_range(label.strip(), originals.positions, originals.column.values.type, originals.column.origin)


def _codes_with_prefix(stem: str, length: int, originals: _OriginalValues) -> Sequence[int]:
    first, end = bisect_left(originals.texts, stem), bisect_left(originals.texts, stem + _LAST_CHARACTER)
    return sorted(originals.codes[text] for text in originals.texts[first:end] if len(text) == length)


def _codes_in_set(inside: str, originals: _OriginalValues) -> Sequence[int]:
    members = parse_set(inside, originals.codes)
    codes = {originals.codes[text] for text in members if text is not None and text in originals.codes}
    if None in members and originals.column.null_code is not None:
        codes.add(originals.column.null_code)
    elif None in members and "null" in originals.codes:
        codes.add(originals.codes["null"])
    return sorted(codes)
