"""Frequency oracles: how a report is randomised, and how reports are aggregated; one protocol to a file."""
