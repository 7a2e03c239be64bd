"""The engine for tables and views of a PostgreSQL database."""
