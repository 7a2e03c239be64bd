"""PostgreSQL: what the engine and the shared ledger have in common."""
