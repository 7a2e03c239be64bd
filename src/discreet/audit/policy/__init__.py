"""Audit of a policy: every kind of query it allows, on neighbouring databases, through the curator."""
