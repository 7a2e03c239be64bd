"""The people under attack: records for your own data, simulations, and readers of real data."""
