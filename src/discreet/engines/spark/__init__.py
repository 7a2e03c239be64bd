"""The engine for tables and Parquet files on a Spark cluster, over Spark Connect."""
