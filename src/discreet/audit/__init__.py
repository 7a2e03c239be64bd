"""Audits: lower bounds on the epsilon of anything that claims one, with stated confidence.

Imported when it is first used; it needs scipy (`pip install 'discreet[attacks]'`).

    measure        many runs on two data sets: the least epsilon that they prove
    search         the same, on the worst neighbours that can be found; nearby makes some
    exact, law_of  laws that are known, or found by trying all dice
    one_run        canaries in a single run
    sensitivity    how far neighbours really move a statistic
    audit_policy   everything that a policy promises, on made-up data; write_page makes a report of it
"""

from discreet.audit.canaries import one_run
from discreet.audit.counting import Share
from discreet.audit.exact_laws import exact, law_of
from discreet.audit.measuring import measure
from discreet.audit.moving import Moved, sensitivity
from discreet.audit.nearby import nearby
from discreet.audit.outcomes import Batch, Raised
from discreet.audit.policy_audit import audit_policy
from discreet.audit.policy_page import write_page
from discreet.audit.policy_result import PolicyAudit
from discreet.audit.result import AuditResult
from discreet.audit.searching import search

__all__ = [
    "AuditResult",
    "Batch",
    "Moved",
    "PolicyAudit",
    "Raised",
    "Share",
    "audit_policy",
    "exact",
    "law_of",
    "measure",
    "nearby",
    "one_run",
    "search",
    "sensitivity",
    "write_page",
]
