"""From the kernel's SELECTs to totals: one for the counts and sums, and one for each total that needs its own."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.kernel.dialect import Dialect, Spread
from discreet.kernel.gather import selects
from discreet.kernel.grid import Grid
from discreet.kernel.question import Cells, Discover, Question, Touched
from discreet.kernel.release import Key, Totals
from discreet.kernel.tree import Tally

Run = Callable[[str], pa.Table]


def totals_of(question: Question, run: Run, dialect: Dialect) -> Totals:
    """Compute the totals of a question with an engine that runs SELECTs and returns Arrow tables."""
    texts = selects(question, dialect)
    keys, columns, tallies = _Keys(question), dict[int, tuple[np.ndarray, np.ndarray]](), dict[int, Tally]()
    if None in texts:
        found = _whole_counts(question, run(texts.pop(None)), dialect)
        rows, width = keys.places(found), len(question.by)
        columns |= {int(name[1:]): (rows, found.column(name).to_numpy()) for name in found.column_names[width:]}
    for place, text in texts.items():
        found, total = run(text), question.totals[place or 0]
        rows = keys.places(found)
        if isinstance(total, Cells):
            tallies[place or 0] = _tally(total, rows, found)
        else:
            columns[place or 0] = rows, found.column("t0").to_numpy()
    values = np.zeros((len(keys), len(question.totals)), np.int64)
    for place, (rows, column) in columns.items():
        values[rows[rows >= 0], place] = column[rows >= 0]
    return Totals(keys.listed, values, tallies)


def _whole_counts(question: Question, found: pa.Table, dialect: Dialect) -> pa.Table:
    """Add up what was counted over all groups, each unit in the first of its own; then leave out unvoted groups."""
    touched = [place for place, total in enumerate(question.totals) if isinstance(total, Touched)]
    if dialect.spread is Spread.JOIN or not touched or not question.bounded:
        return found
    for place in touched:
        name = f"t{place}"
        whole = np.full(found.num_rows, found.column(name).to_numpy().sum(), np.int64)
        found = found.set_column(found.column_names.index(name), name, pa.array(whole))
    return found.filter(pc.greater(found.column("t0"), 0)) if isinstance(question.groups, Discover) else found


class _Keys:
    """The groups that were found so far; of groups that are discovered, only those of the first result count."""

    def __init__(self, question: Question) -> None:
        self._width = len(question.by)
        self._discovers = isinstance(question.groups, Discover)
        self._places: dict[Key, int] = {}
        self._complete = False

    def __len__(self) -> int:
        return len(self._places)

    @property
    def listed(self) -> list[Key]:
        return list(self._places)

    def places(self, found: pa.Table) -> np.ndarray:
        """Return the place of every row's key among all keys, -1 for those that do not count."""
        if not self._width:
            self._places.setdefault((), 0)
            return np.zeros(found.num_rows, np.int64)
        complete, self._complete = self._complete, self._discovers
        codes = np.zeros(found.num_rows, np.int64)
        for column in found.columns[: self._width]:
            encoded = column.combine_chunks().dictionary_encode("encode")
            numbers = np.unique(codes, return_inverse=True)[1] if len(codes) else codes
            codes = numbers * (len(encoded.dictionary) + 1) + encoded.indices.to_numpy()
        _, where, inverse = np.unique(codes, return_index=True, return_inverse=True)
        sample = found.select(range(self._width)).take(pa.array(where))
        keys = zip(*(column.to_pylist() for column in sample.columns), strict=True)
        known = [self._places.get(key, -1) if complete else self._places.setdefault(key, len(self)) for key in keys]
        return np.array(known, np.int64)[inverse] if known else codes


def _tally(total: Cells, groups: np.ndarray, found: pa.Table) -> Tally:
    weights, kept = found.column("t").to_numpy(), groups >= 0
    if isinstance(total.places, Grid):
        cells = found.column("v").to_numpy() - total.first
    else:
        numbers = {value: place for place, value in enumerate(total.places)}
        encoded = found.column("v").combine_chunks().dictionary_encode()
        names = np.array([numbers[value] for value in encoded.dictionary.to_pylist()], np.int64)
        cells = names[encoded.indices.to_numpy()] if len(names) else np.zeros(0, np.int64)
    return Tally(groups[kept], cells[kept].astype(np.int64), weights[kept].astype(np.int64))
