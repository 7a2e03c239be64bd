"""The PostgreSQL ledger, which several servers can share (trusted; needs psycopg)."""
