"""The SELECTs below the release: sources, joins, predicates and aggregation per unit."""
