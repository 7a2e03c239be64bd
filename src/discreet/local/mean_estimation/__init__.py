"""Mean estimation in the local model, one mechanism per module."""
