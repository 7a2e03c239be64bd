"""The engine for tables and Parquet files on a Spark cluster, through Spark Connect."""
