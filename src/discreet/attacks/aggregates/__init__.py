"""Attacks on published aggregates: reconstruction and membership inference."""
