"""PostgreSQL: the way to a server, and a ledger that several servers share. The engine is in `discreet.engines`."""
