"""From words to questions: SQL is read, resolved to the kernel's algebra, and what is above the release is kept apart.

text, places     words to a syntax tree; where in the text something stands
read, separate   the passes; which SELECT is the release: private rows below it, noisy numbers above
values/          expressions on single rows: their meaning, ranges and domains
rows/            the SELECTs below: tables, joins, conditions, subqueries, private rows kept apart by unit
asked/           the SELECT that is the release: groups, aggregates, limits, as one question to the kernel
plan, price      the result; what it costs, shared among its totals;  estimates: numbers with margins
after/           what follows the release, on noisy numbers
"""

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
from discreet.sql.price import largest_epsilon, price_of, split
from discreet.sql.read import PASSES, read
from discreet.sql.rows.leaves import Publics, kernel_type, scan_of

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
    "largest_epsilon",
    "price_of",
    "read",
    "scan_of",
    "schema",
    "split",
]
