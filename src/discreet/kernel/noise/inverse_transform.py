"""Exact inverse transform sampling from a table: sixteen random bits nearly always decide.

A symbol is drawn by inverting a distribution function F: with a uniform real U in [0, 1), the symbol is the first s
with U < F(s). U is drawn bit by bit. Sixteen bits select a cell of a table, which contains the symbol if no boundary
F(s) is in the cell. Otherwise 48 more bits are drawn and compared with floor(F·2^64); if they are equal, more bits are
drawn and compared with longer integers. No floats are used.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discreet.kernel.noise.keystream import RandomSource, random_integer, random_words, wipe

CELL_BITS = 16
WORD_BITS = 64
UNDECIDED = 32767  # value of a cell that contains a boundary


@dataclass(frozen=True)
class Boundaries:
    """floor(F(s)·2^bits) for s = first, first + 1, …; beyond both ends F is within 2^-bits of 0 and of 1."""

    first: int
    floors: list[int]


class InverseTransformSampler:
    """A sampler for the distribution whose function `boundaries(bits)` encloses."""

    def __init__(
        self,
        boundaries: Callable[[int], Boundaries],
        *,
        cell_bits: int = CELL_BITS,
        word_bits: int = WORD_BITS,
    ) -> None:
        self._boundaries = boundaries
        self._cell_bits, self._word_bits = cell_bits, word_bits
        initial = boundaries(word_bits)
        self.first, self.last = initial.first, initial.first + len(initial.floors)
        if not -UNDECIDED <= self.first <= self.last < UNDECIDED:
            raise ValueError("boundaries: too many symbols for one table")
        self._floors = np.array(initial.floors, np.uint64)
        tops = (self._floors >> np.uint64(word_bits - cell_bits)).astype(np.int64)
        # Cell j contains the number of boundaries in earlier cells …
        edges = np.concatenate(([-1], tops, [(1 << cell_bits) - 1]))
        symbols = np.arange(self.first, self.last + 1, dtype=np.int16)
        self._cells = np.repeat(symbols, np.diff(edges))
        # … unless a boundary is in the cell itself.
        self._cells[tops] = UNDECIDED

    def draw(self, source: RandomSource, count: int) -> np.ndarray:
        """Return independent draws as int64, or as Python integers if one of them is larger.

        Claim: symbol s has probability F(s) - F(s-1), exactly, and every s can occur.
        Proof: a word w of n bits means w <= U·2^n < w + 1. If w > floor(F·2^n) then U >= F; if w < floor(F·2^n) then
            U < F; likewise for a cell without a boundary. Hence a symbol is returned only if all further bits of U
            would give the same one; these bits are uniform and never drawn. If w equals a floor, U is extended to
            twice the bits. Beyond the ends of the list every floor is 0 or 2^n - 1, which are in the list: a symbol
            there is found with more bits, and the support is unbounded.
        Needs: Keystream.bytes, random_words, random_integer; boundaries(n) are the exact floors.
        Checked by: test_every_word_gives_the_symbol_of_its_interval, test_equal_words_are_continued
        """
        cells = random_words(source, count, np.uint16)
        if self._cell_bits < CELL_BITS:
            cells >>= np.uint16(CELL_BITS - self._cell_bits)
        cell_symbols = self._cells.take(cells)
        symbols = cell_symbols.astype(np.int64)
        undecided = np.flatnonzero(cell_symbols == UNDECIDED)
        if len(undecided):
            symbols = put_integers(symbols, undecided, self._decide_with_word(source, cells.take(undecided)))
        wipe(cells)
        return symbols

    def _decide_with_word(self, source: RandomSource, cells: np.ndarray) -> np.ndarray:
        rest = random_words(source, len(cells), np.uint64) >> np.uint64(64 - self._word_bits + self._cell_bits)
        drawn = (cells.astype(np.uint64) << np.uint64(self._word_bits - self._cell_bits)) | rest
        index = np.searchsorted(self._floors, drawn)
        symbols = index + self.first
        for position in np.flatnonzero(self._floors.take(index, mode="clip") == drawn):
            symbol = self._decide_with_more_bits(source, int(drawn[position]))
            symbols = put_integers(
                symbols, position, np.array(symbol, object if symbol.bit_length() > 62 else np.int64)
            )
        return symbols

    def _decide_with_more_bits(self, source: RandomSource, word: int) -> int:
        bits = self._word_bits
        while True:
            word = word << bits | random_integer(source, bits)
            bits *= 2
            finer = self._boundaries(bits)
            index = bisect_left(finer.floors, word)
            if index == len(finer.floors) or finer.floors[index] != word:
                return finer.first + index


def put_integers(array: np.ndarray, where: np.ndarray | np.integer, values: np.ndarray) -> np.ndarray:
    """Set these values in the array and return it, as Python integers if they exceed int64."""
    if values.dtype == object and array.dtype != object:
        array = array.astype(object)
    array[where] = values
    return array
