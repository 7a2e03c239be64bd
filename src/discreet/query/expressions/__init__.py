"""Expressions on single rows: their meaning in the kernel's algebra, their ranges and domains."""
