"""Disclosure risk and information loss of a table."""
