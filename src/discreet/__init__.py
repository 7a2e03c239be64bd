"""Discreet answers queries on sensitive data with differential privacy and charges a budget that cannot be overspent.

Submodules are imported lazily, when a name is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

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
    "publish",
    "remote",
    "threshold_for",
]

_MODULES = frozenset({"anonymity", "attacks", "audit", "dbapi", "learn", "local", "policy", "privacy", "publish"})
_EXPORTS = {
    "answer.model": ("Answer", "Explanation"),
    "curator.curator": ("Curator",),
    "dbapi": ("connect",),
    "engines.interface": ("Tuning",),
    "kernel.errors": ("DiscreetError", "Failed", "LedgerError", "PolicyError", "Refused"),
    "kernel.event": ("Event", "Receipt"),
    "kernel.ledger": ("Ledger",),
    "kernel.loss": ("Budget", "Loss"),
    "kernel.mechanism": ("Gaussian", "Laplace", "Sensitivity"),
    "kernel.partition_selection": ("Threshold",),
    "ledger_sqlite": ("create_ledger", "memory_ledger", "open_ledger"),
    "local.randomized_response": ("RandomizedResponse",),
    "privacy.calibration": ("gaussian_for", "laplace_for", "threshold_for"),
    "privacy.selection": ("Exponential", "PermuteAndFlip"),
    "remote_curator": ("remote",),
    "curator.open": ("open_curator",),
}
_MODULE_OF = {name: module for module, names in _EXPORTS.items() for name in names}
_INTERNAL_NAMES = {"open": "open_curator"}  # inside the package, `open` is the builtin

if TYPE_CHECKING:
    from discreet import anonymity, attacks, audit, dbapi, learn, local, policy, privacy, publish
    from discreet.answer.model import Answer, Explanation
    from discreet.curator.curator import Curator
    from discreet.curator.open import open_curator as open  # noqa: A004 - the name that users expect
    from discreet.dbapi import connect
    from discreet.engines.interface import Tuning
    from discreet.kernel.errors import DiscreetError, Failed, LedgerError, PolicyError, Refused
    from discreet.kernel.event import Event, Receipt
    from discreet.kernel.ledger import Ledger
    from discreet.kernel.loss import Budget, Loss
    from discreet.kernel.mechanism import Gaussian, Laplace, Sensitivity
    from discreet.kernel.partition_selection import Threshold
    from discreet.ledger_sqlite import create_ledger, memory_ledger, open_ledger
    from discreet.local.randomized_response import RandomizedResponse
    from discreet.privacy.calibration import gaussian_for, laplace_for, threshold_for
    from discreet.privacy.selection import Exponential, PermuteAndFlip
    from discreet.remote_curator import remote
else:

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f"discreet.{name}")
        if name not in __all__:
            raise AttributeError(f"module 'discreet' has no attribute {name!r}")
        internal_name = _INTERNAL_NAMES.get(name, name)
        value = getattr(import_module(f"discreet.{_MODULE_OF[internal_name]}"), internal_name)
        globals()[name] = value  # __getattr__ is not called for this name again
        return value


def __dir__() -> list[str]:
    return __all__
