"""SQL above the release: what is computed from noisy tables, and the margins of the result."""

from discreet.sql.after.answer import (
    DRAW,
    ROW,
    After,
    Carried,
    Constant,
    Mixed,
    RowWise,
    margins,
    plan,
    run,
    run_with_margins,
)

__all__ = [
    "DRAW",
    "ROW",
    "After",
    "Carried",
    "Constant",
    "Mixed",
    "RowWise",
    "margins",
    "plan",
    "run",
    "run_with_margins",
]
