"""Discreet: a curator that answers with differential privacy."""

__version__ = "0.1.0"
