"""Expressions on single rows: what they mean to the kernel, and what is publicly known of their values."""
