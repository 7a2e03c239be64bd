"""The cost of an answer, given earlier answers.

cost_request      an epsilon, a rho or margins; its accuracy target and its record in the ledger
allocation        the shares of the cost among the totals of a query
release_history   earlier noisy totals of the same questions and data version, by any analyst
combined_release  several draws of the same totals as one table
release_plan      which totals need fresh noise, and the marginal cost
error_forecast    the margin of a column before it is released
accuracy          the smallest cost for given margins
automatic_bounds  contribution bounds chosen from released histograms
"""

from discreet.pricing.accuracy import Margins
from discreet.pricing.automatic_bounds import (
    ContributionEvidence,
    choose_bounds,
    contribution_evidence,
    missing_histograms,
    plan_evenly,
    plan_with_bounds,
    query_histograms,
    without_missing_histograms,
)
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
from discreet.pricing.release_history import ReleaseHistory, known_fingerprints, look_up_histories
from discreet.pricing.release_plan import ReleasePlan, plan_release

__all__ = [
    "AccuracyTarget",
    "CombinedRelease",
    "ContributionEvidence",
    "CostRequest",
    "Margins",
    "ReleaseHistory",
    "ReleasePiece",
    "ReleasePlan",
    "accuracy_target",
    "affordable_note",
    "choose_bounds",
    "combine_draws",
    "contribution_evidence",
    "data_version",
    "known_fingerprints",
    "look_up_histories",
    "margin_times_count",
    "missing_histograms",
    "noise_type_for",
    "over_budget_note",
    "plan_evenly",
    "plan_release",
    "plan_with_bounds",
    "query_histograms",
    "read_cost_request",
    "receipt_for_key",
    "record_text",
    "recorded_request",
    "request_record",
    "total_cost",
    "without_missing_histograms",
]
