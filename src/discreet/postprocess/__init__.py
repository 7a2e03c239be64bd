"""Post-processing: SQL over released tables, by an allow-list and in a sandbox, with margins of derived columns."""

from discreet.postprocess.plan import (
    DRAW,
    ROW,
    ColumnOrigin,
    ConstantOrigin,
    MixedOrigin,
    PostprocessPlan,
    PostprocessResult,
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
    "PostprocessResult",
    "RowWiseOrigin",
    "compile_query",
    "margins",
    "run",
    "run_with_margins",
]
