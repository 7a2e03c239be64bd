"""Discreet: a curator that answers with differential privacy, and a ledger that nothing can overspend.

Importing it loads the trusted kernel only; everything else comes when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    "Answer",
    "Budget",
    "Curator",
    "DiscreetError",
    "Event",
    "Explanation",
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
    "Tuning",
    "anonymity",
    "attacks",
    "audit",
    "connect",
    "create_ledger",
    "dbapi",
    "gaussian_for",
    "laplace_for",
    "learn",
    "local",
    "memory_ledger",
    "open",
    "open_ledger",
    "policy",
    "privacy",
    "threshold_for",
]

# Loaded when they are first used: modules by their own name, and what `open` needs from the module that has it.
_MODULES = frozenset({"anonymity", "attacks", "audit", "dbapi", "learn", "local", "policy", "privacy"})
_ELSEWHERE = {
    "Answer": ("answer", "Answer"),
    "Curator": ("curator", "Curator"),
    "Explanation": ("answer", "Explanation"),
    "Tuning": ("engines.tuning", "Tuning"),
    "connect": ("dbapi", "connect"),
    "open": ("opening", "open_curator"),
}

if TYPE_CHECKING:
    from discreet import anonymity, attacks, audit, dbapi, learn, local, policy, privacy
    from discreet.answer import Answer, Explanation
    from discreet.curator import Curator
    from discreet.dbapi import connect
    from discreet.engines.tuning import Tuning
    from discreet.opening import open_curator as open  # noqa: A004 - the name that users expect
else:

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f"discreet.{name}")
        if name in _ELSEWHERE:
            module, found = _ELSEWHERE[name]
            return getattr(import_module(f"discreet.{module}"), found)
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
