"""The ledger: every question is paid for, durably, before any data is read, and nothing is ever refunded.

    charge ──► reserved ──► settle ──► released

A charge is one transaction: find the key, check the budget, append a row, commit. A crash before the commit
costs nothing and shows nothing; after it the charge stands; once the answer is stored, its key returns it.
"""

from discreet.kernel.ledger.account import UNKNOWN_OUTCOME, Account
from discreet.kernel.ledger.protocol import Ledger
from discreet.kernel.ledger.sqlite import SQLiteLedger, create_ledger, memory_ledger, open_ledger
from discreet.kernel.ledger.terms import remaining_budget

__all__ = [
    "UNKNOWN_OUTCOME",
    "Account",
    "Ledger",
    "SQLiteLedger",
    "create_ledger",
    "memory_ledger",
    "open_ledger",
    "remaining_budget",
]
