"""The curator: a policy, an engine and a ledger, and how they are opened."""
