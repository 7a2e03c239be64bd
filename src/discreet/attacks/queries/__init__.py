"""Attacks by queries: differencing, averaging, rephrasing and the threshold game."""
