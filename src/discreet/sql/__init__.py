"""From words to questions: SQL is resolved to the kernel's algebra, and what is above the release is kept apart.

text, places       words to a syntax tree; where in the text something stands
separate           which SELECT is the release: private rows below it, noisy numbers above
sources, leaves    the tables of FROM;  scope, outputs, naming: what names mean there
joins, meeting     private rows with public tables, and with other rows of the same unit;  owners: whose rows they are
conditions, semi   WHERE, IN and EXISTS;  narrow: what a condition tells about ranges and groups
projection, perunit, folds, combine, publics     other kinds of SELECT that keep private rows apart by unit
groups, aggregates, totals, grids, limits        the SELECT that is a release: one question to the kernel
expressions, functions, ranges, domains          expressions on single rows, and what is publicly known of them
plan, read         the result, and the passes that lead to it;  price, estimates: what it costs, how exact it is
after              what follows the release
"""

from discreet.sql.leaves import Publics, kernel_type, scan_of
from discreet.sql.plan import (
    Averaged,
    Counted,
    Measure,
    Part,
    Plan,
    Recipe,
    Spread,
    Summed,
    assemble,
    schema,
)
from discreet.sql.price import price_of, split
from discreet.sql.read import PASSES, read

__all__ = [
    "PASSES",
    "Averaged",
    "Counted",
    "Measure",
    "Part",
    "Plan",
    "Publics",
    "Recipe",
    "Spread",
    "Summed",
    "assemble",
    "kernel_type",
    "price_of",
    "read",
    "scan_of",
    "schema",
    "split",
]
