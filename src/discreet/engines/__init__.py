"""Engines, which store the data and compute exact totals; they know sources and declared columns, not policies."""
