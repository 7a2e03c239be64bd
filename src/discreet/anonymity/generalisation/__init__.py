"""Generalise and suppress until k-anonymity, l-diversity and t-closeness hold."""
