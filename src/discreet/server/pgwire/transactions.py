"""Transactions, which change nothing but settings: charges are final, and ROLLBACK refunds nothing."""

from dataclasses import dataclass

from discreet.server.pgwire.actions import Action
from discreet.server.pgwire.errors import WireError
from discreet.server.pgwire.settings import SessionSettings

_FAILED = "current transaction is aborted, commands ignored until end of transaction block"
_ENDS = (Action.COMMIT, Action.ROLLBACK, Action.ROLLBACK_TO)


@dataclass
class Transaction:
    """The state of a session's transaction, and the settings that its end leads to.

    >>> from discreet.kernel.loss import Budget
    >>> transaction = Transaction(SessionSettings(Budget(1)))
    >>> transaction.run(Action.BEGIN), transaction.status
    ('', 'T')
    """

    settings: SessionSettings
    status: str = "I"  # as ReadyForQuery says it: I, T or E
    _before: SessionSettings | None = None
    _committed: SessionSettings | None = None

    def check(self, action: Action) -> None:
        """Refuse everything but its end in a transaction that has failed."""
        if self.status == "E" and action not in _ENDS:
            raise WireError("25P02", _FAILED)

    def fail(self) -> None:
        """Note an error: within a transaction, nothing else is done before its end."""
        if self.status == "T":
            self.status = "E"

    def run(self, action: Action) -> str:
        """Begin or end a transaction; return the tag if it is not that of the action."""
        is_failed = self.status == "E"
        match action:
            case Action.BEGIN if self.status == "I":
                self.status, self._before, self._committed = "T", self.settings, self.settings
            case Action.COMMIT | Action.ROLLBACK if self.status != "I":
                kept = self._before if is_failed or action is Action.ROLLBACK else self._committed
                self.settings = kept or self.settings
                self.status, self._before, self._committed = "I", None, None
            case Action.ROLLBACK_TO if is_failed:
                self.status = "T"
            case Action.SAVEPOINT | Action.RELEASE | Action.ROLLBACK_TO if self.status == "I":
                raise WireError("25P01", f"{action.value} can only be used in transaction blocks")
        return "ROLLBACK" if action is Action.COMMIT and is_failed else ""

    def change(self, settings: SessionSettings, committed: SessionSettings | None) -> None:
        """Take new settings; without those that COMMIT leads to, they hold until the end of the transaction."""
        if committed is not None:
            self._committed = committed
        if self.status != "I" or committed is not None:
            self.settings = settings

    @property
    def committed(self) -> SessionSettings:
        """The settings that COMMIT leads to."""
        return self._committed or self.settings
