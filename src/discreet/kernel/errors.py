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

LOG = logging.getLogger("discreet")
LOG.addHandler(logging.NullHandler())  # otherwise Python prints to stderr what only the owner may see
FAILED = (
    "the query was charged but could not be answered; the reason is in the owner's log. Asking again is charged again."
)


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
