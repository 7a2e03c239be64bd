"""Reports as bit vectors: bit i is bit i % 8 of byte i // 8, and the last byte is padded with zeros."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.kernel.noise.keystream import RandomSource
from discreet.local.random_variables import bernoulli_words

MAX_OUTCOMES = 1 << 16  # that are listed
_BLOCK_BYTES = 1 << 20  # of reports that are processed at a time
_MIN_BLOCK_ROWS = 1 << 10  # keeps the overhead per block small if reports are long
_BITS_OF_BYTE = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(np.int64)


def packed_dtype(bits: int) -> np.dtype:
    """Return the type of a report of `bits` bits."""
    return np.dtype(f"V{-(-bits // 8)}")


def reports_to_rows(reports: np.ndarray) -> np.ndarray:
    """Return reports as an array of bytes, with one row per report."""
    # Via a structured type, because a strided slice has no view with another item size.
    rows: np.ndarray = reports.view(np.dtype([("bytes", np.uint8, (reports.dtype.itemsize,))]))["bytes"]
    return rows


def rows_to_reports(rows: np.ndarray) -> np.ndarray:
    """Return rows of bytes as reports."""
    return np.ascontiguousarray(rows).view(np.dtype(f"V{rows.shape[1]}"))[:, 0]


def row_blocks(people: int, width: int) -> Iterator[slice]:
    """Yield slices of people whose rows of `width` bytes are processed together."""
    step = max(_BLOCK_BYTES // width, 1)
    for start in range(0, people, step):
        yield slice(start, min(start + step, people))


def bernoulli_rows(source: RandomSource, people: int, bits: int, chance: Fraction) -> np.ndarray:
    """Return a row for each person in which every bit is set independently with probability `chance`."""
    width = -(-bits // 8)
    words = bernoulli_words(source, -(-people * width // 8), chance)
    rows = words.view(np.uint8)[: people * width].reshape(people, width)
    rows[:, -1] &= _last_byte_mask(bits)
    return rows


def overwrite_bits(rows: np.ndarray, positions: np.ndarray, bits: np.ndarray) -> None:
    """Overwrite one bit of each row, at its position."""
    flat = rows.reshape(-1)
    byte_index = np.arange(len(rows)) * rows.shape[1] + (positions >> 3)
    shift = (positions & 7).astype(np.uint8)
    flat[byte_index] = flat[byte_index] & ~(np.uint8(1) << shift) | bits.astype(np.uint8) << shift


def count_ones(rows: np.ndarray, bits: int) -> np.ndarray:
    """Return the number of rows in which each bit is set."""
    counts: np.ndarray = count_ones_by_group(rows, bits, np.zeros(len(rows), np.uint8), 1)[0]
    return counts


def count_ones_by_group(rows: np.ndarray, bits: int, group: np.ndarray, groups: int) -> np.ndarray:
    """Return the number of rows of each group in which each bit is set, groups × bits."""
    width = rows.shape[1]
    total = np.zeros((groups, width, 8), np.int64)
    step = max(_BLOCK_BYTES // width, _MIN_BLOCK_ROWS)
    for start in range(0, len(rows), step):
        base = group[start : start + step].astype(np.int64) << 8
        part = rows[start : start + step]
        for column in range(width):
            # The counts of the 256 byte values give the counts of their bits.
            byte_counts = np.bincount(base + part[:, column], minlength=groups << 8).reshape(groups, 256)
            total[:, column] += byte_counts @ _BITS_OF_BYTE
    return total.reshape(groups, width * 8)[:, :bits]


def check_padding(rows: np.ndarray, bits: int) -> None:
    """Raise ValueError if a padding bit is set."""
    if len(rows) and (rows[:, -1] & ~_last_byte_mask(bits)).any():
        raise ValueError(f"reports: a bit is set in the padding after the last of {bits} bits")


def report_to_row(report: Any, width: int) -> np.ndarray:
    """Return the bytes of one report, given as bytes or as an element of an array."""
    if not isinstance(report, bytes | np.void):
        raise TypeError(f"report must be bytes, not {type(report).__name__}")
    row = np.frombuffer(report if isinstance(report, bytes) else report.tobytes(), np.uint8)
    if len(row) != width:
        raise ValueError(f"report must have {width} bytes, not {len(row)}")
    return row


def unpack_row(row: np.ndarray, bits: int) -> np.ndarray | None:
    """Return the bits of one row, or None if a padding bit is set."""
    unpacked = np.unpackbits(row, bitorder="little")
    return None if unpacked[bits:].any() else unpacked[:bits]


def enumerate_rows(bits: int, times: int = 1) -> Iterator[bytes]:
    """Return every row of `bits` bits; ValueError if `times` as many are too many to list."""
    if times << bits > MAX_OUTCOMES:
        hint = "Use pmf for the probability of one."
        raise ValueError(f"there are {times}·2^{bits} possible reports, too many to list. {hint}")
    return (number.to_bytes(-(-bits // 8), "little") for number in range(1 << bits))


def _last_byte_mask(bits: int) -> np.uint8:
    return np.uint8(255 >> -bits % 8)
