"""Audits: lower bounds on the epsilon of anything that claims one, with stated confidence."""
