"""One question, two worlds: what differential privacy gives and costs, on one page and for a simulated town."""
