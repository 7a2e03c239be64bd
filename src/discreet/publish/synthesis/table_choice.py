"""Chooses the tables to measure from noisy distances, and divides a release among them."""

import math
from collections.abc import Iterable, Mapping, Sequence

from discreet.publish.synthesis.junction_tree import Columns, junction_tree, table_cells
from discreet.publish.synthesis.schedule import SynthesisSettings

_MEAN_ABSOLUTE = {1: math.sqrt(1 / 2), 2: math.sqrt(2 / math.pi)}  # of noise with a standard deviation of one


def table_weights(tables: Sequence[Columns], sizes: Sequence[int], settings: SynthesisSettings) -> list[float]:
    """Return the weights at which the noise of all cells together is least: larger tables get more.

    >>> table_weights([(0,), (1,)], [1, 64], SynthesisSettings())
    [0.24253562503633297, 0.9701425001453319]
    """
    weights = [table_cells(table, sizes) ** (1 / (settings.norm + 1)) for table in tables]
    length = sum(weight**settings.norm for weight in weights) ** (1 / settings.norm)
    return [weight / length for weight in weights]


def choose_tables(
    distances: Mapping[Columns, float],
    deviation: float,
    present: Iterable[Columns],
    sizes: Sequence[int],
    settings: SynthesisSettings,
) -> list[Columns]:
    """Return tables whose distances from the model exceed the expected error of measuring them together.

    Measured at their best weights, tables with n cells have an expected absolute error of c·W^(1 + 1/norm) in all,
    where W is the sum of n^(norm/(norm+1)). So tables are tried in the order of their distance for what they add
    to W, and taken if the sum of the distances grows by more than the error and the junction tree stays within its limit.
    """
    exponent = settings.norm / (settings.norm + 1)
    costs = {table: table_cells(table, sizes) ** exponent for table in distances}
    chosen: list[Columns] = []
    cost = error = 0.0
    for table in sorted(distances, key=lambda table: distances[table] / costs[table], reverse=True):
        with_it = _MEAN_ABSOLUTE[settings.norm] * deviation * (cost + costs[table]) ** (1 + 1 / settings.norm)
        if distances[table] <= with_it - error:
            continue
        if junction_tree(sizes, [*present, *chosen, table]).cells(sizes) <= settings.model_cells:
            chosen.append(table)
            cost, error = cost + costs[table], with_it
    return chosen
