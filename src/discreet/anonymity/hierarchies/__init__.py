"""Generalisation hierarchies, and the meaning of generalised values (ranges, sets, labels, *)."""
