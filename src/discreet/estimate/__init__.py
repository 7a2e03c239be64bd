"""Estimates from noisy totals: counts, sums, means, variances and quantiles, with 95 % margins of error."""
