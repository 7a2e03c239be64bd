"""How each engine writes the kernel's operations: every one has a value or is NULL for every row."""
