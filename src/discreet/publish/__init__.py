"""Publishing: tables that add up, synthetic rows, and a report."""
