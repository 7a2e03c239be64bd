"""Dummy data that fits a policy: values, tables and files."""
