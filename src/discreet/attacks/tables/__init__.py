"""Attacks on released tables: linkage, pseudonyms, homogeneity and intersection."""
