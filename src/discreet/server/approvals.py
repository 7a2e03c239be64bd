"""Questions and plans that wait for the owner's approval, beside the ledger; approvals are recorded in the ledger."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from discreet.curator.data_stamp import path_beside_ledger
from discreet.kernel.errors import PolicyError, Refused
from discreet.kernel.event import canonical_json
from discreet.kernel.ledger import Ledger
from discreet.policy import Policy
from discreet.server.errors import ApprovalNeeded
from discreet.server.owner_file import OwnerFile

_MAX_PENDING = 1000
_MAX_PENDING_OF_ONE = 50


@dataclass(frozen=True)
class Approval:
    """A question or a publication plan of an analyst, its cost, and whether the owner has approved it.

    >>> Approval("5e1f", "ana", "question", "SELECT 1", "epsilon 2", "2026-11-19T12:00:00+00:00").is_approved
    False
    """

    id: str
    by: str
    kind: str  # "question" or "plan"
    text: str
    cost: str
    time: str
    purpose: str = ""
    digest: str = ""
    is_approved: bool = False


class Approvals:
    """The approvals of a policy that were asked for and not used yet.

    >>> from discreet.ledger_sqlite import memory_ledger
    >>> from discreet.kernel.loss import Budget
    >>> approvals, ledger = Approvals(None), memory_ledger(name="demo", budget=Budget(1))
    >>> try:
    ...     approvals.require("ana", "SELECT 1", {"epsilon": "2"}, cost="epsilon 2")
    ... except ApprovalNeeded as refusal:
    ...     approvals.approve(ledger, refusal.approval)
    >>> approvals.require("ana", "SELECT 1", {"epsilon": "2"}, cost="epsilon 2").is_approved
    True
    """

    def __init__(self, policy: Policy | None) -> None:
        in_memory = policy is None or policy.data.ledger == ":memory:"
        path = None if in_memory or policy is None else path_beside_ledger(policy, ".approvals")
        self._file = OwnerFile(path, "approvals", list)

    def waiting(self) -> tuple[Approval, ...]:
        """Return all that wait or were approved and not used, oldest first."""
        return tuple(Approval(**values) for values in self._file.read())

    def require(self, by: str, text: str, request: Mapping[str, str], *, cost: str, purpose: str = "") -> Approval:
        """Return the owner's approval of exactly this request; without one, store the request and refuse."""
        kind = request.get("kind", "question")
        digest = sha256(canonical_json([by, text, dict(request), purpose]).encode()).hexdigest()
        known = next((each for each in self.waiting() if each.digest == digest), None)
        if known is None:
            time = datetime.now(UTC).isoformat(timespec="seconds")
            known = Approval(secrets.token_hex(8), by, kind, text, cost, time, purpose, digest)
            self._file.change(lambda values: _with_pending(values, known))
        if not known.is_approved:
            raise ApprovalNeeded(
                f"approval: this {kind} costs {cost}, so the owner must approve it first (request {known.id}). Ask "
                "again once it is approved. Nothing was charged.",
                known.id,
            )
        return known

    def approve(self, ledger: Ledger, identifier: str) -> None:
        """Approve a request, once, and record the act in the ledger."""
        approval = self._find(identifier)
        act = {
            "act": f"{approval.kind} approved",
            "name": approval.by,
            "cost": approval.cost,
            "digest": approval.digest,
        }
        ledger.record_act(act | ({"purpose": approval.purpose} if approval.purpose else {}))
        self._edit(identifier, [asdict(replace(approval, is_approved=True))])

    def reject(self, ledger: Ledger, identifier: str) -> None:
        """Remove a request, and record the act in the ledger."""
        approval = self._find(identifier)
        ledger.record_act({"act": f"{approval.kind} rejected", "name": approval.by, "digest": approval.digest})
        self._edit(identifier, [])

    @contextmanager
    def used(self, approval: Approval) -> Iterator[None]:
        """Use an approval up before its request is charged; a refusal, which charges nothing, gives it back."""
        self._edit(approval.id, [])
        try:
            yield
        except (Refused, PolicyError):
            self._file.change(lambda values: [*values, asdict(approval)])
            raise

    def _find(self, identifier: str) -> Approval:
        for approval in self.waiting():
            if approval.id == identifier:
                return approval
        raise _not_waiting(identifier)

    def _edit(self, identifier: str, replacement: list[dict[str, Any]]) -> None:
        """Replace a request; PolicyError if it is not there any more, as another process may have used it."""

        def edit(values: list[dict[str, Any]]) -> list[dict[str, Any]]:
            if all(each["id"] != identifier for each in values):
                raise _not_waiting(identifier)
            return [new for each in values for new in (replacement if each["id"] == identifier else [each])]

        self._file.change(edit)


def _not_waiting(identifier: str) -> PolicyError:
    return PolicyError(f"approval: no request {identifier[:40]!r} is waiting.")


def _with_pending(values: list[dict[str, Any]], approval: Approval) -> list[dict[str, Any]]:
    if any(each["digest"] == approval.digest for each in values):
        return values  # stored at the same moment by another process
    if len(values) >= _MAX_PENDING or sum(each["by"] == approval.by for each in values) >= _MAX_PENDING_OF_ONE:
        raise Refused("approval: too many requests are waiting for approval. Ask the owner to decide on them first.")
    return [*values, asdict(approval)]
