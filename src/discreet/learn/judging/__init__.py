"""How good models are, and which is best, told privately."""
