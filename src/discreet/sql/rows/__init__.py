"""SELECTs that keep private rows apart by unit: tables, joins, conditions, subqueries."""
