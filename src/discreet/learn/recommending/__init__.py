"""Recommending: how items are rated, and what a person may like."""
