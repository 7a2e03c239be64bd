"""For the owner of a ledger: verify it as a whole, and move it to another location."""
