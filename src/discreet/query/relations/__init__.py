"""The SELECTs below the release: sources, joins, predicates, rows kept apart by unit."""
