"""The Ledger protocol, common to all storages."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from discreet.kernel.event import Event, Receipt
from discreet.kernel.loss import Budget, Loss

MAX_ANSWER_BYTES = 64 * 1024 * 1024


class Ledger(Protocol):
    """A durable, append-only account of the privacy loss of one data set.

    >>> from discreet.kernel.ledger import memory_ledger
    >>> def left(ledger: Ledger) -> str:
    ...     return f"{ledger.spent().epsilon} of {ledger.budget.epsilon}"
    >>> left(memory_ledger(name="demo", budget=Budget(1)))
    '0 of 1'
    """

    @property
    def name(self) -> str:
        """The name of the data set."""

    @property
    def budget(self) -> Budget:
        """The total budget."""

    @property
    def analysts(self) -> Mapping[str, Budget] | None:
        """The limits of the analysts; None if anyone may ask."""

    def charge(self, loss: Loss, event: Event, key: str | None = None) -> Receipt:
        """Charge before any data is read; raise Refused if not enough budget is left."""

    def settle(self, receipt: Receipt, answer: bytes) -> None:
        """Store the answer durably before its first byte is sent."""

    def spent(self, by: str | None = None) -> Loss:
        """Return the total loss, or that of one analyst's queries."""

    def events(self) -> list[Event]:
        """Return all charges, oldest first."""

    def answers(self, fingerprints: Iterable[str]) -> list[tuple[Event, bytes | None]]:
        """Return the charges with any of these fingerprints, oldest first, and their stored answers."""

    def latest_receipt(self, fingerprint: str) -> str | None:
        """Return the receipt of the latest charge with a fingerprint; None after an acknowledgement."""

    def event_with_key(self, by: str, key: str) -> Event | None:
        """Return the charge of an analyst with a key; None if there is none."""

    def verify(self) -> None:
        """Verify all rows and answers; LedgerError names the first invalid row."""

    @property
    def unit_declaration(self) -> str:
        """The declaration of the privacy unit, as the owner wrote it."""

    def unsettled_events(self) -> list[Event]:
        """Return the charges without an answer since the last acknowledgement by the owner."""

    def set_budget(
        self, budget: Budget, *, analysts: Mapping[str, Budget] | None, unit_declaration: str | None = None
    ) -> None:
        """Change the budget and the limits of analysts, and record the change."""

    def acknowledge(self) -> None:
        """Let a ledger serve again after a rollback or failures, and record the acknowledgement."""

    def close(self) -> None:
        """Close the ledger."""
