"""What groups of rows lose along all axes together, where the rows of a group lie side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from discreet.anonymity.coding.classes import Classes
from discreet.anonymity.coding.tallies import tally
from discreet.anonymity.generalising.axes import Axis, Bag
from discreet.anonymity.measuring.diversity import distinct

_WORD = 64
_MOST_WORDS = 16


@dataclass(frozen=True, eq=False)
class _Field:
    """The bits of a bag's values: the words that they lie in, and which bits of each word are its own."""

    bag: Bag
    masks: tuple[tuple[int, np.uint64], ...]


@dataclass(frozen=True, eq=False)
class Spread:
    """Rows as codes along each axis, and the values of all bags as one bit each: one `or` over a group finds its sets.

    A bag of very many values has no bits, and its sets are counted.
    """

    axes: tuple[Axis, ...]
    codes: tuple[np.ndarray, ...]
    words: tuple[np.ndarray, ...]
    fields: tuple[_Field | None, ...]

    def taken(self, places: np.ndarray) -> "Spread":
        """Return some of the rows, in a new order."""
        codes, words = (tuple(each[places] for each in arrays) for arrays in (self.codes, self.words))
        return replace(self, codes=codes, words=words)

    def losses(self, places: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Return what each group loses: the rows at some places, where a group begins at each of the starts."""
        total = np.zeros(len(starts))
        sets = [np.bitwise_or.reduceat(word[places], starts) for word in self.words]
        for axis, codes, field in zip(self.axes, self.codes, self.fields, strict=True):
            if field is not None:
                counts = [np.bitwise_count(sets[word] & mask) for word, mask in field.masks]
                total += field.bag.loss(np.sum(counts, axis=0))
            elif isinstance(axis.shape, Bag):
                total += axis.shape.loss(_distinct(codes[places], starts, axis.totals))
            else:
                mine = codes[places]
                total += axis.shape.loss(np.minimum.reduceat(mine, starts), np.maximum.reduceat(mine, starts))
        return total


def _distinct(codes: np.ndarray, starts: np.ndarray, totals: np.ndarray) -> np.ndarray:
    sizes = np.diff(np.append(starts, len(codes)))
    classes = Classes(np.repeat(np.arange(len(sizes)), sizes), sizes)
    return distinct(tally(classes, codes, totals, np.ones_like(classes.ids)))


def spread_of(axes: Sequence[Axis]) -> Spread:
    """Lay out all rows of some axes.

    >>> from discreet.anonymity.generalising.axes import Line
    >>> ages = Axis(np.array([0, 1, 2, 2]), np.array([1, 1, 2]), Line(np.array([0, 0.25, 1])))
    >>> jobs = Axis(np.array([0, 1, 2, 1]), np.array([1, 2, 1]), Bag(3))
    >>> spread_of([ages, jobs]).losses(np.arange(4), np.array([0, 2])).tolist()
    [0.9166666666666666, 0.6666666666666666]
    """
    words: list[np.ndarray] = []
    fields: list[_Field | None] = []
    used = 0
    for axis in axes:
        if not isinstance(axis.shape, Bag) or used + axis.shape.width > _WORD * _MOST_WORDS:
            fields.append(None)
            continue
        end = used + axis.shape.width
        words += [np.zeros(len(axis.codes), np.uint64)] * (-(-end // _WORD) - len(words))
        masks = []
        for word in range(used // _WORD, len(words)):
            words[word] = words[word] | _bits(axis.codes, used - word * _WORD)
            masks.append((word, _mask(used - word * _WORD, end - word * _WORD)))
        fields.append(_Field(axis.shape, tuple(masks)))
        used = end
    return Spread(tuple(axes), tuple(axis.codes for axis in axes), tuple(words), tuple(fields))


def _bits(codes: np.ndarray, shift: int) -> np.ndarray:
    place = codes.astype(np.int64) + shift
    is_here = (place >= 0) & (place < _WORD)
    return np.where(is_here, np.uint64(1) << np.where(is_here, place, 0).astype(np.uint64), np.uint64(0))


def _mask(low: int, high: int) -> np.uint64:
    return np.uint64((1 << min(high, _WORD)) - (1 << max(low, 0)))
