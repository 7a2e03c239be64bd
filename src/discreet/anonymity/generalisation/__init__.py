"""Generalisation and suppression that reach k-anonymity, l-diversity and t-closeness."""
