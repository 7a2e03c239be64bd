"""SQL over released tables: an allow-list, a sandbox, and the margins of derived columns."""

from discreet.postprocess.plan import (
    DRAW,
    ROW,
    ColumnOrigin,
    ConstantOrigin,
    MixedOrigin,
    PostprocessPlan,
    RowWiseOrigin,
    compile_query,
    margins,
    run,
    run_with_margins,
)

__all__ = [
    "DRAW",
    "ROW",
    "ColumnOrigin",
    "ConstantOrigin",
    "MixedOrigin",
    "PostprocessPlan",
    "RowWiseOrigin",
    "compile_query",
    "margins",
    "run",
    "run_with_margins",
]
