"""Tables that add up: noise scales for a family of tables, exact least squares with covariances, whole numbers.

A family has axes (columns with codes, some with coarser levels) and tables: the counts by some axes, each at a level.
Every table is released with noise of its own, or follows from others. Least squares turns the noisy tables into
unbiased tables that add up, with the variance of every cell.
"""

from discreet.publish.marginals.axes import Axis, Table, coarsenings, table_shape
from discreet.publish.marginals.consistent_tables import ConsistentTables, Measurement, least_squares
from discreet.publish.marginals.covariances import Covariances, forecast
from discreet.publish.marginals.noise_margins import Noise, margin_factor
from discreet.publish.marginals.scales import choose_scales, least_scales
from discreet.publish.marginals.whole_numbers import whole_tables

__all__ = [
    "Axis",
    "ConsistentTables",
    "Covariances",
    "Measurement",
    "Noise",
    "Table",
    "choose_scales",
    "coarsenings",
    "forecast",
    "least_scales",
    "least_squares",
    "margin_factor",
    "table_shape",
    "whole_tables",
]
