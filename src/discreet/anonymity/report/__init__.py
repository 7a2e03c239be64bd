"""The anonymity report: sections, charts and HTML."""
