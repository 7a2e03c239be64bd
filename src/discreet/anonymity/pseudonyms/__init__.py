"""Keyed pseudonyms in place of identifiers."""
