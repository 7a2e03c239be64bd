"""Publishing: release plans, tables that add up, synthetic rows, and a report that anybody can verify."""
