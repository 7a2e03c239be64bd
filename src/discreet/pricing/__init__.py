"""Cost requests, release history, release plans and accuracy targets: what an answer costs, given earlier ones.

draws      earlier draws of the same totals: the same rows, groups and limits, of the same version, whoever asked
combining  makes one table of several draws
owing      says what has to be drawn anew for a price, and what that costs
foresight  how exact a column will be, before anything is asked
accuracy   from margins to the least price
asked      what was asked for, in whatever way it was said;  record: how the ledger keeps it
"""

from discreet.pricing.accuracy import Margins
from discreet.pricing.combined_release import CombinedRelease, ReleasePiece, combine_draws, total_cost
from discreet.pricing.cost_request import (
    AccuracyTarget,
    CostRequest,
    accuracy_target,
    affordable_note,
    data_version,
    noise_type_for,
    over_budget_note,
    read_cost_request,
    receipt_for_key,
    record_text,
    recorded_request,
    request_record,
)
from discreet.pricing.error_forecast import margin_times_count
from discreet.pricing.release_history import ReleaseHistory, look_up_histories
from discreet.pricing.release_plan import ReleasePlan, plan_release

__all__ = [
    "AccuracyTarget",
    "CombinedRelease",
    "CostRequest",
    "Margins",
    "ReleaseHistory",
    "ReleasePiece",
    "ReleasePlan",
    "accuracy_target",
    "affordable_note",
    "combine_draws",
    "data_version",
    "look_up_histories",
    "margin_times_count",
    "noise_type_for",
    "over_budget_note",
    "plan_release",
    "read_cost_request",
    "receipt_for_key",
    "record_text",
    "recorded_request",
    "request_record",
    "total_cost",
]
