"""A measurer with exact tables in memory and noise of the right scale."""

import math

import numpy as np


class SimulatedMeasurer:
    """Answers the releases of a schedule for rows of codes, of which `radius` at most belong to one unit."""

    def __init__(self, rows, sizes, schedule, budget, *, norm=2, radius=1, generator=None):
        self.rows, self.sizes, self.schedule, self.norm = rows, sizes, schedule, norm
        self.generator = np.random.default_rng() if generator is None else generator
        self.deviations = [deviation(release, budget, norm, radius) for release in schedule]
        self.calls = []

    def merge(self, merged):
        self.rows = np.column_stack([self.rows, *(column.groups[self.rows[:, column.source]] for column in merged)])
        self.sizes = [*self.sizes, *(int(column.groups.max()) + 1 for column in merged)]

    def tables(self, tables, weights):
        deviation = self._next("tables", 1)
        assert math.isclose(sum(weight**self.norm for weight in weights), 1)
        return [
            self.exact(table) + self.noise(deviation / weight, [self.sizes[column] for column in table])
            for table, weight in zip(tables, weights, strict=True)
        ]

    def distances(self, tables, models):
        deviation = self._next("distances", len(tables))
        assert all(np.issubdtype(model.dtype, np.integer) for model in models)
        exact = [np.abs(self.exact(table) - model).sum() for table, model in zip(tables, models, strict=True)]
        return np.array(exact) + self.noise(deviation, len(tables))

    def exact(self, table):
        shape = [self.sizes[column] for column in table]
        cells = np.ravel_multi_index(tuple(self.rows[:, column] for column in table), shape)
        return np.bincount(cells, minlength=math.prod(shape)).reshape(shape)

    def noise(self, deviation, shape):
        if self.norm == 1:
            return np.rint(self.generator.laplace(0, deviation / math.sqrt(2), shape))
        return np.rint(self.generator.normal(0, deviation, shape))

    def _next(self, kind, count):
        release = self.schedule[len(self.calls)]
        self.calls.append((kind, count))
        assert (release.kind, release.count) == (kind, count)
        return self.deviations[len(self.calls) - 1]


def deviation(release, budget, norm, radius):
    """Return the standard deviation that a share of rho buys, or of epsilon in the norm 1."""
    share = float(release.share) * budget
    return radius * (math.sqrt(release.count / (2 * share)) if norm == 2 else math.sqrt(2) * release.count / share)
