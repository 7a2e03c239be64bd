"""What can go wrong, as a tree.

Exception
├── ValueError, TypeError     a wrong argument: the message begins with the argument's name
└── DiscreetError
    ├── Refused               not answered and not charged; safe to show to an analyst
    ├── Failed                charged and not answered; its text never depends on the data
    ├── PolicyError           the owner's policy is wrong (a ValueError too)
    └── LedgerError           the ledger cannot be trusted or written: stop serving
"""

import logging

LOG = logging.getLogger("discreet")
LOG.addHandler(logging.NullHandler())  # else Python prints on stderr what is for the owner's eyes only
FAILED = "the question was charged and could not be answered; the owner's log has the reason. Asking again costs again."


class DiscreetError(Exception):
    """The root of every error that Discreet defines."""


class Refused(DiscreetError):  # noqa: N818 - a refusal is an answer, not an accident
    """A request that is not answered and costs nothing; its text never depends on the data."""


class Failed(DiscreetError):  # noqa: N818 - the outcome's name
    """A request that was charged and could not be answered; the reason is in the owner's log only."""


class PolicyError(DiscreetError, ValueError):
    """A policy, or a ledger opened for another policy, that cannot be used as it stands."""


class LedgerError(DiscreetError):
    """A ledger that is missing, damaged, tampered with, rolled back or not writable."""
