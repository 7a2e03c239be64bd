"""The SQLite ledger: in a file, or in memory (trusted)."""

from discreet.ledger_sqlite.ledger import create_ledger, memory_ledger, open_ledger

__all__ = ["create_ledger", "memory_ledger", "open_ledger"]
