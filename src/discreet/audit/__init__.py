"""Audits: lower bounds on the epsilon of anything that claims one, with stated confidence.

Imported when it is first used; it needs scipy (`pip install 'discreet[attacks]'`).

    measure          lower bound on epsilon from many runs on two neighbouring data sets
    search           the same on the worst of many neighbours, such as those of edge_case_neighbours
    exact            epsilon of two known distributions; distribution_of enumerates that of a small algorithm
    one_run          lower bound from canaries in a single training run
    FitAdversary     a mechanism for measure: what all noisy sums of a fit disclose about which data set it was
    sensitivity      largest change of a statistic between neighbours
    audit_policy     all guarantees of a policy, on dummy data; write_report writes the result as a page
"""

from discreet.audit.black_box import measure
from discreet.audit.canaries import one_run
from discreet.audit.exact_distribution import distribution_of, exact
from discreet.audit.fit_adversary import FitAdversary
from discreet.audit.hypothesis_tests import Proportion
from discreet.audit.neighbours import EmpiricalSensitivity, edge_case_neighbours, search, sensitivity
from discreet.audit.policy.audit import audit_policy
from discreet.audit.policy.result import PolicyAudit, write_report
from discreet.audit.result import AuditResult
from discreet.audit.runs import Batch, ErrorOutcome

__all__ = [
    "AuditResult",
    "Batch",
    "EmpiricalSensitivity",
    "ErrorOutcome",
    "FitAdversary",
    "PolicyAudit",
    "Proportion",
    "audit_policy",
    "distribution_of",
    "edge_case_neighbours",
    "exact",
    "measure",
    "one_run",
    "search",
    "sensitivity",
    "write_report",
]
