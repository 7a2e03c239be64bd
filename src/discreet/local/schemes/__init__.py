"""Protocols, one to a file: each a record with the law of one report, and how reports are read."""
