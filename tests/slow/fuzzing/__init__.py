"""Queries made at random, and what must hold for each of them."""
