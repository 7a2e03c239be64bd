"""The ledger: every query is charged durably before any data is read, and charges are never refunded.

    charge ──► reserved ──► settle ──► released

A charge is one transaction: look up the key, check the budget, append a row, commit. A crash before the commit
charges nothing and reveals nothing. After the commit the charge stands, and once the answer is stored, repeating the
request with the same key returns it.
"""

from discreet.kernel.ledger.ledger import UNKNOWN_OUTCOME, Ledger

__all__ = ["UNKNOWN_OUTCOME", "Ledger"]
