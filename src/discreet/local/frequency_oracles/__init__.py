"""Frequency oracles, one protocol per module: how a report is randomised, and how reports are aggregated."""
