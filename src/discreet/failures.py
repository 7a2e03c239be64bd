"""Questions that were charged and have no answer: too many of them stop the data set until the owner has looked."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta

from discreet.kernel.errors import Failed, LedgerError, Refused
from discreet.kernel.ledger import Ledger
from discreet.policy import Policy

GRACE = 60  # seconds beyond the engine's time limit, after which a question is no longer under way


class Failures:
    """What failed in this process, and what seems to have failed elsewhere."""

    def __init__(self, policy: Policy, ledger: Ledger, seconds: float) -> None:
        self._policy, self._ledger = policy, ledger
        self._patience = timedelta(seconds=seconds + GRACE)
        self._known: set[str] = set()
        self._unread = False  # whether something failed while the ledger could not be read

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Refuse after too many failures; record this one."""
        self.check()
        try:
            yield
        except Failed:
            self._unread = True
            with suppress(LedgerError):  # its server may have died with the data; the text of the failure is one
                self._record()
            raise

    def check(self) -> None:
        """Refuse once so many questions failed that failing itself might tell something.

        What has no answer yet may still be under way in another process, but not for longer than the time limit.
        """
        if self._unread:
            self._record()
        late = datetime.now(UTC) - self._patience
        failed = [
            event
            for event in self._ledger.unsettled()
            if event.id in self._known or datetime.fromisoformat(event.time) < late
        ]
        if len(failed) >= self._policy.spending.failures:
            raise Refused(
                f"the data set {self._policy.data.name!r} has stopped after {len(failed)} failed questions. The owner "
                f"can read the log, fix the cause and {self._command()}."
            )

    def _command(self) -> str:
        """Say how the owner acknowledges failures."""
        if self._policy.data.ledger == ":memory:":
            return "call curator.ledger.acknowledge()"
        without = f"discreet ledger acknowledge LEDGER --name {shlex.quote(self._policy.data.name)}"
        return f"run: discreet ledger acknowledge POLICY (if there is no policy file: {without})"

    def _record(self) -> None:
        self._known |= {event.id for event in self._ledger.unsettled()}
        self._unread = False
