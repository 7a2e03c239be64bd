"""Discreet: a curator that answers with differential privacy, and a ledger that nothing can overspend.

Importing it loads the trusted kernel only; everything else comes when it is first used.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from discreet.kernel.calibration import gaussian_for
from discreet.kernel.choice import Exponential, PermuteAndFlip
from discreet.kernel.errors import DiscreetError, Failed, LedgerError, PolicyError, Refused
from discreet.kernel.event import Event, Receipt
from discreet.kernel.ledger import Ledger, create_ledger, memory_ledger, open_ledger
from discreet.kernel.loss import Budget, Loss
from discreet.kernel.mechanism import Gaussian, Laplace, Sensitivity, laplace_for
from discreet.kernel.response import RandomizedResponse
from discreet.kernel.threshold import Threshold, threshold_for

__version__ = "0.1.0"

__all__ = [
    "Budget",
    "DiscreetError",
    "Event",
    "Exponential",
    "Failed",
    "Gaussian",
    "Laplace",
    "Ledger",
    "LedgerError",
    "Loss",
    "PermuteAndFlip",
    "PolicyError",
    "RandomizedResponse",
    "Receipt",
    "Refused",
    "Sensitivity",
    "Threshold",
    "create_ledger",
    "gaussian_for",
    "laplace_for",
    "memory_ledger",
    "open_ledger",
    "policy",
    "privacy",
    "threshold_for",
]

_ON_FIRST_USE = frozenset({"policy", "privacy"})

if TYPE_CHECKING:
    from discreet import policy, privacy
else:

    def __getattr__(name: str) -> ModuleType:
        if name in _ON_FIRST_USE:
            return import_module(f"discreet.{name}")
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
