"""PostgreSQL connections, used by the engine and the shared ledger."""
