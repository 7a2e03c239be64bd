"""The curator, which combines a policy, an engine and a ledger."""
