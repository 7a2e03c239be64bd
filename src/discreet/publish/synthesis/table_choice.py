"""Chooses the tables to measure from noisy distances, and divides a release among them."""

import math
from collections.abc import Iterable, Mapping, Sequence

from discreet.publish.synthesis.junction_tree import Columns, junction_tree, table_cells
from discreet.publish.synthesis.merged_columns import ColumnSet
from discreet.publish.synthesis.schedule import SynthesisSettings

_MEAN_ABSOLUTE = {1: math.sqrt(1 / 2), 2: math.sqrt(2 / math.pi)}  # of noise with a standard deviation of one


def table_weights(tables: Sequence[Columns], sizes: Sequence[int], settings: SynthesisSettings) -> list[float]:
    """Return the weights at which the noise of all cells together is least: larger tables get more.

    >>> [round(weight, 3) for weight in table_weights([(0,), (1,)], [1, 64], SynthesisSettings())]
    [0.243, 0.97]
    """
    weights = [table_cells(table, sizes) ** (1 / (settings.norm + 1)) for table in tables]
    length = sum(weight**settings.norm for weight in weights) ** (1 / settings.norm)
    return [weight / length for weight in weights]


def choose_tables(  # noqa: PLR0913, PLR0917 - what is known, and what limits the choice
    candidates: Mapping[Columns, Sequence[Columns]],
    distances: Mapping[Columns, float],
    deviation: float,
    present: Iterable[Columns],
    columns: ColumnSet,
    settings: SynthesisSettings,
) -> list[Columns]:
    """Return tables, at most one for a pair, whose distances from the model exceed the error of measuring them together.

    At their best weights, tables of n cells have an expected absolute error of c·W^(1 + 1/norm) in all, where W is
    the sum of n^(norm/(norm+1)). So a table is taken if the sum of the distances grows by more than this error, and
    the junction tree stays within its limit. Tables with a large distance for their weight come first. A table of
    merged columns gives way to that of the columns themselves if what this adds is worth its error.
    """
    sizes, present = columns.sizes, [*present]
    weights = dict(zip(distances, table_weights([*distances], sizes, settings), strict=True))
    pair_of = {table: pair for pair, tables in candidates.items() for table in tables}
    chosen: dict[Columns, Columns] = {}
    error = 0.0
    for table in sorted(distances, key=lambda table: distances[table] / weights[table], reverse=True):
        pair = pair_of[table]
        gain = distances[table] - (distances[chosen[pair]] if pair in chosen else 0.0)
        tables = [*(chosen | {pair: table}).values()]
        new_error = deviation * _error_of(tables, sizes, settings)
        if gain > new_error - error and _tree_cells([*present, *tables], columns) <= settings.model_cells:
            chosen[pair], error = table, new_error
    return [*chosen.values()]


def _tree_cells(tables: Sequence[Columns], columns: ColumnSet) -> int:
    """Return the number of cells of a junction tree with these tables, and the links of merged columns."""
    return junction_tree(columns.sizes, [*tables, *columns.links_of(tables)]).cells(columns.sizes)


def _error_of(tables: Sequence[Columns], sizes: Sequence[int], settings: SynthesisSettings) -> float:
    """Return the expected absolute error of all cells, for noise with a standard deviation of one."""
    total = sum(table_cells(table, sizes) ** (settings.norm / (settings.norm + 1)) for table in tables)
    return float(_MEAN_ABSOLUTE[settings.norm] * total ** (1 + 1 / settings.norm))
