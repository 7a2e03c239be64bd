"""A Spark under test: the same tables there as views, and results as Arrow has them."""

import pyarrow as pa
import strategies
from compare import Under

from discreet.engines.dialects.spark import SPARK
from discreet.engines.dialects.spark_constants import requoted
from discreet.kernel.dialect import quoted

# As an engine sets them: nothing in a SELECT is replaced, and times have no zone.
SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.variable.substitute": "false",
}


def prepare(session):
    """Make the settings that every engine makes."""
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    return session


def run(session, sql):
    """Run a SELECT."""
    return session.sql(sql).toArrow()


def fill(session, name, schema, rows):
    """Make a view with exactly the kernel's types."""
    fields = pa.schema([(column, strategies.ARROW[kind]) for column, kind in schema.items()])
    nothing = [f"CAST(NULL AS {SPARK.types[kind]}) AS {quoted(column)}" for column, kind in schema.items()]
    if rows:
        frame = session.createDataFrame(pa.Table.from_pylist(rows, schema=fields))
    else:
        frame = session.sql(requoted(f"SELECT {', '.join(nothing)} WHERE FALSE"))
    given = f"given_{name.encode().hex()}"  # Sail and Spark read other names differently where no SELECT names them
    frame.createOrReplaceTempView(given)
    session.sql(requoted(f"CREATE OR REPLACE TEMP VIEW {quoted(name)} AS SELECT * FROM {given}")).collect()


def load(session, tables):
    """Make all tables."""
    for name, schema in strategies.SCHEMAS.items():
        fill(session, name, schema, tables[name])


def under(session, dialect=SPARK):
    """Return the engine as comparisons use it."""
    return Under(dialect, lambda sql: run(session, sql), lambda tables: load(session, tables))
