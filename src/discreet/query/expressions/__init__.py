"""Expressions on single rows: binding to the kernel's algebra, ranges and domains."""
