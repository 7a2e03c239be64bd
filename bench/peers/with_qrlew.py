"""Q2 with Qrlew, which rewrites the query, here for DuckDB.

It clips the Euclidean norm of a person's counts over all cities; so many groups of so many rows have the one given.
"""

import json
import math

import duckdb
import measure
import pyqrlew
import sqlalchemy

TABLE = 'CREATE TABLE sales ("user" BIGINT, city BIGINT, category BIGINT, amount DOUBLE PRECISION)'
QUESTION = "SELECT city, COUNT(*) AS n, SUM(amount) AS s, AVG(amount) AS m FROM sales GROUP BY city"


def main():
    folder, rows, times = measure.arguments()
    dataset = described(rows)
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW sales AS FROM '{folder / 'sales.parquet'}'")

    def ask():
        private = dataset.relation(QUESTION).rewrite_with_differential_privacy(
            dataset,
            [("sales", [], "user")],
            {"epsilon": measure.EPSILON, "delta": measure.DELTA},
            max_multiplicity=measure.ROWS * math.sqrt(measure.GROUPS),
            max_privacy_unit_groups=measure.GROUPS,
        )
        found = connection.sql(private.relation().to_query()).fetchall()
        return [row[:2] for row in found]

    measure.tell("pyqrlew", ask, times)


def described(rows):
    """Return the table's description, read from an empty SQLite table and told its number of rows."""
    engine = sqlalchemy.create_engine("sqlite://")
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text(TABLE))
    empty = pyqrlew.Dataset.from_database("shop", engine)
    size = json.loads(empty.size)
    size["statistics"]["union"]["fields"][0]["statistics"]["struct"]["size"] = str(rows)
    name = {
        "@type": "sarus_data_spec/sarus_data_spec.Dataset",
        "uuid": json.loads(empty.schema)["dataset"],
        "name": "shop",
        "spec": {"transformed": {"transform": "none", "arguments": [], "named_arguments": {}}},
        "properties": {},
    }
    known = pyqrlew.Dataset.from_str(json.dumps(name), empty.schema, json.dumps(size))
    return known.with_range(None, "sales", "amount", measure.LOW, measure.HIGH)


main()
