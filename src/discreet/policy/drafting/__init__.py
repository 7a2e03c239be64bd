"""Drafting a policy, from schemas and metadata alone; whatever a human must decide is marked.

sketch      what is known of tables and columns
schemas     from files: Parquet, CSV, DuckDB;  metadata: from SmartNoise (smartnoise) or CSV on the Web (csvw)
links       how tables seem to hang together, by the names of columns
writing     the text;  draft: all of it
"""
