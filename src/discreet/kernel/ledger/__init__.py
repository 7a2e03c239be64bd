"""The ledger: every question is paid for, durably, before any data is read, and nothing is ever refunded.

    charge ──► reserved ──► settle ──► released

A charge is one transaction: find the key, check the budget, append a row, commit. A crash before the commit
costs nothing and shows nothing; after it the charge stands; once the answer is stored, its key returns it.
"""

from discreet.kernel.ledger.account import UNKNOWN, Account
from discreet.kernel.ledger.interface import Ledger
from discreet.kernel.ledger.sqlite import SQLiteLedger, create_ledger, memory_ledger, open_ledger
from discreet.kernel.ledger.terms import left

__all__ = ["UNKNOWN", "Account", "Ledger", "SQLiteLedger", "create_ledger", "left", "memory_ledger", "open_ledger"]
