"""The Ledger protocol: what every ledger can do, wherever it is stored."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from discreet.kernel.event import Event, Receipt
from discreet.kernel.loss import Budget, Loss

MAX_ANSWER_BYTES = 64 * 1024 * 1024  # bytes


class Ledger(Protocol):
    """A durable, append-only account of what has been learned from one data set.

    >>> from discreet.kernel.ledger import memory_ledger
    >>> def left(ledger: Ledger) -> str:
    ...     return f"{ledger.spent().epsilon} of {ledger.budget.epsilon}"
    >>> left(memory_ledger(name="demo", budget=Budget(1)))
    '0 of 1'
    """

    @property
    def name(self) -> str:
        """The data set that the ledger belongs to."""

    @property
    def budget(self) -> Budget:
        """How much may be lost in all."""

    @property
    def analysts(self) -> Mapping[str, Budget] | None:
        """The limits of the listed analysts; None if any name may ask."""

    def charge(self, loss: Loss, event: Event, key: str | None = None) -> Receipt:
        """Pay before any data is read; Refused if it does not fit."""

    def settle(self, receipt: Receipt, answer: bytes) -> None:
        """Store the answer durably, before its first byte is sent."""

    def spent(self, by: str | None = None) -> Loss:
        """Return what was lost in all, or by one analyst's questions."""

    def events(self) -> list[Event]:
        """Return everything that was charged, oldest first."""

    def answers(self, fingerprints: Iterable[str]) -> list[tuple[Event, bytes | None]]:
        """Return the charges that have any of these topics, oldest first, with their stored answers."""

    def latest_receipt(self, fingerprint: str) -> str | None:
        """Return the receipt of the newest charge with a topic, unless the owner acknowledged a loss since."""

    def event_with_key(self, by: str, key: str) -> Event | None:
        """Return the charge that an analyst made with a key."""

    def verify(self) -> None:
        """Recompute everything; LedgerError names the first bad row."""

    @property
    def unit_declaration(self) -> str:
        """Who is protected, in the owner's words."""

    def unsettled_events(self) -> list[Event]:
        """Return what was charged and has no answer, since the owner last acknowledged it."""

    def set_budget(
        self, budget: Budget, *, analysts: Mapping[str, Budget] | None, unit_declaration: str | None = None
    ) -> None:
        """Change the limits: an owner's act, on record."""

    def acknowledge(self) -> None:
        """Let a ledger that was rolled back, or has failed questions, serve again: an owner's act, on record."""

    def close(self) -> None:
        """Let go of the ledger."""
