"""Releases of many tables at once, from a plan."""
