"""Fake data that fit a policy: values, tables, and the files they are kept in."""
