"""What a generalised text stands for: hierarchies, ranges, sets, stars."""
