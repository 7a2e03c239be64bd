"""Names replaced by keyed codes."""
