"""The exception tree.

Exception
├── ValueError, TypeError     an invalid argument; the message begins with its name
└── DiscreetError
    ├── Refused               not answered and not charged; safe to show to an analyst
    ├── Failed                charged but not answered; the message never depends on the data
    ├── PolicyError           the owner's policy is invalid (also a ValueError)
    └── LedgerError           the ledger cannot be trusted or written: stop serving
"""

import logging
from collections.abc import Callable
from typing import TypeVar

LOG = logging.getLogger("discreet")
LOG.addHandler(logging.NullHandler())  # otherwise Python prints to stderr what only the owner may see
FAILED = (
    "the query was charged but could not be answered; the reason is in the owner's log. Asking again is charged again."
)


T = TypeVar("T")


class DiscreetError(Exception):
    """Base class of all errors that Discreet defines."""


class Refused(DiscreetError):  # noqa: N818 - public name
    """A request that was neither answered nor charged; the message never depends on the data."""


class Failed(DiscreetError):  # noqa: N818 - public name
    """A request that was charged but not answered; the reason is only in the owner's log."""


class PolicyError(DiscreetError, ValueError):
    """An invalid policy, or a ledger that belongs to another policy."""


class LedgerError(DiscreetError):
    """A ledger that is missing, damaged, tampered with, rolled back or not writable."""


def require(condition: bool, message: str) -> None:
    """Raise ValueError unless the condition holds."""
    if not condition:
        raise ValueError(message)


def run_charged(what: str, work: Callable[[], T]) -> T:
    """Return the result of work that is already charged; any error is logged for the owner, and Failed is raised.

    Claim: an error discloses nothing about the data: its message is fixed, and no other exception is attached.
    Proof: every Exception is caught and goes to the owner's log; Failed is raised outside of the handler.
    Needs: only the owner reads LOG.
    Checked by: test_a_failure_after_the_charge_discloses_nothing_and_stays_charged,
        test_a_failure_while_summing_says_nothing,
        test_a_ledger_that_dies_before_the_answer_is_stored_fails_like_every_failure
    """
    try:
        return work()
    except Exception:  # its text may depend on the data
        LOG.exception("%s failed after it was charged", what)
    raise Failed(FAILED)
