"""The reference engine: what every other engine is checked against."""
