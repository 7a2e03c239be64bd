"""Run the kernel's SELECTs and assemble the exact totals of a question."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from discreet.kernel.grid import Grid
from discreet.kernel.histogram_tree import CellCounts
from discreet.kernel.question import GroupKey, Question, SelectedGroups
from discreet.kernel.release import EngineTotals
from discreet.kernel.sqlgen.dialect import Dialect
from discreet.kernel.sqlgen.question_sql import write_selects
from discreet.kernel.totals import HistogramTree

RunSelect = Callable[[str], pa.Table]


def compute_totals(question: Question, run: RunSelect, dialect: Dialect) -> EngineTotals:
    """Compute the totals of a question with an engine that runs SELECTs and returns Arrow tables."""
    select_by_total = write_selects(question, dialect)
    keys, columns, cell_counts = (
        _GroupKeys(question),
        dict[int, tuple[np.ndarray, np.ndarray]](),
        dict[int, CellCounts](),
    )
    for index, text in select_by_total.items():
        table = run(text)
        rows, width = keys.group_indices(table), len(question.by)
        if index is None:
            columns |= {int(name[1:]): (rows, table.column(name).to_numpy()) for name in table.column_names[width:]}
        elif isinstance(total := question.totals[index], HistogramTree):
            cell_counts[index] = _cell_counts(total, rows, table)
        else:
            columns[index] = rows, table.column("t0").to_numpy()
    values = np.zeros((len(keys), len(question.totals)), np.int64)
    for index, (rows, column) in columns.items():
        values[rows[rows >= 0], index] = column[rows >= 0]
    return EngineTotals(keys.in_order, values, cell_counts)


class _GroupKeys:
    """The group keys read so far; with partition selection, only those of the first result are used."""

    def __init__(self, question: Question) -> None:
        self._width = len(question.by)
        self._discovers_groups = isinstance(question.groups, SelectedGroups)
        self._index_by_key: dict[GroupKey, int] = {}
        self._complete = False

    def __len__(self) -> int:
        return len(self._index_by_key)

    @property
    def in_order(self) -> list[GroupKey]:
        return list(self._index_by_key)

    def group_indices(self, table: pa.Table) -> np.ndarray:
        """Return the index of each row's key among all keys, or -1 for keys that are not used."""
        if not self._width:
            self._index_by_key.setdefault((), 0)
            return np.zeros(table.num_rows, np.int64)
        complete, self._complete = self._complete, self._discovers_groups
        codes = np.zeros(table.num_rows, np.int64)
        for column in table.columns[: self._width]:
            encoded = column.combine_chunks().dictionary_encode("encode")
            dense_codes = np.unique(codes, return_inverse=True)[1] if len(codes) else codes
            codes = dense_codes * (len(encoded.dictionary) + 1) + encoded.indices.to_numpy()
        _, first_rows, inverse = np.unique(codes, return_index=True, return_inverse=True)
        sample = table.select(range(self._width)).take(pa.array(first_rows))
        keys = zip(*(column.to_pylist() for column in sample.columns), strict=True)
        indices = [
            self._index_by_key.get(key, -1) if complete else self._index_by_key.setdefault(key, len(self))
            for key in keys
        ]
        return np.array(indices, np.int64)[inverse] if indices else codes


def _cell_counts(total: HistogramTree, groups: np.ndarray, table: pa.Table) -> CellCounts:
    weights, counted = table.column("t").to_numpy(), groups >= 0
    if isinstance(total.domain, Grid):
        cells = table.column("v").to_numpy() - total.domain.first
    else:
        index_by_value = {value: index for index, value in enumerate(total.domain)}
        encoded = table.column("v").combine_chunks().dictionary_encode()
        cell_by_code = np.array([index_by_value[value] for value in encoded.dictionary.to_pylist()], np.int64)
        cells = cell_by_code[encoded.indices.to_numpy()] if len(cell_by_code) else np.zeros(0, np.int64)
    return CellCounts(groups[counted], cells[counted].astype(np.int64), weights[counted].astype(np.int64))
