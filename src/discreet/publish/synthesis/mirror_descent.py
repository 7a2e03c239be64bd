"""Fits a graphical model to noisy tables: accelerated mirror descent on its expected counts."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from discreet.publish.synthesis.graphical_model import GraphicalModel
from discreet.publish.synthesis.junction_tree import Columns
from discreet.publish.synthesis.noisy_tables import NoisyTable

_STEP_GROWTH = 1.03  # after a step that lowers the loss
_STEP_CUT = 0.5  # after one that does not
_CONVERGED = 1e-9  # a relative decrease of the loss that is not worth another step

_Tables = Mapping[Columns, np.ndarray]


class _Point(NamedTuple):
    """A model, its loss, and the derivatives of the loss with respect to the expected counts."""

    model: GraphicalModel
    loss: float
    gradient: _Tables


def fit(model: GraphicalModel, measured: Mapping[Columns, NoisyTable], steps: int) -> GraphicalModel:
    """Return a model whose expected counts are close to noisy tables: squared errors over variances are minimised.

    A step subtracts the gradient from the log factors, with Nesterov's momentum. If the loss would rise, it is taken
    back, and the search goes on without momentum and in smaller steps. Few steps are also a safeguard: the
    structure of the data is fitted before the noise is. Factors of tables that were not measured stay as they are.

    >>> from discreet.publish.synthesis.graphical_model import independent_model
    >>> skewed = {(0,): NoisyTable(np.array([30.0, 10.0]), variance=4.0)}
    >>> fit(independent_model([2, 3], 40), skewed, steps=100).table([0]).round(2)
    array([30., 10.])
    """
    start = {table: np.zeros_like(noisy.counts, dtype=float) for table, noisy in measured.items()}
    point = _evaluate(model.with_factors({**start, **model.factors}), measured)
    previous, speed = point.model.factors, 0
    step = 1 / (model.total * sum(1 / noisy.variance for noisy in measured.values()))  # never too long
    for _ in range(steps):
        factors = point.model.factors
        descended = {**factors, **{table: factors[table] - step * slope for table, slope in point.gradient.items()}}
        momentum = speed / (speed + 3)
        extrapolated = {table: new + momentum * (new - previous[table]) for table, new in descended.items()}
        trial = _evaluate(point.model.with_factors(extrapolated), measured)
        if trial.loss < point.loss:
            decrease = point.loss - trial.loss
            point, previous, speed, step = trial, descended, speed + 1, step * _STEP_GROWTH
            if decrease <= _CONVERGED * point.loss:
                break
        else:
            previous, speed, step = point.model.factors, 0, step * _STEP_CUT
    return point.model


def _evaluate(model: GraphicalModel, measured: Mapping[Columns, NoisyTable]) -> _Point:
    residuals = {table: expected - measured[table].counts for table, expected in model.tables_of(measured).items()}
    gradient = {table: residual / measured[table].variance for table, residual in residuals.items()}
    loss = sum(float(np.vdot(residual, gradient[table])) for table, residual in residuals.items()) / 2
    return _Point(model, loss, gradient)
