"""The embedded engine, for files and for frames of pandas, polars and Arrow."""
