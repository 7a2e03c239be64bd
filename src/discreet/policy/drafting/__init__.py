"""Draft a policy from schemas and metadata alone; values that the owner must supply are marked FILL IN.

sketch         tables and columns as far as they are known
schemas        sketches of Parquet, CSV and DuckDB files and of PostgreSQL tables
table_roles    which tables seem private, children of others, or public lookups
policy_text    the text of the draft;  draft: the entry point, and sketches from SmartNoise metadata
"""
