"""Audits: lower bounds on the epsilon of anything that claims one, with stated confidence.

Imported when it is first used; it needs scipy (`pip install 'discreet[attacks]'`).

    measure        many runs on two data sets: the least epsilon that they prove
    search         the same, on the worst neighbours that can be found; nearby makes some
    exact, law_of  laws that are known, or found by trying all dice
    one_run        canaries in a single run
    sensitivity    how far neighbours really move a statistic
    audit_policy   everything that a policy promises, on made-up data; write_page makes a report of it
"""

from discreet.audit.binomial import Proportion
from discreet.audit.black_box import measure
from discreet.audit.canaries import one_run
from discreet.audit.exact_distribution import distribution_of, exact
from discreet.audit.neighbour_search import search
from discreet.audit.neighbours import EmpiricalSensitivity, edge_case_neighbours, sensitivity
from discreet.audit.policy.audit import audit_policy
from discreet.audit.policy.html_report import write_report
from discreet.audit.policy.result import PolicyAudit
from discreet.audit.result import AuditResult
from discreet.audit.runs import Batch, ErrorOutcome

__all__ = [
    "AuditResult",
    "Batch",
    "EmpiricalSensitivity",
    "ErrorOutcome",
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
