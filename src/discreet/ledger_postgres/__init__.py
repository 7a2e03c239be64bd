"""The ledger in PostgreSQL, which several servers share (trusted; needs psycopg)."""
