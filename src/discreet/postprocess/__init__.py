"""Post-processing: SQL over released tables, by an allow-list and in a sandbox, with margins of derived columns."""

from discreet.postprocess.derived_margins import DRAW, ROW
from discreet.postprocess.plan import PostprocessPlan, PostprocessResult, compile_query, run, run_with_margins
from discreet.postprocess.sql_expression import ColumnOrigin, ConstantOrigin, MixedOrigin, RowWiseOrigin

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
    "run",
    "run_with_margins",
]
