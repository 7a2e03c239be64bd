"""Stop answering after too many charged queries have failed, until the owner acknowledges them."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta

from discreet.kernel.errors import Failed, LedgerError, Refused
from discreet.kernel.ledger import Ledger
from discreet.policy import Policy

GRACE_SECONDS = 60  # added to the engine's time limit; a query still unsettled after both has failed


class CircuitBreaker:
    """Counts the charged queries that failed, in this process and, judging by their age, in others."""

    def __init__(self, policy: Policy, ledger: Ledger, seconds: float) -> None:
        self._policy, self._ledger = policy, ledger
        self._timeout = timedelta(seconds=seconds + GRACE_SECONDS)
        self._failed_ids: set[str] = set()
        self._record_pending = False  # whether a failure could not be recorded because the ledger was unreadable

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Refuse after too many failures; record this one."""
        self.check()
        try:
            yield
        except Failed:
            self._record_pending = True
            with suppress(LedgerError):  # the ledger may be down as well, and there is only one failure message
                self._record_failures()
            raise

    def check(self) -> None:
        """Refuse once too many queries have failed, because failures themselves can disclose something.

        A charge without an answer may still be in progress in another process, but not beyond the time limit.
        """
        if self._record_pending:
            self._record_failures()
        deadline = datetime.now(UTC) - self._timeout
        failed = [
            event
            for event in self._ledger.unsettled_events()
            if event.id in self._failed_ids or datetime.fromisoformat(event.time) < deadline
        ]
        if len(failed) >= self._policy.budget_entry.failures:
            raise Refused(
                f"the data set {self._policy.data.name!r} is suspended after {len(failed)} failed queries. The owner "
                f"must check the log, fix the cause and {self._acknowledge_hint()}."
            )

    def _acknowledge_hint(self) -> str:
        if self._policy.data.ledger == ":memory:":
            return "call curator.ledger.acknowledge()"
        without_policy = f"discreet ledger acknowledge LEDGER --name {shlex.quote(self._policy.account)}"
        return f"run: discreet ledger acknowledge POLICY (if there is no policy file: {without_policy})"

    def _record_failures(self) -> None:
        self._failed_ids |= {event.id for event in self._ledger.unsettled_events()}
        self._record_pending = False
