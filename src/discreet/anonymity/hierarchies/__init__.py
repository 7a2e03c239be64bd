"""Generalisation hierarchies, and what generalised values (ranges, sets, labels, *) stand for."""
