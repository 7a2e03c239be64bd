"""An audit of the policy, run in a thread on dummy data, with its progress."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.audit.policy.result import PolicyAudit
from discreet.policy import Policy

RUNS = 500  # of each query; the command line runs more


@dataclass(frozen=True)
class AuditProgress:
    """How far an audit is: what it does, and how much of that is done."""

    label: str
    done: int
    total: int


class AuditRunner:
    """Runs one audit at a time; it opens neither the data nor the ledger.

    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> AuditRunner(policy).progress is None
    True
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._thread: threading.Thread | None = None
        self.progress: AuditProgress | None = None
        self.result: PolicyAudit | None = None
        self.problem = ""

    @property
    def is_running(self) -> bool:
        """Whether an audit is running."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, runs: int = RUNS) -> None:
        """Start an audit, unless one is running."""
        if self.is_running:
            return
        self.result, self.problem, self.progress = None, "", AuditProgress("preparing", 0, 1)
        self._thread = threading.Thread(target=self._run, args=(runs,), name="audit", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Wait until the audit has ended, at most this long."""
        if self._thread:
            self._thread.join(seconds)

    def _run(self, runs: int) -> None:
        try:
            from discreet.audit.policy.audit import audit_policy  # noqa: PLC0415 - with it come extras

            self.result = audit_policy(self._policy, runs=runs, track=self._track)
        except ImportError as error:
            self.problem = f"audits need {error.name}, which is not installed: pip install 'discreet[attacks]'."
        except Exception as error:  # noqa: BLE001 - dummy data: nothing to hide from the owner
            self.problem = str(error)

    def _track(self, items: Sequence[Any], label: str) -> Iterable[Any]:
        return self._counted(items, label)

    def _counted(self, items: Sequence[Any], label: str) -> Iterator[Any]:
        for number, item in enumerate(items):
            self.progress = AuditProgress(label, number, len(items))
            yield item
        self.progress = AuditProgress(label, len(items), max(1, len(items)))
