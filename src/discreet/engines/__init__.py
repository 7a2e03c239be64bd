"""Engines hold the data and compute exact totals; each takes {table: source}, never a policy."""
